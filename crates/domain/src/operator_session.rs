//! Sessions of operators in the console.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::ids::OperatorSessionId;
use crate::labels::labels;
use crate::operator::OperatorName;

/// Longest session. A person signs in once per working day.
pub const SESSION_HOURS: i32 = 12;

/// A session without a request for this long has ended.
pub const SESSION_IDLE_MINUTES: i32 = 30;

labels! {
    /// How a session began.
    pub enum SignInMethod: "lowercase", "How the operator signed in: `link` (one-time link) or `oidc` (OpenID Connect)." {
        Link,
        Oidc,
    }
}

/// Minutes for which an authentication at the identity provider permits changes that move money.
pub const STEP_UP_MINUTES: i64 = 15;

/// How the person of a session has proved who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionAuthentication {
    pub method: SignInMethod,
    /// By the identity provider's clock; `None` if it was no authentication of the kind that moving money requires.
    pub at: Option<OffsetDateTime>,
}

impl SessionAuthentication {
    /// Whether the session may move money. One of a one-time link may: nobody could ask its person again.
    #[must_use]
    pub fn permits_moving_money(&self, now: OffsetDateTime) -> bool {
        self.method == SignInMethod::Link
            || self
                .at
                .is_some_and(|at| now - at <= time::Duration::minutes(STEP_UP_MINUTES))
    }
}

/// A session of an operator, without its token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct OperatorSession {
    /// Identifies the session.
    pub session_id: OperatorSessionId,
    /// Operator who signed in.
    pub operator: OperatorName,
    pub method: SignInMethod,
    /// Client address of the sign-in.
    pub address: String,
    /// Time of the sign-in.
    #[serde(with = "crate::timestamp")]
    pub created_at: OffsetDateTime,
    /// Time of the last request, to within a minute.
    #[serde(with = "crate::timestamp")]
    pub last_used_at: OffsetDateTime,
    /// End of the session: 12 hours after the sign-in, or 30 minutes after the last request if that is earlier.
    #[serde(with = "crate::timestamp")]
    pub expires_at: OffsetDateTime,
    /// Time of the sign-out; null if the session was not ended before `expires_at`.
    #[serde(with = "crate::timestamp::option")]
    #[cfg_attr(feature = "utoipa", schema(required))]
    pub ended_at: Option<OffsetDateTime>,
}

/// Filter of sessions; `None` matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SessionFilter {
    /// Filter by operator. Without it an admin lists all sessions, and others list their own.
    #[cfg_attr(
        feature = "clap",
        arg(
            value_name = "NAME",
            help = "Name of the operator [default: all, or without the role admin your own]"
        )
    )]
    pub operator: Option<OperatorName>,
}
