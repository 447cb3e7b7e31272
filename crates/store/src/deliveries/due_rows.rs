//! Rows of deliveries that wait: those that are due, or those of a failing endpoint, and the time of the
//! next.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use vouchsafe_actors::delivery::outbox::PendingDelivery;
use vouchsafe_actors::delivery::queue::ReadRequest;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::delivery::WebhookEvent;
use vouchsafe_domain::ids::OrderId;

use super::endpoint::{EndpointKey, EndpointSnapshot};
use crate::events::{EventRow, MAX_PAGE_ROWS};

/// Selects rows of deliveries, in this order, with their events.
macro_rules! select_rows {
    ($endpoint:expr, $rows:literal, $order:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query!(
            r#"SELECT e.number, e.order_id AS "order_id: OrderId", e.body, e.created_at,
                      COALESCE((
                      SELECT true
                        FROM orders AS o
                       WHERE o.partner_id = e.partner_id AND o.order_id = e.order_id AND o.erased_at IS NOT NULL
                       LIMIT 1), false) AS "is_erased!",
                      d.number AS "number_due!",
                      d.attempts AS "attempts!",
                      d.replays AS "replays!",
                      extract(epoch FROM d.next_at - now())::float8 AS "due_s!",
                      d.give_up_at AS "give_up_at!"
                 FROM ("# + $rows + r#") AS d
                CROSS JOIN LATERAL (
                      SELECT *
                        FROM events AS e
                       WHERE e.partner_id = d.partner_id AND e.number <= d.number
                       ORDER BY e.number DESC
                       LIMIT 1) AS e
                ORDER BY "# + $order,
            $endpoint.key.partner_id as _,
            $endpoint.key.webhook_id as _,
            $($argument),+
        )
        .try_map(|row| {
            let event = EventRow {
                number: row.number,
                order_id: row.order_id,
                body: row.body,
                created_at: row.created_at,
                is_erased: row.is_erased,
            };
            let events = event.into_committed_events($endpoint.key.partner_id)?;
            Ok(PendingDelivery {
                order_id: events.bundle.order_id,
                event: WebhookEvent {
                    events: Arc::new(events),
                    number: row.number_due,
                },
                attempts: row.attempts.cast_unsigned(),
                replays: row.replays.cast_unsigned(),
                has_row: true,
                is_blocked: false,
                due_in: time::Duration::seconds_f64(row.due_s),
                give_up_in: row.give_up_at - $endpoint.now,
            })
        })
    };
}

/// Reads the rows up to the read position: those that are due by number, or those of a failing endpoint in
/// the order of their next attempts. Only the first waiting row of an order is read.
pub(super) async fn read_before_scan(
    pool: &PgPool,
    endpoint: &EndpointSnapshot,
    request: ReadRequest,
) -> Result<Vec<PendingDelivery>, sqlx::Error> {
    match request {
        ReadRequest::Due { after, .. } => read_by_number(pool, endpoint, request, 0..=after).await,
        ReadRequest::Oldest { after, limit } => read_by_next_attempt(pool, endpoint, after, limit).await,
    }
}

/// Reads the rows with these event numbers that are due, or those that a failing endpoint may attempt. The
/// order of the primary key ends the scan after a page, however many rows wait.
pub(super) async fn read_by_number(
    pool: &PgPool,
    endpoint: &EndpointSnapshot,
    request: ReadRequest,
    numbers: RangeInclusive<i64>,
) -> Result<Vec<PendingDelivery>, sqlx::Error> {
    let due_only = matches!(request, ReadRequest::Due { .. });
    select_rows!(
        endpoint,
        "SELECT *
           FROM deliveries AS d
          WHERE d.partner_id = $1
            AND d.webhook_id = $2
            AND d.state = 'WAITING'
            AND d.next_at < CASE WHEN $3 THEN now() + interval '1 microsecond' ELSE 'infinity'::timestamptz END
            AND d.number BETWEEN $5 AND $6
          ORDER BY d.number
          LIMIT $4",
        "d.number",
        due_only,
        to_bigint(MAX_PAGE_ROWS),
        numbers.start(),
        numbers.end(),
    )
    .fetch_all(pool)
    .await
}

/// The first attempts are those that end first, or are due first if a retry was requested: an index has each
/// in order.
async fn read_by_next_attempt(
    pool: &PgPool,
    endpoint: &EndpointSnapshot,
    after: i64,
    limit: usize,
) -> Result<Vec<PendingDelivery>, sqlx::Error> {
    select_rows!(
        endpoint,
        "SELECT d.*,
                LEAST(CASE WHEN d.number <= $5 THEN d.next_at END, d.give_up_at) AS next_attempt
           FROM ((SELECT *
                    FROM deliveries AS d
                   WHERE d.partner_id = $1
                     AND d.webhook_id = $2
                     AND d.state = 'WAITING'
                     AND d.next_at < 'infinity'
                     AND d.number <= $3
                   ORDER BY d.give_up_at, d.number
                   LIMIT $4)
                 UNION
                 (SELECT *
                    FROM deliveries AS d
                   WHERE $5::bigint > 0
                     AND d.partner_id = $1
                     AND d.webhook_id = $2
                     AND d.state = 'WAITING'
                     AND d.next_at < 'infinity'
                     AND d.number <= LEAST($3, $5)
                   ORDER BY d.next_at, d.number
                   LIMIT $4)) AS d
          ORDER BY next_attempt, d.number
          LIMIT $4",
        "d.next_attempt, d.number",
        after,
        to_bigint(limit),
        endpoint.retry_to,
    )
    .fetch_all(pool)
    .await
}

pub(super) async fn read_next_due(pool: &PgPool, key: EndpointKey) -> Result<Option<Duration>, sqlx::Error> {
    let seconds = sqlx::query_scalar!(
        "SELECT extract(epoch FROM min(next_at) - now())::float8
           FROM deliveries
          WHERE partner_id = $1
            AND webhook_id = $2
            AND state = 'WAITING'
            AND next_at > now()
            AND next_at < 'infinity'",
        key.partner_id as _,
        key.webhook_id as _,
    );
    let seconds = seconds.fetch_one(pool).await?;
    Ok(seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()))
}
