//! Webhook endpoint and its row.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;
use vouchsafe_domain::event_kind::{EventKind, EventKinds};
use vouchsafe_domain::ids::{PartnerId, WebhookId};

/// Why an endpoint is disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "Why an endpoint is disabled: `PARTNER` (you disabled it) or `GONE` (it responded with 410)."
)]
pub enum DisabledReason {
    /// The partner disabled it.
    Partner,
    /// It responded with 410.
    Gone,
}

/// Status of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(
    description = "Status of an endpoint: `active`, `failing` (the last attempt failed; retries continue) or `disabled`."
)]
pub enum WebhookStatus {
    Active,
    /// The last attempt failed.
    Failing,
    Disabled,
}

impl WebhookStatus {
    pub const ALL: [Self; 3] = [Self::Active, Self::Failing, Self::Disabled];

    /// Label in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Failing => "failing",
            Self::Disabled => "disabled",
        }
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
    /// Until when the previous secret signs in addition.
    pub previous_until: Option<OffsetDateTime>,
    pub failures: i64,
    /// Time of the first consecutive failure.
    pub failing_since: Option<OffsetDateTime>,
    /// Time of the next retry.
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
    pub const fn status(&self) -> WebhookStatus {
        match (self.disabled, self.failing_since) {
            (Some(_), _) => WebhookStatus::Disabled,
            (None, Some(_)) => WebhookStatus::Failing,
            (None, None) => WebhookStatus::Active,
        }
    }
}

#[derive(sqlx::FromRow)]
pub(super) struct WebhookRow {
    partner_id: Uuid,
    webhook_id: Uuid,
    url: String,
    events: Option<Vec<String>>,
    description: Option<String>,
    disabled_reason: Option<String>,
    disabled_at: Option<OffsetDateTime>,
    previous_until: Option<OffsetDateTime>,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    failures: i32,
    failing_since: Option<OffsetDateTime>,
    due_at: Option<OffsetDateTime>,
    delivered: i64,
    refused: i64,
    leased_by: Option<String>,
    behind: i64,
    oldest_event_at: Option<OffsetDateTime>,
}

impl TryFrom<WebhookRow> for Webhook {
    type Error = sqlx::Error;

    fn try_from(row: WebhookRow) -> Result<Self, sqlx::Error> {
        let reason = row.disabled_reason.as_deref().map(|label| match label {
            "GONE" => DisabledReason::Gone,
            _ => DisabledReason::Partner,
        });
        Ok(Self {
            partner_id: PartnerId::from_uuid(row.partner_id),
            webhook_id: WebhookId::from_uuid(row.webhook_id),
            url: row.url,
            kinds: parse_kinds(row.events.as_deref()),
            description: row.description,
            next_attempt_at: row.due_at.filter(|_| reason.is_none()),
            disabled: reason.zip(row.disabled_at),
            previous_until: row.previous_until,
            failures: i64::from(row.failures),
            failing_since: row.failing_since,
            delivered: row.delivered,
            refused: row.refused,
            behind: row.behind.max(0),
            oldest_event_at: row.oldest_event_at,
            leased_by: row.leased_by,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// Parses stored labels; `None` stands for all kinds.
pub(in crate::store) fn parse_kinds(labels: Option<&[String]>) -> EventKinds {
    let Some(labels) = labels else {
        return EventKinds::ALL;
    };
    let kinds: Vec<EventKind> = labels
        .iter()
        .filter_map(|label| EventKind::from_label(label))
        .collect();
    EventKinds::of(&kinds).unwrap_or(EventKinds::ALL)
}
