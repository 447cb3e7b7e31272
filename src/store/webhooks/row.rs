//! An endpoint as it is read: what it is, and how it is doing.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;
use vouchsafe_actors::domain::event_kind::{EventKind, EventKinds};
use vouchsafe_actors::domain::ids::{PartnerId, WebhookId};

/// Why an endpoint gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "Why an endpoint gets nothing: `PARTNER` (you switched it off), `GONE` (it answered 410)."
)]
pub enum DisabledReason {
    /// The partner switched it off.
    Partner,
    Gone,
}

/// How an endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(
    description = "How an endpoint is: `active`, `failing` (its last attempt failed; it goes on being tried), `disabled`."
)]
pub enum WebhookStatus {
    /// It takes what it gets.
    Active,
    /// Its last attempt failed.
    Failing,
    Disabled,
}

impl WebhookStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Active, Self::Failing, Self::Disabled];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Failing => "failing",
            Self::Disabled => "disabled",
        }
    }
}

/// An endpoint, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub partner_id: PartnerId,
    pub webhook_id: WebhookId,
    pub url: String,
    /// What it asks for.
    pub kinds: EventKinds,
    /// What the partner calls it.
    pub description: Option<String>,
    /// Why it gets nothing, and since when; `None` while it is switched on.
    pub disabled: Option<(DisabledReason, OffsetDateTime)>,
    /// Until when its former secret signs, too.
    pub previous_until: Option<OffsetDateTime>,
    /// Failed attempts in a row.
    pub failures: i64,
    /// When the first of them was.
    pub failing_since: Option<OffsetDateTime>,
    /// When what failed is tried next.
    pub next_attempt_at: Option<OffsetDateTime>,
    /// Attempts that were taken, ever.
    pub delivered: i64,
    /// Attempts that were not.
    pub refused: i64,
    /// How many events it has not seen to; those too that it does not ask for.
    pub behind: i64,
    /// When the oldest of them was committed.
    pub oldest_event_at: Option<OffsetDateTime>,
    pub leased_by: Option<String>,
    /// When it was registered.
    pub created_at: OffsetDateTime,
    /// When it was last changed.
    pub updated_at: OffsetDateTime,
}

impl Webhook {
    /// How it is.
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
        let reason = row.disabled_reason.as_deref().map(|word| match word {
            "GONE" => DisabledReason::Gone,
            _ => DisabledReason::Partner,
        });
        Ok(Self {
            partner_id: PartnerId::from_uuid(row.partner_id),
            webhook_id: WebhookId::from_uuid(row.webhook_id),
            url: row.url,
            kinds: kinds_of(row.events.as_deref()),
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

/// The kinds that these words name; all where there are none.
pub(in crate::store) fn kinds_of(words: Option<&[String]>) -> EventKinds {
    let Some(words) = words else {
        return EventKinds::ALL;
    };
    let kinds: Vec<EventKind> = words
        .iter()
        .filter_map(|word| EventKind::from_word(word))
        .collect();
    EventKinds::of(&kinds).unwrap_or(EventKinds::ALL)
}
