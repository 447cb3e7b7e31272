//! Endpoints: where a partner is told of its events, and how each of them is doing.
//!
//! Rules: secrets are kept sealed. A change takes the lease away from whoever delivers, so that the next delivery goes by
//! what is new. An endpoint gets the events from its registration on, and after a time off those of the last 24 hours.
//!
//! Locks: the partner's row, webhooks, webhook_progress.

mod change;
mod row;

use sqlx::PgConnection;
use vouchsafe_actors::domain::delivery::{SealedSecret, Target};
use vouchsafe_actors::domain::event_kind::EventKinds;
use vouchsafe_actors::domain::ids::{PartnerId, WebhookId};

use super::PgStore;
use super::audit::rows;
pub use change::{PutOutcome, PutWebhook, WebhookRotation};
use row::WebhookRow;
pub(super) use row::kinds_of;
pub use row::{DisabledReason, Webhook, WebhookStatus};

/// Most endpoints of a partner (contract §3).
pub const MAX_WEBHOOKS: i64 = 10;

/// Which endpoints a list of operators shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct WebhookFilter {
    /// Of whom; everybody's without it.
    pub partner_id: Option<PartnerId>,
    pub status: Option<WebhookStatus>,
}

const SHOWN: &str = "SELECT w.*, p.failures, p.failing_since, p.due_at, p.delivered, p.refused, p.leased_by,
                COALESCE(f.last_number, 0) - p.cursor AS behind,
                (SELECT e.created_at
                   FROM events AS e
                  WHERE e.partner_id = w.partner_id AND e.number > p.cursor AND p.cursor < f.last_number
                  ORDER BY e.number
                  LIMIT 1) AS oldest_event_at
           FROM webhooks AS w
           JOIN webhook_progress AS p ON p.partner_id = w.partner_id AND p.webhook_id = w.webhook_id
           LEFT JOIN feeds AS f ON f.partner_id = w.partner_id";

impl PgStore {
    /// The endpoints of a partner, oldest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn webhooks_of(&self, partner_id: PartnerId) -> Result<Vec<Webhook>, sqlx::Error> {
        self.run(move |pool| async move {
            let found: Vec<WebhookRow> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
                "{SHOWN} WHERE w.partner_id = $1 ORDER BY w.webhook_id"
            )))
            .bind(partner_id.as_uuid())
            .fetch_all(&pool)
            .await?;
            found.into_iter().map(Webhook::try_from).collect()
        })
        .await
    }

    /// An endpoint, of this partner if one is named.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_webhook(
        &self,
        partner_id: Option<PartnerId>,
        webhook_id: WebhookId,
    ) -> Result<Option<Webhook>, sqlx::Error> {
        self.run(move |pool| async move {
            let mut connection = pool.acquire().await?;
            find(&mut connection, partner_id, webhook_id).await
        })
        .await
    }

    /// Up to `limit` endpoints, newest first, of those before `before`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_webhooks(
        &self,
        filter: WebhookFilter,
        before: Option<WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, sqlx::Error> {
        self.run(move |pool| async move {
            let found: Vec<WebhookRow> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
                "{SHOWN}
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
            .bind(rows(limit))
            .fetch_all(&pool)
            .await?;
            found.into_iter().map(Webhook::try_from).collect()
        })
        .await
    }

    /// Where a test goes, and what signs it.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn webhook_target(
        &self,
        partner_id: PartnerId,
        webhook_id: WebhookId,
    ) -> Result<Option<Target>, sqlx::Error> {
        type Row = (String, Vec<u8>, Option<Vec<u8>>, Option<time::OffsetDateTime>);
        self.run(move |pool| async move {
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
            Ok(row.map(|(url, secret, previous, until)| Target {
                partner_id,
                webhook_id,
                url,
                secret: sealed(secret),
                previous: previous.map(sealed).zip(until),
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
        "{SHOWN} WHERE w.webhook_id = $1 AND ($2::uuid IS NULL OR w.partner_id = $2)"
    )))
    .bind(webhook_id.as_uuid())
    .bind(partner_id.map(PartnerId::as_uuid))
    .fetch_optional(connection)
    .await?;
    row.map(Webhook::try_from).transpose()
}

/// The words of kinds, as they are kept.
fn words_of(kinds: EventKinds) -> Option<Vec<String>> {
    (kinds != EventKinds::ALL).then(|| kinds.iter().map(|kind| kind.as_str().to_owned()).collect())
}
