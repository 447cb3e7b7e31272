//! Reads of a delivery actor: due rows and events after its read position, or the oldest waiting rows.
//!
//! Pages are in number order, so no event of an order is read before an earlier one. A row after the read position, which a replay
//! may have inserted, is read when the scan reaches it.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::delivery::outbox::{DeliveryPage, PendingDelivery};
use vouchsafe_actors::delivery::queue::ReadRequest;
use vouchsafe_domain::delivery::WebhookEvent;
use vouchsafe_domain::event_kind::EventKinds;
use vouchsafe_domain::ids::PartnerId;

use super::flush::{EndpointKey, LeaseHolder};
use super::scan::scan_events;
use crate::store::audit::to_bigint;
use crate::store::events::{EventRow, MAX_PAGE_ROWS};
use crate::store::webhooks::parse_kinds;

/// An endpoint at the time of the read.
pub(super) struct EndpointSnapshot {
    pub(super) key: EndpointKey,
    pub(super) kinds: EventKinds,
    has_rows: bool,
    pub(super) rows_ahead: bool,
    pub(super) now: OffsetDateTime,
}

#[derive(sqlx::FromRow)]
struct EndpointRow {
    partner_id: Uuid,
    events: Option<Vec<String>>,
    has_rows: bool,
    rows_ahead: bool,
    now: OffsetDateTime,
}

#[derive(sqlx::FromRow)]
struct DueRow {
    #[sqlx(flatten)]
    event: EventRow,
    number_due: i64,
    attempts: i32,
    replays: i32,
    due_s: f64,
    ends_at: OffsetDateTime,
}

/// Reads the requested deliveries. Returns `None` if the lease has been lost.
pub(super) async fn read_page(
    pool: &PgPool,
    holder: &LeaseHolder,
    request: ReadRequest,
) -> Result<Option<DeliveryPage>, sqlx::Error> {
    let Some(endpoint) = load_endpoint(pool, holder).await? else {
        return Ok(None);
    };
    let mut page = DeliveryPage::default();
    let (ReadRequest::Due { after, .. } | ReadRequest::Oldest { after }) = request;
    if endpoint.has_rows {
        page.pending = read_due_rows(pool, &endpoint, request, 0..=after).await?;
        page.next_due_in = read_next_due(pool, endpoint.key).await?;
    }
    page.scanned_to = after;
    let limit = match request {
        ReadRequest::Due { limit, .. } => limit,
        ReadRequest::Oldest { .. } => MAX_PAGE_ROWS.saturating_sub(page.pending.len()),
    };
    if limit > 0 {
        scan_events(pool, &endpoint, request, limit, &mut page).await?;
    }
    Ok(Some(page))
}

async fn load_endpoint(pool: &PgPool, holder: &LeaseHolder) -> Result<Option<EndpointSnapshot>, sqlx::Error> {
    let row: Option<EndpointRow> = sqlx::query_as(
        "SELECT w.partner_id,
                w.events,
                EXISTS (
                SELECT
                  FROM deliveries AS d
                 WHERE d.partner_id = w.partner_id AND d.webhook_id = w.webhook_id AND d.state = 'WAITING'
                ) AS has_rows,
                EXISTS (
                SELECT
                  FROM deliveries AS d
                 WHERE d.partner_id = w.partner_id AND d.webhook_id = w.webhook_id AND d.number > p.cursor
                ) AS rows_ahead,
                now() AS now
           FROM webhooks AS w
           JOIN webhook_progress AS p ON p.partner_id = w.partner_id AND p.webhook_id = w.webhook_id
          WHERE w.webhook_id = $1 AND p.lease = $2 AND p.leased_by = $3 AND p.incarnation = $4",
    )
    .bind(holder.webhook_id.as_uuid())
    .bind(holder.lease.0)
    .bind(&holder.node.name)
    .bind(holder.node.incarnation)
    .fetch_optional(pool)
    .await?;
    Ok(row.map(|row| EndpointSnapshot {
        key: EndpointKey {
            partner_id: PartnerId::from_uuid(row.partner_id),
            webhook_id: holder.webhook_id,
        },
        kinds: parse_kinds(row.events.as_deref()),
        has_rows: row.has_rows,
        rows_ahead: row.rows_ahead,
        now: row.now,
    }))
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
                d.ends_at
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
    .bind(endpoint.key.partner_id.as_uuid())
    .bind(endpoint.key.webhook_id.as_uuid())
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
            give_up_in: row.ends_at - endpoint.now,
        })
    });
    pending.collect()
}

async fn read_next_due(pool: &PgPool, key: EndpointKey) -> Result<Option<Duration>, sqlx::Error> {
    let seconds: Option<f64> = sqlx::query_scalar(
        "SELECT extract(epoch FROM min(next_at) - now())::float8
           FROM deliveries
          WHERE partner_id = $1
            AND webhook_id = $2
            AND state = 'WAITING'
            AND next_at > now()
            AND next_at < 'infinity'",
    )
    .bind(key.partner_id.as_uuid())
    .bind(key.webhook_id.as_uuid())
    .fetch_one(pool)
    .await?;
    Ok(seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()))
}
