//! Events of one order, for operators. The partner's feed is numbered by partner: the first event is looked
//! for around the time of the order, the later ones have an index.

use sqlx::PgPool;
use time::{Duration, OffsetDateTime};
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::delivery::CommittedEvents;
use vouchsafe_domain::ids::{OrderId, PartnerId};

use super::Orders;
use crate::events::EventRow;

/// Time before and after the creation of an order in which its first event was committed. The second is for
/// clocks that differ; it has many events of a busy partner, so that it is searched only if the first has not
/// the event.
const COMMIT_WINDOWS: [(Duration, Duration); 2] = [
    (Duration::seconds(1), Duration::seconds(5)),
    (Duration::minutes(5), Duration::minutes(5)),
];

impl Orders {
    /// Lists the events of an order after the one with the sequence number `after`, oldest first, with one
    /// entry for each of up to `limit` commits.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer, or has events that cannot be decoded.
    #[boxed]
    pub async fn list_events(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
        created_at: OffsetDateTime,
        after: u32,
        limit: usize,
    ) -> Result<Vec<CommittedEvents>, StoreError> {
        self.0
            .run(move |pool| async move {
                let first = find_first(&pool, partner_id, order_id, created_at).await?;
                let rows = list_rows(&pool, partner_id, order_id, first, after, limit).await?;
                rows.into_iter()
                    .map(|row| row.into_committed_events(partner_id))
                    .collect()
            })
            .await
    }
}

/// The number of the order's first event.
async fn find_first(
    pool: &PgPool,
    partner_id: PartnerId,
    order_id: OrderId,
    created_at: OffsetDateTime,
) -> Result<Option<i64>, sqlx::Error> {
    for (before, after) in COMMIT_WINDOWS {
        // The bounds are computed once, and not for each event.
        let found = sqlx::query_scalar!(
            "SELECT e.number
               FROM (SELECT last_event_before_v2($1, $3) AS first, last_event_before_v2($1, $4) AS last OFFSET 0) AS w
              CROSS JOIN LATERAL (
                    SELECT *
                      FROM events AS e
                     WHERE e.partner_id = $1 AND e.number > w.first AND e.number <= w.last
                    OFFSET 0
                   ) AS e
              WHERE e.order_id = $2 AND e.first_sequence = 1
              LIMIT 1",
            partner_id as _,
            order_id as _,
            created_at - before,
            created_at + after,
        );
        if let Some(number) = found.fetch_optional(pool).await? {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

async fn list_rows(
    pool: &PgPool,
    partner_id: PartnerId,
    order_id: OrderId,
    first: Option<i64>,
    after: u32,
    limit: usize,
) -> Result<Vec<EventRow>, sqlx::Error> {
    sqlx::query_as!(
        EventRow,
        r#"SELECT b.number AS "number!",
                  b.order_id AS "order_id!: OrderId",
                  b.body AS "body!",
                  b.created_at AS "created_at!",
                  COALESCE((
                      SELECT true
                        FROM orders AS o
                       WHERE o.partner_id = b.partner_id AND o.order_id = b.order_id AND o.erased_at IS NOT NULL
                       LIMIT 1), false) AS "is_erased!"
             FROM (
                   SELECT * FROM events AS e WHERE e.partner_id = $1 AND e.number = $3
                   UNION ALL
                   SELECT *
                     FROM events AS e
                    WHERE e.partner_id = $1 AND e.order_id = $2 AND e.first_sequence > 1
                  ) AS b
            WHERE (b.first_sequence + b.count - 1)::bigint > $4
            ORDER BY b.number
            LIMIT $5"#,
        partner_id as _,
        order_id as _,
        first,
        i64::from(after),
        to_bigint(limit),
    )
    .fetch_all(pool)
    .await
}
