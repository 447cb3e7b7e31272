//! Rows of deliveries that wait: those that are due, or the oldest, and the time of the next.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use vouchsafe_actors::delivery::outbox::PendingDelivery;
use vouchsafe_actors::delivery::queue::ReadRequest;
use vouchsafe_domain::delivery::WebhookEvent;
use vouchsafe_domain::ids::OrderId;

use super::endpoint::{EndpointKey, EndpointSnapshot};
use crate::audit::to_bigint;
use crate::events::{EventRow, MAX_PAGE_ROWS};

/// Reads the rows with these event numbers that are due, or the oldest waiting ones.
pub(super) async fn read_due_rows(
    pool: &PgPool,
    endpoint: &EndpointSnapshot,
    request: ReadRequest,
    numbers: RangeInclusive<i64>,
) -> Result<Vec<PendingDelivery>, sqlx::Error> {
    let any_waiting = matches!(request, ReadRequest::Oldest { .. });
    sqlx::query!(
        r#"SELECT e.number, e.order_id AS "order_id: OrderId", e.body, e.created_at,
                d.number AS number_due,
                d.attempts,
                d.replays,
                CASE WHEN d.next_at = 'infinity' THEN 0 ELSE extract(epoch FROM d.next_at - now()) END::float8 AS "due_s!",
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
          LIMIT $4"#,
        endpoint.key.partner_id as _,
        endpoint.key.webhook_id as _,
        any_waiting,
        to_bigint(MAX_PAGE_ROWS),
        numbers.start(),
        numbers.end(),
    )
    .try_map(|row| {
        let event = EventRow {
            number: row.number,
            order_id: row.order_id,
            body: row.body,
            created_at: row.created_at,
        };
        let events = event.into_committed_events(endpoint.key.partner_id)?;
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
    })
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
