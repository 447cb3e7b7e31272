//! What does an actor read? Rows that are due and events past the cursor, or the oldest of all.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::delivery::outbox::{Lease, Page, Pending};
use vouchsafe_actors::delivery::queue::Want;
use vouchsafe_actors::delivery::schedule::TRIED_FOR;
use vouchsafe_actors::domain::delivery::{Letter, Told};
use vouchsafe_actors::domain::event_kind::EventKinds;
use vouchsafe_actors::domain::ids::{OrderId, PartnerId, WebhookId};

use super::turn::Key;
use crate::store::audit::rows;
use crate::store::events::{EventRow, MAX_BYTES, MAX_ROWS};
use crate::store::webhooks::kinds_of;

/// The endpoint as it is read for, at this moment.
struct Endpoint {
    key: Key,
    kinds: EventKinds,
    has_rows: bool,
    rows_ahead: bool,
    now: OffsetDateTime,
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
    due_s: f64,
    ends_at: OffsetDateTime,
}

#[derive(sqlx::FromRow)]
struct NewRow {
    #[sqlx(flatten)]
    event: EventRow,
    behind: bool,
}

/// Reads what is wanted; `None` when the lease is another.
pub(super) async fn read(
    pool: &PgPool,
    webhook_id: WebhookId,
    lease: Lease,
    want: Want,
) -> Result<Option<Page>, sqlx::Error> {
    let Some(endpoint) = find(pool, webhook_id, lease).await? else {
        return Ok(None);
    };
    let mut page = Page::default();
    if endpoint.has_rows {
        page.pending = due_rows(pool, &endpoint, want).await?;
        page.next_due_in = next_due(pool, endpoint.key).await?;
    }
    let (after, most) = match want {
        Want::Due { after, most } => (after, most),
        Want::Oldest { after } => (after, MAX_ROWS.saturating_sub(page.pending.len())),
    };
    page.read_to = after;
    if most > 0 {
        new_events(pool, &endpoint, after, most, &mut page).await?;
    }
    Ok(Some(page))
}

async fn find(pool: &PgPool, webhook_id: WebhookId, lease: Lease) -> Result<Option<Endpoint>, sqlx::Error> {
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
          WHERE w.webhook_id = $1 AND p.lease = $2",
    )
    .bind(webhook_id.as_uuid())
    .bind(lease.0)
    .fetch_optional(pool)
    .await?;
    Ok(row.map(|row| Endpoint {
        key: Key {
            partner_id: PartnerId::from_uuid(row.partner_id),
            webhook_id,
        },
        kinds: kinds_of(row.events.as_deref()),
        has_rows: row.has_rows,
        rows_ahead: row.rows_ahead,
        now: row.now,
    }))
}

/// Rows that are due, or the oldest that wait.
async fn due_rows(pool: &PgPool, endpoint: &Endpoint, want: Want) -> Result<Vec<Pending>, sqlx::Error> {
    let oldest = matches!(want, Want::Oldest { .. });
    let found: Vec<DueRow> = sqlx::query_as(
        "SELECT e.number, e.order_id, e.body, e.created_at,
                d.number AS number_due,
                d.attempts,
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
          ORDER BY d.number
          LIMIT $4",
    )
    .bind(endpoint.key.partner_id.as_uuid())
    .bind(endpoint.key.webhook_id.as_uuid())
    .bind(oldest)
    .bind(rows(MAX_ROWS))
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

/// Events past a number that the endpoint asks for and that have no row of their own.
async fn new_events(
    pool: &PgPool,
    endpoint: &Endpoint,
    after: i64,
    most: usize,
    page: &mut Page,
) -> Result<(), sqlx::Error> {
    let found = rows_after(pool, endpoint.key, after).await?;
    let bytes: usize = found.iter().map(|row| row.event.bytes()).sum();
    page.more = found.len() == MAX_ROWS || rows(bytes) >= MAX_BYTES;
    let told = |row: NewRow| Ok((row.event.told(endpoint.key.partner_id)?, row.behind));
    let found: Vec<(Told, bool)> = found.into_iter().map(told).collect::<Result<_, sqlx::Error>>()?;
    let Some(last) = found.last().map(|(told, _)| told.last_number()) else {
        return Ok(());
    };
    let stored = if endpoint.rows_ahead {
        stored_after(pool, endpoint.key, after, last).await?
    } else {
        HashSet::new()
    };
    let mut room = most;
    for (told, behind) in found {
        let ends_in = told.created_at + TRIED_FOR - endpoint.now;
        let order_id: OrderId = told.bundle.order_id;
        let told = Arc::new(told);
        for number in told.number.max(after + 1)..=told.last_number() {
            let asked = told
                .kind(number)
                .is_some_and(|kind| endpoint.kinds.contains(kind));
            if asked && !stored.contains(&number) {
                if room == 0 {
                    page.more = true;
                    return Ok(());
                }
                room -= 1;
                page.pending.push(Pending {
                    letter: Letter {
                        told: Arc::clone(&told),
                        number,
                    },
                    order_id,
                    attempts: 0,
                    stored: false,
                    behind,
                    due_in: time::Duration::ZERO,
                    ends_in,
                });
            }
            page.read_to = number;
        }
    }
    Ok(())
}

/// The rows that have the events past a number, each with whether one of its order waits in a row.
async fn rows_after(pool: &PgPool, key: Key, after: i64) -> Result<Vec<NewRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT e.number, e.order_id, e.body, e.created_at,
                EXISTS (
                SELECT
                  FROM deliveries AS d
                 WHERE d.partner_id = $1
                   AND d.webhook_id = $2
                   AND d.order_id = e.order_id
                   AND d.state = 'WAITING'
                ) AS behind
           FROM (SELECT e.*,
                        sum(length(e.body)) OVER (ORDER BY e.number) - length(e.body) AS bytes_before
                   FROM events AS e
                  WHERE e.partner_id = $1
                    AND e.number >= COALESCE(
                        (SELECT max(f.number)
                           FROM events AS f
                          WHERE f.partner_id = $1 AND f.number <= $3 + 1), 0)
                  ORDER BY e.number
                  LIMIT $4) AS e
          WHERE e.bytes_before < $5
          ORDER BY e.number",
    )
    .bind(key.partner_id.as_uuid())
    .bind(key.webhook_id.as_uuid())
    .bind(after)
    .bind(rows(MAX_ROWS))
    .bind(MAX_BYTES)
    .fetch_all(pool)
    .await
}

/// Which of these numbers have a row.
async fn stored_after(pool: &PgPool, key: Key, after: i64, last: i64) -> Result<HashSet<i64>, sqlx::Error> {
    let numbers: Vec<i64> = sqlx::query_scalar(
        "SELECT number
           FROM deliveries
          WHERE partner_id = $1 AND webhook_id = $2 AND number > $3 AND number <= $4",
    )
    .bind(key.partner_id.as_uuid())
    .bind(key.webhook_id.as_uuid())
    .bind(after)
    .bind(last)
    .fetch_all(pool)
    .await?;
    Ok(numbers.into_iter().collect())
}
