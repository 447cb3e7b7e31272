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

/// Minutes for which an authentication at the identity provider counts for a step-up.
pub const STEP_UP_MINUTES: i64 = 15;

/// How far the clock of an identity provider may be ahead. Seconds.
const CLOCK_SKEW_S: i64 = 60;

/// Whether an authentication at this time counts for a step-up now. Unix times.
#[must_use]
pub fn is_recent_authentication(at_s: i64, now_s: i64) -> bool {
    (-CLOCK_SKEW_S..=STEP_UP_MINUTES * 60).contains(&now_s.saturating_sub(at_s))
}

/// How the operator of a session signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionAuthentication {
    pub method: SignInMethod,
    /// Time of the authentication by the identity provider's clock; `None` if it does not count for a
    /// step-up.
    pub at: Option<OffsetDateTime>,
}

impl SessionAuthentication {
    /// Whether the session may make changes that need a step-up. A session of a one-time link may: no
    /// provider could repeat its sign-in.
    #[must_use]
    pub fn is_recent(&self, now: OffsetDateTime) -> bool {
        let is_recent =
            |at: OffsetDateTime| is_recent_authentication(at.unix_timestamp(), now.unix_timestamp());
        self.method == SignInMethod::Link || self.at.is_some_and(is_recent)
    }
}

/// A session of an operator, without its token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
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
    /// Time of the authentication at the identity provider that counts for a step-up; null if there was none.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub authenticated_at: Option<OffsetDateTime>,
    /// Time of the last request, to within a minute.
    #[serde(with = "crate::timestamp")]
    pub last_used_at: OffsetDateTime,
    /// End of the session: 12 hours after the sign-in, or 30 minutes after the last request if that is
    /// earlier.
    #[serde(with = "crate::timestamp")]
    pub expires_at: OffsetDateTime,
    /// Time of the sign-out; null if the session was not ended before `expires_at`.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub ended_at: Option<OffsetDateTime>,
}

/// Filter of sessions; `None` matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct SessionFilter {
    /// Filter by operator. Without it an admin lists all sessions, and others list their own.
    #[arg(
        value_name = "NAME",
        help = "Name of the operator [default: all, or without the role admin your own]"
    )]
    pub operator: Option<OperatorName>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authentication_counts_for_15_minutes_and_not_from_the_future() {
        for (at_s, is_recent) in [
            (10_000, true),
            (9_100, true),
            (9_099, false),
            (10_060, true),
            (10_061, false),
            (10_000_000, false),
            (i64::MIN, false),
            (i64::MAX, false),
        ] {
            assert_eq!(is_recent_authentication(at_s, 10_000), is_recent, "{at_s}");
        }
    }
}
