//! Webhook endpoints of partners: settings, state and list filter.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::event_kind::EventKinds;
use crate::ids::{PartnerId, WebhookId};
use crate::labels::labels;

/// Maximum bytes of the URL of an endpoint.
pub const MAX_URL_BYTES: usize = 2_048;

labels! {
    /// Why an endpoint is disabled.
    pub enum DisabledReason: "SCREAMING_SNAKE_CASE",
        "Why an endpoint is disabled: `PARTNER` (you disabled it) or `GONE` (it responded with 410)." {
        /// The partner disabled it.
        Partner,
        /// It responded with 410.
        Gone,
    }
}

/// Consecutive failures after which an endpoint is failing: only its oldest delivery is attempted (contract
/// §6).
pub const FAILING_THRESHOLD: u32 = 5;

labels! {
    /// Status of an endpoint.
    pub enum WebhookStatus: "lowercase",
        "Status of an endpoint: `active`, `failing` (five attempts in a row failed; retries continue) or `disabled`." {
        Active,
        /// [`FAILING_THRESHOLD`] attempts in a row failed.
        Failing,
        Disabled,
    }
}

/// A webhook endpoint without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub partner_id: PartnerId,
    pub webhook_id: WebhookId,
    pub url: String,
    /// Subscribed event kinds.
    pub kinds: EventKinds,
    pub description: Option<String>,
    /// Reason and time of disabling; `None` while enabled.
    pub disabled: Option<(DisabledReason, OffsetDateTime)>,
    /// Time until which the previous secret signs in addition.
    pub previous_until: Option<OffsetDateTime>,
    pub failures: i64,
    /// Time of the first consecutive failure.
    pub failing_since: Option<OffsetDateTime>,
    /// Time of the next retry; the present if it is due.
    pub next_attempt_at: Option<OffsetDateTime>,
    /// Successful attempts since registration.
    pub delivered: i64,
    /// Failed attempts since registration.
    pub refused: i64,
    /// Events after the cursor, including kinds that the endpoint does not subscribe to.
    pub behind: i64,
    /// Commit time of the oldest event after the cursor.
    pub oldest_event_at: Option<OffsetDateTime>,
    pub leased_by: Option<String>,
    pub created_at: OffsetDateTime,
    pub updated_at: OffsetDateTime,
}

impl Webhook {
    #[must_use]
    pub fn status(&self) -> WebhookStatus {
        match self.disabled {
            Some(_) => WebhookStatus::Disabled,
            None if self.failures >= i64::from(FAILING_THRESHOLD) => WebhookStatus::Failing,
            None => WebhookStatus::Active,
        }
    }
}

/// Filter of endpoints; `None` matches any.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct WebhookFilter {
    /// Filter by partner.
    #[param(inline)]
    #[arg(long = "partner", value_name = "PARTNER_ID")]
    pub partner_id: Option<PartnerId>,
    /// Filter by status.
    #[param(inline)]
    #[arg(long, value_parser = crate::arguments::enum_parser::<WebhookStatus>())]
    pub status: Option<WebhookStatus>,
}
