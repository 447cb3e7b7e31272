//! What does an actor write, and in which order?
//!
//! | step | why here |
//! |---|---|
//! | the lease is found unchanged, cursor and health are written | nothing is written without it |
//! | rows of deliveries that failed, or wait behind one | before what they wait for is ended |
//! | of each order the first that waits is due | a replay may have put one before those that do |
//! | attempts are added to their rows | |
//! | the endpoint takes deliveries again: what waits is due | |
//! | the endpoint's next attempt is read off its rows | |
//!
//! Rules: a turn may be written twice, and says the same. What is written of a row names the replay that it was read in: a row
//! that was replayed since waits on as the replay left it. The cursor alone is written without waiting for the disk: a crash of
//! the database sends a second's events again, and loses none.

use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;
use vouchsafe_actors::delivery::outbox::{LEASE, Lease, Page, Then, Turn};
use vouchsafe_actors::delivery::schedule::TRIED_FOR;
use vouchsafe_actors::domain::delivery::Fate;
use vouchsafe_actors::domain::ids::{PartnerId, WebhookId};

use super::sequence::line_up;
use super::{interval, page};
use crate::store::nodes::NodeIdentity;

/// Most attempts that a row keeps: two days of them and some replays.
const MAX_LOG: i32 = 50;

/// Whose endpoint it is, by which everything else is found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) partner_id: PartnerId,
    pub(super) webhook_id: WebhookId,
}

/// Who delivers to which endpoint, and in which taking of it. The number alone is not enough: a crash of the database may
/// forget a taking, and the next one has its number.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    pub(super) webhook_id: WebhookId,
    pub(super) lease: Lease,
    pub(super) node: NodeIdentity,
}

/// Writes and reads; `None` when the lease is another.
pub(super) async fn turn(pool: &PgPool, holder: &Holder, turn: Turn) -> Result<Option<Page>, sqlx::Error> {
    let want = match turn.then {
        Then::Keep(want) => want,
        Then::Release => None,
    };
    if turn.writes() && !write(pool, holder, &turn).await? {
        return Ok(None);
    }
    match want {
        None => Ok(Some(Page::default())),
        Some(want) => page::read(pool, holder, want).await,
    }
}

async fn write(pool: &PgPool, holder: &Holder, turn: &Turn) -> Result<bool, sqlx::Error> {
    if !turn.has_rows() && !turn.gone {
        let mut connection = pool.acquire().await?;
        return Ok(progress(&mut connection, holder, turn, true).await?.is_some());
    }
    let mut transaction = pool.begin().await?;
    if turn.gone {
        switch_off(&mut transaction, holder.webhook_id).await?;
    }
    let Some(key) = progress(&mut transaction, holder, turn, false).await? else {
        transaction.rollback().await?;
        return Ok(false);
    };
    put_rows(&mut transaction, key, turn).await?;
    let orders: Vec<Uuid> = turn
        .changes
        .marks
        .iter()
        .map(|mark| mark.order_id.as_uuid())
        .collect();
    line_up(&mut transaction, key, &orders).await?;
    log_attempts(&mut transaction, key, turn).await?;
    if turn.changes.recovered {
        free(&mut transaction, key).await?;
    }
    plan(&mut transaction, key, turn).await?;
    transaction.commit().await?;
    Ok(true)
}

async fn switch_off(connection: &mut PgConnection, webhook_id: WebhookId) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE webhooks
            SET enabled = false,
                disabled_reason = 'GONE',
                disabled_at = now(),
                updated_at = now()
          WHERE webhook_id = $1 AND enabled",
    )
    .bind(webhook_id.as_uuid())
    .execute(connection)
    .await
    .map(drop)
}

/// Finds the lease unchanged, and writes how far the endpoint is. Where this waited for a replay, the statement does not
/// see the replay's rows, only that the row was written meanwhile (`seen` is as it was before): then it must stay due.
async fn progress(
    connection: &mut PgConnection,
    holder: &Holder,
    turn: &Turn,
    lazily: bool,
) -> Result<Option<Key>, sqlx::Error> {
    let health = turn.changes.health;
    let found: Option<Uuid> = sqlx::query_scalar(
        "WITH lazily AS (SELECT CASE WHEN $9 THEN set_config('synchronous_commit', 'off', true) END)
         UPDATE webhook_progress AS p
            SET cursor = GREATEST(p.cursor, $3),
                failures = $4,
                step = $5,
                failing_since = CASE WHEN $4 = 0 THEN NULL ELSE COALESCE(p.failing_since, now()) END,
                delivered = p.delivered + CASE WHEN p.turn < $11 THEN $6 ELSE 0 END,
                refused = p.refused + CASE WHEN p.turn < $11 THEN $7 ELSE 0 END,
                turn = GREATEST(p.turn, $11),
                leased_until = now() + $8,
                due_at = CASE
                    WHEN NOT $9 THEN p.due_at
                    WHEN p.xmin IS DISTINCT FROM seen.xmin THEN COALESCE(p.due_at, now())
                    ELSE COALESCE(now() + $10, (
                        SELECT min(d.next_at)
                          FROM deliveries AS d
                         WHERE d.partner_id = p.partner_id
                           AND d.webhook_id = p.webhook_id
                           AND d.state = 'WAITING'
                           AND d.next_at < 'infinity'))
                END
           FROM webhooks AS w, webhook_progress AS seen, lazily
          WHERE w.webhook_id = $1
            AND p.partner_id = w.partner_id
            AND p.webhook_id = w.webhook_id
            AND seen.partner_id = w.partner_id
            AND seen.webhook_id = w.webhook_id
            AND p.lease = $2
            AND p.leased_by = $12
            AND p.incarnation = $13
         RETURNING p.partner_id",
    )
    .bind(holder.webhook_id.as_uuid())
    .bind(holder.lease.0)
    .bind(turn.changes.cursor)
    .bind(i32::try_from(health.failures).unwrap_or(i32::MAX))
    .bind(i32::try_from(health.step).unwrap_or(i32::MAX))
    .bind(i64::from(turn.delivered))
    .bind(i64::from(turn.refused))
    .bind((turn.then != Then::Release).then(|| interval(LEASE)))
    .bind(lazily)
    .bind(turn.wait.map(interval))
    .bind(turn.number)
    .bind(&holder.node.name)
    .bind(holder.node.incarnation)
    .fetch_optional(connection)
    .await?;
    Ok(found.map(|partner_id| Key {
        partner_id: PartnerId::from_uuid(partner_id),
        webhook_id: holder.webhook_id,
    }))
}

