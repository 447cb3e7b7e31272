//! Rows of deliveries that wait: those that are due, or those of a failing endpoint, and the time of the next.

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

/// Which rows to read. Only the first waiting row of an order is read.
pub(super) struct RowQuery {
    numbers: RangeInclusive<i64>,
    limit: usize,
    /// Whether to leave out rows that are not due.
    due_only: bool,
    /// Whether the order is that of a failing endpoint's next attempts instead of the event numbers.
    by_next_attempt: bool,
}

impl RowQuery {
    /// The rows up to the read position.
    pub(super) const fn before_scan(request: ReadRequest) -> Self {
        match request {
            ReadRequest::Due { after, .. } => Self::within_scan(request, 0..=after),
            ReadRequest::Oldest { after, limit } => Self {
                numbers: 0..=after,
                limit,
                due_only: false,
                by_next_attempt: true,
            },
        }
    }

    /// The rows among the events that are scanned.
    pub(super) const fn within_scan(request: ReadRequest, numbers: RangeInclusive<i64>) -> Self {
        Self {
            numbers,
            limit: MAX_PAGE_ROWS,
            due_only: matches!(request, ReadRequest::Due { .. }),
            by_next_attempt: false,
        }
    }

    pub(super) async fn read(
        self,
        pool: &PgPool,
        endpoint: &EndpointSnapshot,
    ) -> Result<Vec<PendingDelivery>, sqlx::Error> {
        sqlx::query!(
            r#"SELECT e.number, e.order_id AS "order_id: OrderId", e.body, e.created_at,
                    d.number AS number_due,
                    d.attempts,
                    d.replays,
                    extract(epoch FROM d.next_at - now())::float8 AS "due_s!",
                    d.give_up_at
               FROM (SELECT d.partner_id, d.number, d.attempts, d.replays, d.next_at, d.give_up_at,
                            CASE
                                WHEN NOT $7 THEN NULL
                                WHEN d.number <= $8 THEN LEAST(d.next_at, d.give_up_at)
                                ELSE d.give_up_at
                            END AS next_attempt
                       FROM deliveries AS d
                      WHERE d.partner_id = $1
                        AND d.webhook_id = $2
                        AND d.state = 'WAITING'
                        AND d.next_at < CASE WHEN $3 THEN now() + interval '1 microsecond' ELSE 'infinity'::timestamptz END
                        AND d.number BETWEEN $5 AND $6
                      ORDER BY next_attempt, d.number
                      LIMIT $4) AS d
              CROSS JOIN LATERAL (
                    SELECT *
                      FROM events AS e
                     WHERE e.partner_id = d.partner_id AND e.number <= d.number
                     ORDER BY e.number DESC
                     LIMIT 1) AS e
              ORDER BY d.next_attempt, d.number"#,
            endpoint.key.partner_id as _,
            endpoint.key.webhook_id as _,
            self.due_only,
            to_bigint(self.limit),
            self.numbers.start(),
            self.numbers.end(),
            self.by_next_attempt,
            endpoint.retry_to,
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
