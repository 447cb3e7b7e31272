//! Events of one order, for operators. The partner's feed is numbered by partner: the first event is looked for around the time of
//! the order, the later ones have an index.

use sqlx::PgPool;
use time::{Duration, OffsetDateTime};
use vouchsafe_domain::delivery::CommittedEvents;
use vouchsafe_domain::ids::{OrderId, PartnerId};

use super::Orders;
use crate::audit::to_bigint;
use crate::events::EventRow;

/// More than the clocks of the nodes and of the database differ, and than an order waits for its commit.
const COMMIT_WINDOW: Duration = Duration::minutes(5);

impl Orders {
    /// Lists the events of an order after the one with the sequence number `after`, oldest first, with one entry for each of up to
    /// `limit` commits.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer, or has events that cannot be decoded.
    pub async fn list_events(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
        created_at: OffsetDateTime,
        after: u32,
        limit: usize,
    ) -> Result<Vec<CommittedEvents>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let rows = list_rows(&pool, partner_id, order_id, created_at, after, limit).await?;
                rows.into_iter()
                    .map(|row| row.into_committed_events(partner_id))
                    .collect()
            })
            .await
    }
}

async fn list_rows(
    pool: &PgPool,
    partner_id: PartnerId,
    order_id: OrderId,
    created_at: OffsetDateTime,
    after: u32,
    limit: usize,
) -> Result<Vec<EventRow>, sqlx::Error> {
    sqlx::query_as!(
        EventRow,
        r#"SELECT b.number AS "number!",
                  b.order_id AS "order_id!: OrderId",
                  b.body AS "body!",
                  b.created_at AS "created_at!"
             FROM (
                   (SELECT *
                      FROM events AS e
                     WHERE e.partner_id = $1
                       AND e.order_id = $2
                       AND e.first_sequence = 1
                       AND e.number > last_event_before_v1($1, $3)
                       AND e.number <= last_event_before_v1($1, $4)
                     ORDER BY e.number
                     LIMIT 1)
                   UNION ALL
                   SELECT *
                     FROM events AS e
                    WHERE e.partner_id = $1 AND e.order_id = $2 AND e.first_sequence > 1
                  ) AS b
            WHERE (b.first_sequence + b.count - 1)::bigint > $5
            ORDER BY b.number
            LIMIT $6"#,
        partner_id as _,
        order_id as _,
        created_at - COMMIT_WINDOW,
        created_at + COMMIT_WINDOW,
        i64::from(after),
        to_bigint(limit),
    )
    .fetch_all(pool)
    .await
}