/// A row that was replayed since it was read stays as the replay left it: what ended was an earlier attempt.
async fn put_rows(connection: &mut PgConnection, key: Key, turn: &Turn) -> Result<(), sqlx::Error> {
    let marks = &turn.changes.marks;
    if marks.is_empty() {
        return Ok(());
    }
    let waits = marks.iter().map(|mark| match mark.fate {
        Fate::Again(at) => Some(interval(at.saturating_sub(turn.now))),
        Fate::Behind | Fate::Delivered | Fate::Failed => None,
    });
    let numbers: Vec<i64> = marks.iter().map(|mark| mark.number).collect();
    let ids: Vec<Uuid> = marks.iter().map(|_| Uuid::now_v7()).collect();
    let orders: Vec<Uuid> = marks.iter().map(|mark| mark.order_id.as_uuid()).collect();
    let states: Vec<&str> = marks.iter().map(|mark| state_of(mark.fate)).collect();
    let attempts: Vec<i32> = marks.iter().map(|mark| mark.attempts.cast_signed()).collect();
    let replays: Vec<i32> = marks.iter().map(|mark| mark.replays.cast_signed()).collect();
    sqlx::query(
        "INSERT INTO deliveries AS d (partner_id, webhook_id, number, delivery_id, order_id, state, attempts, replays,
                                      next_at, ends_at, event_at)
         SELECT $1, $2, m.number, m.delivery_id, m.order_id, m.state, m.attempts, m.replays,
                COALESCE(now() + m.wait, 'infinity'), e.created_at + $10, e.created_at
           FROM unnest($3, $4, $5, $6, $7, $8, $9)
             AS m (number, delivery_id, order_id, state, attempts, replays, wait)
          CROSS JOIN LATERAL (
                SELECT e.created_at
                  FROM events AS e
                 WHERE e.partner_id = $1 AND e.number <= m.number
                 ORDER BY e.number DESC
                 LIMIT 1) AS e
          ORDER BY m.number
         ON CONFLICT (partner_id, webhook_id, number) DO UPDATE
            SET state = EXCLUDED.state,
                attempts = EXCLUDED.attempts,
                next_at = EXCLUDED.next_at,
                updated_at = now()
          WHERE d.replays = EXCLUDED.replays",
    )
    .bind(key.partner_id.as_uuid())
    .bind(key.webhook_id.as_uuid())
    .bind(numbers)
    .bind(ids)
    .bind(orders)
    .bind(states)
    .bind(attempts)
    .bind(replays)
    .bind(waits.collect::<Vec<_>>())
    .bind(interval(TRIED_FOR))
    .execute(connection)
    .await
    .map(drop)
}

const fn state_of(fate: Fate) -> &'static str {
    match fate {
        Fate::Again(_) | Fate::Behind => "WAITING",
        Fate::Delivered => "DELIVERED",
        Fate::Failed => "FAILED",
    }
}

async fn log_attempts(connection: &mut PgConnection, key: Key, turn: &Turn) -> Result<(), sqlx::Error> {
    for (number, attempt) in &turn.attempts {
        sqlx::query(
            "UPDATE deliveries AS d
                SET log = CASE WHEN jsonb_array_length(d.log) >= $5 THEN d.log - 0 ELSE d.log END || $4
              WHERE d.partner_id = $1
                AND d.webhook_id = $2
                AND d.number = $3
                AND (d.log -> -1) IS DISTINCT FROM $4",
        )
        .bind(key.partner_id.as_uuid())
        .bind(key.webhook_id.as_uuid())
        .bind(number)
        .bind(Json(attempt))
        .bind(MAX_LOG)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// The first that was taken lets the others follow at once.
async fn free(connection: &mut PgConnection, key: Key) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE deliveries
            SET next_at = now()
          WHERE partner_id = $1
            AND webhook_id = $2
            AND state = 'WAITING'
            AND next_at > now()
            AND next_at < 'infinity'",
    )
    .bind(key.partner_id.as_uuid())
    .bind(key.webhook_id.as_uuid())
    .execute(connection)
    .await
    .map(drop)
}

async fn plan(connection: &mut PgConnection, key: Key, turn: &Turn) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE webhook_progress AS p
            SET due_at = COALESCE(now() + $3, (
                SELECT min(d.next_at)
                  FROM deliveries AS d
                 WHERE d.partner_id = $1
                   AND d.webhook_id = $2
                   AND d.state = 'WAITING'
                   AND d.next_at < 'infinity'))
          WHERE p.partner_id = $1 AND p.webhook_id = $2",
    )
    .bind(key.partner_id.as_uuid())
    .bind(key.webhook_id.as_uuid())
    .bind(turn.wait.map(interval))
    .execute(connection)
    .await
    .map(drop)
}
