//! Delivery lists with attempts. Only failed, blocked and replayed deliveries have rows.

use sqlx::types::Json;
use time::OffsetDateTime;
use vouchsafe_domain::delivery::DeliveryAttempt;
use vouchsafe_domain::delivery::view::{DeliveryFilter, DeliveryState, DeliveryView};
use vouchsafe_domain::ids::{DeliveryId, EventId, OrderId, PartnerId, WebhookId};

use crate::audit::to_bigint;
use crate::deliveries::DeliveryLog;

#[derive(sqlx::FromRow)]
pub(super) struct DeliveryRow {
    delivery_id: DeliveryId,
    partner_id: PartnerId,
    webhook_id: WebhookId,
    number: i64,
    order_id: OrderId,
    state: DeliveryState,
    attempts: i32,
    next_at: Option<OffsetDateTime>,
    log: Json<Vec<DeliveryAttempt>>,
    event_at: OffsetDateTime,
    updated_at: OffsetDateTime,
}

/// `next_at = 'infinity'` marks a delivery that waits for an earlier one; it reads as null.
pub(super) const COLUMNS: &str =
    "d.delivery_id, d.partner_id, d.webhook_id, d.number, d.order_id, d.state, d.attempts,
                CASE WHEN d.state = 'WAITING' AND d.next_at < 'infinity' THEN d.next_at END AS next_at, d.log,
                d.event_at, d.updated_at";

impl TryFrom<DeliveryRow> for DeliveryView {
    type Error = sqlx::Error;

    fn try_from(row: DeliveryRow) -> Result<Self, sqlx::Error> {
        let partner_id = row.partner_id;
        Ok(Self {
            delivery_id: row.delivery_id,
            partner_id,
            webhook_id: row.webhook_id,
            event_id: EventId::for_number(partner_id, row.number, row.event_at),
            order_id: row.order_id,
            state: row.state,
            attempts: row.attempts,
            next_attempt_at: row.next_at,
            log: row.log.0,
            event_at: row.event_at,
            updated_at: row.updated_at,
        })
    }
}

impl DeliveryLog {
    /// Lists up to `limit` deliveries older than `before`, newest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list(
        &self,
        filter: DeliveryFilter,
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<DeliveryView>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let found: Vec<DeliveryRow> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
                    "SELECT {COLUMNS}
                   FROM deliveries AS d
                  WHERE ($1::uuid IS NULL OR d.partner_id = $1)
                    AND ($2::uuid IS NULL OR d.webhook_id = $2)
                    AND ($3::uuid IS NULL OR d.order_id = $3)
                    AND ($4::text IS NULL OR d.state = $4)
                    AND ($5::uuid IS NULL OR d.delivery_id < $5)
                  ORDER BY d.delivery_id DESC
                  LIMIT $6"
                )))
                .bind(filter.partner_id)
                .bind(filter.webhook_id)
                .bind(filter.order_id)
                .bind(filter.state)
                .bind(before)
                .bind(to_bigint(limit))
                .fetch_all(&pool)
                .await?;
                found.into_iter().map(DeliveryView::try_from).collect()
            })
            .await
    }

    /// Deletes deliveries that ended before the feed's retention period, and returns their number.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn purge_ended(&self) -> Result<u64, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let purged = sqlx::query(
                    "DELETE FROM deliveries AS d
                  USING (SELECT partner_id, webhook_id, number
                           FROM deliveries
                          WHERE state <> 'WAITING' AND updated_at < now() - make_interval(days => $1)
                          ORDER BY updated_at
                          LIMIT $2
                            FOR UPDATE SKIP LOCKED) AS o
                  WHERE d.partner_id = o.partner_id AND d.webhook_id = o.webhook_id AND d.number = o.number",
                )
                .bind(crate::events::FEED_DAYS)
                .bind(PURGE_ROWS)
                .execute(&pool)
                .await?;
                Ok(purged.rows_affected())
            })
            .await
    }
}

/// Rows per statement, which takes about ten milliseconds.
const PURGE_ROWS: i64 = 10_000;
