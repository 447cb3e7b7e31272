//! Delivery lists with attempts. Only failed, blocked and replayed deliveries have rows.

use sqlx::PgPool;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::delivery::view::{DeliveryFilter, DeliveryState, DeliveryView};
use vouchsafe_domain::delivery::{DeliveryAttempt, WebhookEvent};
use vouchsafe_domain::ids::{DeliveryId, EventId, OrderId, PartnerId, WebhookId};

use crate::deliveries::DeliveryLog;
use crate::events::find_event;
use vouchsafe_database::database::Statement;

/// Selects deliveries with the rest of a statement. `next_at = 'infinity'` marks a delivery that waits for an
/// earlier one; it reads as null.
macro_rules! select_deliveries {
    ($rest:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query!(
            r#"SELECT d.delivery_id AS "delivery_id: DeliveryId", d.partner_id AS "partner_id: PartnerId",
                      d.webhook_id AS "webhook_id: WebhookId", d.number, d.order_id AS "order_id: OrderId",
                      d.state AS "state: DeliveryState", d.attempts,
                      CASE
                          WHEN d.state = 'WAITING'
                           AND d.next_at < 'infinity'
                           AND NOT EXISTS (
                                   SELECT
                                     FROM webhooks AS w
                                    WHERE w.partner_id = d.partner_id
                                      AND w.webhook_id = d.webhook_id
                                      AND w.disabled_reason IS NOT NULL
                               ) THEN GREATEST(d.next_at, now())
                      END AS next_at,
                      d.log AS "log: Json<Vec<DeliveryAttempt>>", d.event_at, d.updated_at
                 FROM deliveries AS d "# + $rest,
            $($argument),+
        )
        .map(|row| DeliveryView {
            delivery_id: row.delivery_id,
            partner_id: row.partner_id,
            webhook_id: row.webhook_id,
            event_id: EventId::for_number(row.partner_id, row.number, row.event_at),
            order_id: row.order_id,
            state: row.state,
            attempts: row.attempts,
            next_attempt_at: row.next_at,
            log: row.log.0,
            event_at: row.event_at,
            updated_at: row.updated_at,
        })
    };
}

/// Finds a delivery.
pub(super) fn find_delivery(
    delivery_id: DeliveryId,
) -> Statement<impl FnMut(PgRow) -> Result<DeliveryView, sqlx::Error> + Send + use<>> {
    select_deliveries!("WHERE d.delivery_id = $1", delivery_id as _)
}

impl DeliveryLog {
    /// Finds a delivery.
    #[boxed]
    pub async fn find(&self, delivery_id: DeliveryId) -> Result<Option<DeliveryView>, StoreError> {
        self.0.fetch_optional(find_delivery(delivery_id)).await
    }

    /// Finds a delivery, and its event unless that has left the feed.
    #[boxed]
    pub async fn find_with_event(
        &self,
        delivery_id: DeliveryId,
    ) -> Result<Option<(DeliveryView, Option<WebhookEvent>)>, StoreError> {
        self.0
            .run(move |pool| async move {
                let Some(delivery) = find_delivery(delivery_id).fetch_optional(&pool).await? else {
                    return Ok(None);
                };
                let event = find_event(&pool, delivery.partner_id, delivery.event_id).await?;
                Ok(Some((delivery, event)))
            })
            .await
    }

    /// Finds an event in the partner's feed.
    #[boxed]
    pub async fn find_event(
        &self,
        partner_id: PartnerId,
        event_id: EventId,
    ) -> Result<Option<WebhookEvent>, StoreError> {
        self.0
            .run(move |pool| async move { find_event(&pool, partner_id, event_id).await })
            .await
    }

    /// The number of the newest event of a partner; 0 without any.
    #[boxed]
    pub async fn last_event_number(&self, partner_id: PartnerId) -> Result<i64, StoreError> {
        let last = sqlx::query!(
            "SELECT last_number FROM feeds WHERE partner_id = $1",
            partner_id as _
        )
        .map(|row| row.last_number);
        Ok(self.0.fetch_optional(last).await?.unwrap_or(0))
    }

    /// Lists up to `limit` deliveries older than `before`, newest first.
    #[boxed]
    pub async fn list(
        &self,
        filter: DeliveryFilter,
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<DeliveryView>, StoreError> {
        let statement = select_deliveries!(
            "WHERE ($1::uuid IS NULL OR d.partner_id = $1)
               AND ($2::uuid IS NULL OR d.webhook_id = $2)
               AND ($3::uuid IS NULL OR d.order_id = $3)
               AND ($4::text IS NULL OR d.state = $4)
               AND ($5::uuid IS NULL OR d.delivery_id < $5)
             ORDER BY d.delivery_id DESC
             LIMIT $6",
            filter.partner_id as _,
            filter.webhook_id as _,
            filter.order_id as _,
            filter.state as _,
            before as _,
            to_bigint(limit),
        );
        self.0.fetch_all(statement).await
    }

    /// Deletes deliveries that ended before the feed's retention period, in batches, and returns their
    /// number.
    #[boxed]
    pub async fn purge_ended(&self) -> Result<u64, StoreError> {
        let mut removed = 0;
        loop {
            let batch = self.0.run(|pool| async move { purge_batch(&pool).await });
            let batch = batch.await?;
            removed += batch;
            if batch < PURGE_ROWS {
                return Ok(removed);
            }
        }
    }
}

/// Rows per statement, which takes about ten milliseconds.
const PURGE_ROWS: u64 = 10_000;

/// Deletes up to [`PURGE_ROWS`] deliveries and returns their number.
async fn purge_batch(pool: &PgPool) -> Result<u64, sqlx::Error> {
    let purged = sqlx::query!(
        "DELETE FROM deliveries
          WHERE ctid = ANY (ARRAY(
                SELECT ctid
                  FROM deliveries
                 WHERE state <> 'WAITING' AND updated_at < now() - make_interval(days => $1)
                 ORDER BY updated_at
                 LIMIT $2
                   FOR UPDATE SKIP LOCKED
                ))",
        crate::events::FEED_DAYS,
        PURGE_ROWS.cast_signed(),
    );
    Ok(purged.execute(pool).await?.rows_affected())
}
