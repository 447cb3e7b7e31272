//! Webhook endpoints of partners: registration, delivery progress and health.
//!
//! Secrets are stored sealed. A change revokes the lease of the delivering node, so the next delivery uses the new settings. An
//! endpoint receives the events committed after its registration; after re-enabling, those of the last 24 hours.
//!
//! Lock order: the partner's row, webhooks, webhook_progress.

mod change;
mod row;

use sqlx::PgConnection;
use vouchsafe_domain::delivery::{SealedSecret, WebhookTarget};
use vouchsafe_domain::event_kind::EventKinds;
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::webhook::{Webhook, WebhookFilter, WebhookStatus};

use super::audit::to_bigint;
use super::database::Database;
pub use change::{PutWebhookOutcome, PutWebhookRequest, WebhookSecretRotation};
use row::WebhookRow;
pub(super) use row::parse_kinds;

/// Maximum of endpoints per partner (contract §3).
pub const MAX_WEBHOOKS: i64 = 10;

const SELECT_WEBHOOKS: &str =
    "SELECT w.*, p.failures, p.failing_since, p.due_at, p.delivered, p.refused, p.leased_by,
                COALESCE(f.last_number, 0) - p.cursor AS behind,
                (SELECT e.created_at
                   FROM events AS e
                  WHERE e.partner_id = w.partner_id AND e.number > p.cursor AND p.cursor < f.last_number
                  ORDER BY e.number
                  LIMIT 1) AS oldest_event_at
           FROM webhooks AS w
           JOIN webhook_progress AS p ON p.partner_id = w.partner_id AND p.webhook_id = w.webhook_id
           LEFT JOIN feeds AS f ON f.partner_id = w.partner_id";

/// Webhook endpoints of the partners.
#[derive(Debug, Clone)]
pub struct Webhooks(pub(super) Database);

impl Webhooks {
    /// Lists the endpoints of a partner, oldest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_by_partner(&self, partner_id: PartnerId) -> Result<Vec<Webhook>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let found: Vec<WebhookRow> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
                    "{SELECT_WEBHOOKS} WHERE w.partner_id = $1 ORDER BY w.webhook_id"
                )))
                .bind(partner_id.as_uuid())
                .fetch_all(&pool)
                .await?;
                found.into_iter().map(Webhook::try_from).collect()
            })
            .await
    }

    /// Finds an endpoint, of this partner if given.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find(
        &self,
        partner_id: Option<PartnerId>,
        webhook_id: WebhookId,
    ) -> Result<Option<Webhook>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut connection = pool.acquire().await?;
                find(&mut connection, partner_id, webhook_id).await
            })
            .await
    }

    /// Lists up to `limit` endpoints older than `before`, newest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list(
        &self,
        filter: WebhookFilter,
        before: Option<WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let found: Vec<WebhookRow> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
                    "{SELECT_WEBHOOKS}
                 WHERE ($1::uuid IS NULL OR w.partner_id = $1)
                   AND ($2::uuid IS NULL OR w.webhook_id < $2)
                   AND ($3::text IS NULL
                        OR $3 = CASE WHEN NOT w.enabled THEN 'disabled'
                                     WHEN p.failing_since IS NULL THEN 'active'
                                     ELSE 'failing' END)
                 ORDER BY w.webhook_id DESC
                 LIMIT $4"
                )))
                .bind(filter.partner_id.map(PartnerId::as_uuid))
                .bind(before.map(WebhookId::as_uuid))
                .bind(filter.status.map(WebhookStatus::as_str))
                .bind(to_bigint(limit))
                .fetch_all(&pool)
                .await?;
                found.into_iter().map(Webhook::try_from).collect()
            })
            .await
    }

    /// Finds URL and sealed secrets of an endpoint, for a test delivery.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_target(
        &self,
        partner_id: PartnerId,
        webhook_id: WebhookId,
    ) -> Result<Option<WebhookTarget>, sqlx::Error> {
        type Row = (String, Vec<u8>, Option<Vec<u8>>, Option<time::OffsetDateTime>);
        self.0
            .run(move |pool| async move {
                let row: Option<Row> = sqlx::query_as(
                    "SELECT url, secret, previous_secret, previous_until
                   FROM webhooks
                  WHERE partner_id = $1 AND webhook_id = $2",
                )
                .bind(partner_id.as_uuid())
                .bind(webhook_id.as_uuid())
                .fetch_optional(&pool)
                .await?;
                let sealed = |bytes: Vec<u8>| SealedSecret(bytes.into());
                Ok(row.map(|(url, secret, previous, until)| WebhookTarget {
                    partner_id,
                    webhook_id,
                    url,
                    secret: sealed(secret),
                    previous_secret: previous.map(sealed).zip(until),
                }))
            })
            .await
    }
}

async fn find(
    connection: &mut PgConnection,
    partner_id: Option<PartnerId>,
    webhook_id: WebhookId,
) -> Result<Option<Webhook>, sqlx::Error> {
    let row: Option<WebhookRow> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
        "{SELECT_WEBHOOKS} WHERE w.webhook_id = $1 AND ($2::uuid IS NULL OR w.partner_id = $2)"
    )))
    .bind(webhook_id.as_uuid())
    .bind(partner_id.map(PartnerId::as_uuid))
    .fetch_optional(connection)
    .await?;
    row.map(Webhook::try_from).transpose()
}

/// Labels of event kinds as stored; `None` stands for all kinds.
fn kind_labels(kinds: EventKinds) -> Option<Vec<String>> {
    (kinds != EventKinds::ALL).then(|| kinds.iter().map(|kind| kind.as_str().to_owned()).collect())
}
