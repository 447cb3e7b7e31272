//! Row of a webhook endpoint.

use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_domain::event_kind::{EventKind, EventKinds};
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::webhook::{DisabledReason, Webhook};

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
pub(crate) fn parse_kinds(labels: Option<&[String]>) -> EventKinds {
    let Some(labels) = labels else {
        return EventKinds::ALL;
    };
    let kinds: Vec<EventKind> = labels
        .iter()
        .filter_map(|label| EventKind::from_label(label))
        .collect();
    EventKinds::of(&kinds).unwrap_or(EventKinds::ALL)
}
