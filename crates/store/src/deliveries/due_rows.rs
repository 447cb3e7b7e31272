//! Rows of deliveries that wait: those that are due, or the oldest, and the time of the next.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use time::OffsetDateTime;
use vouchsafe_actors::delivery::outbox::PendingDelivery;
use vouchsafe_actors::delivery::queue::ReadRequest;
use vouchsafe_domain::delivery::WebhookEvent;

use super::endpoint::{EndpointKey, EndpointSnapshot};
use crate::audit::to_bigint;
use crate::events::{EventRow, MAX_PAGE_ROWS};

#[derive(sqlx::FromRow)]
struct DueRow {
    #[sqlx(flatten)]
    event: EventRow,
    number_due: i64,
    attempts: i32,
    replays: i32,
    due_s: f64,
    give_up_at: OffsetDateTime,
}

/// Reads the rows with these event numbers that are due, or the oldest waiting ones.
pub(super) async fn read_due_rows(
    pool: &PgPool,
    endpoint: &EndpointSnapshot,
    request: ReadRequest,
    numbers: RangeInclusive<i64>,
) -> Result<Vec<PendingDelivery>, sqlx::Error> {
    let any_waiting = matches!(request, ReadRequest::Oldest { .. });
    let found: Vec<DueRow> = sqlx::query_as(
        "SELECT e.number, e.order_id, e.body, e.created_at,
                d.number AS number_due,
                d.attempts,
                d.replays,
                CASE WHEN d.next_at = 'infinity' THEN 0 ELSE extract(epoch FROM d.next_at - now()) END::float8 AS due_s,
                d.give_up_at
           FROM deliveries AS d
          CROSS JOIN LATERAL (
                SELECT *
                  FROM events AS e
                 WHERE e.partner_id = d.partner_id AND e.number <= d.number
                 ORDER BY e.number DESC
                 LIMIT 1) AS e
          WHERE d.partner_id = $1
            AND d.webhook_id = $2
            AND d.state = 'WAITING'
            AND ($3 OR d.next_at <= now())
            AND d.number BETWEEN $5 AND $6
          ORDER BY d.number
          LIMIT $4",
    )
    .bind(endpoint.key.partner_id)
    .bind(endpoint.key.webhook_id)
    .bind(any_waiting)
    .bind(to_bigint(MAX_PAGE_ROWS))
    .bind(numbers.start())
    .bind(numbers.end())
    .fetch_all(pool)
    .await?;
    let pending = found.into_iter().map(|row| {
        let events = row.event.into_committed_events(endpoint.key.partner_id)?;
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
            give_up_in: row.give_up_at - endpoint.now,
        })
    });
    pending.collect()
}

pub(super) async fn read_next_due(pool: &PgPool, key: EndpointKey) -> Result<Option<Duration>, sqlx::Error> {
    let seconds: Option<f64> = sqlx::query_scalar(
        "SELECT extract(epoch FROM min(next_at) - now())::float8
           FROM deliveries
          WHERE partner_id = $1
            AND webhook_id = $2
            AND state = 'WAITING'
            AND next_at > now()
            AND next_at < 'infinity'",
    )
    .bind(key.partner_id)
    .bind(key.webhook_id)
    .fetch_one(pool)
    .await?;
    Ok(seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()))
}
