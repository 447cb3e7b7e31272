//! What does an actor read? Rows that are due and events past what it has read, or the oldest of all.
//!
//! Rule: all of it is in the order of the numbers, so that no event of an order is read before an earlier one. A row past
//! what was read, which a replay may have put there, is read when the walk comes to it.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::delivery::outbox::{Page, Pending};
use vouchsafe_actors::delivery::queue::Want;
use vouchsafe_actors::domain::delivery::Letter;
use vouchsafe_actors::domain::event_kind::EventKinds;
use vouchsafe_actors::domain::ids::PartnerId;

use super::turn::{Holder, Key};
use super::walk::walk;
use crate::store::audit::rows;
use crate::store::events::{EventRow, MAX_ROWS};
use crate::store::webhooks::kinds_of;

/// The endpoint as it is read for, at this moment.
pub(super) struct Endpoint {
    pub(super) key: Key,
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

/// Reads what is wanted; `None` when the lease is another.
pub(super) async fn read(pool: &PgPool, holder: &Holder, want: Want) -> Result<Option<Page>, sqlx::Error> {
    let Some(endpoint) = find(pool, holder).await? else {
        return Ok(None);
    };
    let mut page = Page::default();
    let (Want::Due { after, .. } | Want::Oldest { after }) = want;
    if endpoint.has_rows {
        page.pending = due_rows(pool, &endpoint, want, 0..=after).await?;
        page.next_due_in = next_due(pool, endpoint.key).await?;
    }
    page.read_to = after;
    let most = match want {
        Want::Due { most, .. } => most,
        Want::Oldest { .. } => MAX_ROWS.saturating_sub(page.pending.len()),
    };
    if most > 0 {
        walk(pool, &endpoint, want, most, &mut page).await?;
    }
    Ok(Some(page))
}

async fn find(pool: &PgPool, holder: &Holder) -> Result<Option<Endpoint>, sqlx::Error> {
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
    Ok(row.map(|row| Endpoint {
        key: Key {
            partner_id: PartnerId::from_uuid(row.partner_id),
            webhook_id: holder.webhook_id,
        },
        kinds: kinds_of(row.events.as_deref()),
        has_rows: row.has_rows,
        rows_ahead: row.rows_ahead,
        now: row.now,
    }))
}

/// Rows with a number of `numbers` that are due, or the oldest that wait.
pub(super) async fn due_rows(
    pool: &PgPool,
    endpoint: &Endpoint,
    want: Want,
    numbers: RangeInclusive<i64>,
) -> Result<Vec<Pending>, sqlx::Error> {
    let oldest = matches!(want, Want::Oldest { .. });
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
    .bind(oldest)
    .bind(rows(MAX_ROWS))
    .bind(numbers.start())
    .bind(numbers.end())
    .fetch_all(pool)
    .await?;
    let pending = found.into_iter().map(|row| {
        let told = row.event.told(endpoint.key.partner_id)?;
        Ok(Pending {
            order_id: told.bundle.order_id,
            letter: Letter {
                told: Arc::new(told),
                number: row.number_due,
            },
            attempts: row.attempts.cast_unsigned(),
            replays: row.replays.cast_unsigned(),
            stored: true,
            behind: false,
            due_in: time::Duration::seconds_f64(row.due_s),
            ends_in: row.ends_at - endpoint.now,
        })
    });
    pending.collect()
}

async fn next_due(pool: &PgPool, key: Key) -> Result<Option<Duration>, sqlx::Error> {
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
