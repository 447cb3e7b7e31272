//! Webhook endpoints of partners: registration, delivery progress and health.
//!
//! Secrets are stored sealed. A change revokes the lease of the delivering node, so the next delivery uses
//! the new settings. An endpoint receives the events committed after its registration; after re-enabling,
//! those of the last 24 hours.
//!
//! Lock order: the partner's row, webhooks, webhook_progress.

mod change;
mod put;
mod retry;

use sqlx::postgres::PgRow;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::delivery::{SealedSecret, WebhookTarget};
use vouchsafe_domain::event_kind::{EventKind, EventKinds};
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::webhook::{DisabledReason, FAILING_THRESHOLD, Webhook, WebhookFilter};

use vouchsafe_database::database::{Database, Statement};

pub use change::WebhookSecretRotation;
pub use put::{PutWebhookOutcome, PutWebhookRequest};

/// Maximum of endpoints per partner (contract §3).
pub const MAX_WEBHOOKS: i64 = 10;

/// Selects endpoints with the rest of a statement.
macro_rules! select_webhooks {
    ($rest:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query!(
            r#"SELECT w.partner_id AS "partner_id: PartnerId", w.webhook_id AS "webhook_id: WebhookId", w.url, w.events,
                      w.description, w.disabled_reason AS "disabled_reason: DisabledReason", w.disabled_at,
                      w.previous_until, w.created_at, w.updated_at, p.failures, p.failing_since, p.delivered,
                      CASE WHEN p.due_at IS NOT NULL THEN GREATEST(p.due_at, now()) END AS due_at,
                      p.refused, p.leased_by, COALESCE(f.last_number, 0) - p.cursor AS "behind!",
                      (SELECT e.created_at
                         FROM events AS e
                        WHERE e.partner_id = w.partner_id AND e.number > p.cursor AND p.cursor < f.last_number
                        ORDER BY e.number
                        LIMIT 1) AS oldest_event_at
                 FROM webhooks AS w
                 JOIN webhook_progress AS p ON p.partner_id = w.partner_id AND p.webhook_id = w.webhook_id
                 LEFT JOIN feeds AS f ON f.partner_id = w.partner_id "# + $rest,
            $($argument),+
        )
        .map(|row| Webhook {
            partner_id: row.partner_id,
            webhook_id: row.webhook_id,
            url: row.url,
            kinds: EventKinds::from_labels(row.events.as_deref()),
            description: row.description,
            next_attempt_at: row.due_at.filter(|_| row.disabled_reason.is_none()),
            disabled: row.disabled_reason.zip(row.disabled_at),
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
    };
}

/// Webhook endpoints of the partners.
#[derive(Debug, Clone)]
pub struct Webhooks(pub(super) Database);

impl Webhooks {
    /// Lists the endpoints of a partner, oldest first.
    #[boxed]
    pub async fn list_by_partner(&self, partner_id: PartnerId) -> Result<Vec<Webhook>, StoreError> {
        let statement = select_webhooks!("WHERE w.partner_id = $1 ORDER BY w.webhook_id", partner_id as _);
        self.0.fetch_all(statement).await
    }

    /// Finds an endpoint, of this partner if given.
    #[boxed]
    pub async fn find(
        &self,
        partner_id: Option<PartnerId>,
        webhook_id: WebhookId,
    ) -> Result<Option<Webhook>, StoreError> {
        self.0.fetch_optional(find(partner_id, webhook_id)).await
    }

    /// Lists up to `limit` endpoints older than `before`, newest first.
    #[boxed]
    pub async fn list(
        &self,
        filter: WebhookFilter,
        before: Option<WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, StoreError> {
        let statement = select_webhooks!(
            "WHERE ($1::uuid IS NULL OR w.partner_id = $1)
               AND ($2::uuid IS NULL OR w.webhook_id < $2)
               AND ($3::text IS NULL
                    OR $3 = CASE WHEN NOT w.enabled THEN 'disabled'
                                 WHEN p.failures < $5 THEN 'active'
                                 ELSE 'failing' END)
             ORDER BY w.webhook_id DESC
             LIMIT $4",
            filter.partner_id as _,
            before as _,
            filter.status.map(|status| status.into_str()),
            to_bigint(limit),
            FAILING_THRESHOLD.cast_signed(),
        );
        self.0.fetch_all(statement).await
    }

    /// Finds URL and sealed secrets of an endpoint, for a test delivery.
    #[boxed]
    pub async fn find_target(
        &self,
        partner_id: PartnerId,
        webhook_id: WebhookId,
    ) -> Result<Option<WebhookTarget>, StoreError> {
        let statement = sqlx::query!(
            "SELECT url, secret, previous_secret, previous_until
               FROM webhooks
              WHERE partner_id = $1 AND webhook_id = $2",
            partner_id as _,
            webhook_id as _,
        )
        .map(move |row| WebhookTarget {
            partner_id,
            webhook_id,
            url: row.url,
            secret: SealedSecret(row.secret.into()),
            previous_secret: row
                .previous_secret
                .map(|secret| SealedSecret(secret.into()))
                .zip(row.previous_until),
        });
        self.0.fetch_optional(statement).await
    }
}

fn find(
    partner_id: Option<PartnerId>,
    webhook_id: WebhookId,
) -> Statement<impl FnMut(PgRow) -> Result<Webhook, sqlx::Error> + Send + use<>> {
    select_webhooks!(
        "WHERE w.webhook_id = $1 AND ($2::uuid IS NULL OR w.partner_id = $2)",
        webhook_id as _,
        partner_id as _,
    )
}

/// Event kinds as stored; `None` stands for all kinds.
fn stored_kinds(kinds: EventKinds) -> Option<Vec<EventKind>> {
    (kinds != EventKinds::DEFAULT).then(|| kinds.iter().collect())
}
