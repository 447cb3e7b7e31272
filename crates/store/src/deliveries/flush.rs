//! Flush of a delivery actor's state to Postgres.
//!
//! | step | reason for the order |
//! |---|---|
//! | verify the lease, write cursor and health | nothing is written without the lease |
//! | write rows of failed and blocked deliveries | before the delivery that blocks them ends |
//! | make the first waiting delivery of each order due | a replay may have inserted an earlier one |
//! | append attempts to their rows | |
//! | after recovery of the endpoint, make waiting deliveries due | |
//! | set the endpoint's next attempt from its rows | |
//!
//! A flush is idempotent. Each row update names the replay count with which the row was read: a row that was
//! replayed since stays as the replay left it. A flush of the cursor alone commits asynchronously: after a
//! database crash the events of about a second are sent again, and none is lost.

use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;
use vouchsafe_actors::delivery::outbox::{DeliveryPage, FlushRequest, LEASE_DURATION, LeaseAction};
use vouchsafe_actors::delivery::retry::RETRY_WINDOW;
use vouchsafe_domain::delivery::DeliveryOutcome;
use vouchsafe_domain::delivery::view::DeliveryState;
use vouchsafe_domain::ids::{OrderId, PartnerId, WebhookId};

use super::endpoint::{EndpointKey, LeaseHolder};
use super::sequence::schedule_first_waiting;
use super::{interval, page};

/// Attempts per row: enough for two days and several replays.
const MAX_LOGGED_ATTEMPTS: i32 = 50;

/// Writes the flush and reads the next page. Returns `None` if the lease has been lost.
pub(super) async fn flush(
    pool: &PgPool,
    holder: &LeaseHolder,
    request: FlushRequest,
) -> Result<Option<DeliveryPage>, sqlx::Error> {
    let read_request = match request.lease_action {
        LeaseAction::Keep(read_request) => read_request,
        LeaseAction::Release => None,
    };
    if request.has_writes() && !write(pool, holder, &request).await? {
        return Ok(None);
    }
    match read_request {
        None => Ok(Some(DeliveryPage::default())),
        Some(read_request) => page::read_page(pool, holder, read_request).await,
    }
}

async fn write(pool: &PgPool, holder: &LeaseHolder, request: &FlushRequest) -> Result<bool, sqlx::Error> {
    if !request.has_row_writes() && !request.gone {
        let mut connection = pool.acquire().await?;
        return Ok(write_progress(&mut connection, holder, request, true)
            .await?
            .is_some());
    }
    let mut transaction = pool.begin().await?;
    if request.gone {
        disable_endpoint(&mut transaction, holder.webhook_id).await?;
    }
    let Some(key) = write_progress(&mut transaction, holder, request, false).await? else {
        transaction.rollback().await?;
        return Ok(false);
    };
    upsert_rows(&mut transaction, key, request).await?;
    let updates = request.changes.updates.iter();
    let orders: Vec<OrderId> = updates.map(|update| update.order_id).collect();
    schedule_first_waiting(&mut transaction, key, &orders).await?;
    append_attempts(&mut transaction, key, request).await?;
    if request.changes.recovered {
        make_waiting_due(&mut transaction, key.partner_id, key.webhook_id).await?;
    }
    schedule_next_attempt(&mut transaction, key, request).await?;
    transaction.commit().await?;
    Ok(true)
}

async fn disable_endpoint(connection: &mut PgConnection, webhook_id: WebhookId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE webhooks
            SET enabled = false,
                disabled_reason = 'GONE',
                disabled_at = now(),
                updated_at = now()
          WHERE webhook_id = $1 AND enabled",
        webhook_id as _,
    )
    .execute(connection)
    .await
    .map(drop)
}

/// Verifies the lease and writes cursor and health. If the statement waited for a concurrent replay, its
/// snapshot lacks the replay's rows; it notices by `xmin` that the progress row was updated meanwhile
/// (`snapshot` has the old row) and keeps it due.
async fn write_progress(
    connection: &mut PgConnection,
    holder: &LeaseHolder,
    request: &FlushRequest,
    async_commit: bool,
) -> Result<Option<EndpointKey>, sqlx::Error> {
    let health = request.changes.health;
    let partner_id = sqlx::query_scalar!(
        r#"WITH async_commit AS (SELECT CASE WHEN $9 THEN set_config('synchronous_commit', 'off', true) END)
         UPDATE webhook_progress AS p
            SET cursor = GREATEST(p.cursor, $3),
                failures = $4,
                backoff_step = $5,
                failing_since = CASE WHEN $4 = 0 THEN NULL ELSE COALESCE(p.failing_since, now()) END,
                delivered = p.delivered + CASE WHEN p.last_flush < $11 THEN $6::bigint ELSE 0 END,
                refused = p.refused + CASE WHEN p.last_flush < $11 THEN $7::bigint ELSE 0 END,
                last_flush = GREATEST(p.last_flush, $11),
                retry_to = CASE WHEN $14 THEN 0 ELSE p.retry_to END,
                leased_until = now() + $8,
                due_at = CASE
                    WHEN NOT $9 THEN p.due_at
                    WHEN p.xmin IS DISTINCT FROM snapshot.xmin THEN COALESCE(p.due_at, now())
                    ELSE COALESCE(now() + $10, (
                        SELECT min(d.next_at)
                          FROM deliveries AS d
                         WHERE d.partner_id = p.partner_id
                           AND d.webhook_id = p.webhook_id
                           AND d.state = 'WAITING'
                           AND d.next_at < 'infinity'))
                END
           FROM webhooks AS w, webhook_progress AS snapshot, async_commit
          WHERE w.webhook_id = $1
            AND p.partner_id = w.partner_id
            AND p.webhook_id = w.webhook_id
            AND snapshot.partner_id = w.partner_id
            AND snapshot.webhook_id = w.webhook_id
            AND p.lease = $2
            AND p.leased_by = $12
            AND p.incarnation = $13
            -- Events that the database has lost were delivered: the next owner of the lease sends those that get their numbers. Until
            -- the first commit after the loss, which replaces the history, the feed ends before them.
            AND $3 <= COALESCE((SELECT f.last_number FROM feeds AS f WHERE f.partner_id = p.partner_id), 0) /* guard: lost-events */
            AND database_history_v1() = $15 /* guard: delivery-history */
         RETURNING p.partner_id AS "partner_id: PartnerId""#,
        holder.webhook_id as _,
        holder.lease.number,
        request.changes.cursor,
        i32::try_from(health.consecutive_failures).unwrap_or(i32::MAX),
        i32::try_from(health.backoff_step).unwrap_or(i32::MAX),
        i64::from(request.delivered),
        i64::from(request.failed),
        (request.lease_action != LeaseAction::Release).then(|| interval(LEASE_DURATION)),
        async_commit,
        request.retry_in.map(interval),
        request.sequence,
        holder.node.name,
        holder.node.incarnation,
        request.changes.recovered,
        holder.lease.history,
    );
    let partner_id = partner_id.fetch_optional(connection).await?;
    Ok(partner_id.map(|partner_id| EndpointKey {
        partner_id,
        webhook_id: holder.webhook_id,
    }))
}

/// Leaves rows unchanged that were replayed since they were read: the outcome belongs to an earlier attempt.
async fn upsert_rows(
    connection: &mut PgConnection,
    key: EndpointKey,
    request: &FlushRequest,
) -> Result<(), sqlx::Error> {
    let updates = &request.changes.updates;
    if updates.is_empty() {
        return Ok(());
    }
    let delays = updates.iter().map(|update| match update.outcome {
        DeliveryOutcome::RetryAt(at) => Some(interval(at.saturating_sub(request.now))),
        DeliveryOutcome::Blocked | DeliveryOutcome::Delivered | DeliveryOutcome::Failed => None,
    });
    let numbers: Vec<i64> = updates.iter().map(|update| update.number).collect();
    let ids: Vec<Uuid> = updates.iter().map(|_| Uuid::now_v7()).collect();
    let orders: Vec<OrderId> = updates.iter().map(|update| update.order_id).collect();
    let states: Vec<DeliveryState> = updates.iter().map(|update| state(update.outcome)).collect();
    let attempts: Vec<i32> = updates
        .iter()
        .map(|update| update.attempts.cast_signed())
        .collect();
    let replays: Vec<i32> = updates
        .iter()
        .map(|update| update.replays.cast_signed())
        .collect();
    sqlx::query!(
        "INSERT INTO deliveries AS d (partner_id, webhook_id, number, delivery_id, order_id, state, attempts, replays,
                                      next_at, give_up_at, event_at)
         SELECT $1, $2, m.number, m.delivery_id, m.order_id, m.state, m.attempts, m.replays,
                COALESCE(now() + m.wait, 'infinity'), e.created_at + $10, e.created_at
           FROM unnest($3::bigint[], $4::uuid[], $5::uuid[], $6::text[], $7::integer[], $8::integer[], $9::interval[])
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
        key.partner_id as _,
        key.webhook_id as _,
        &numbers,
        &ids,
        &orders as _,
        &states as _,
        &attempts,
        &replays,
        delays.collect::<Vec<_>>() as _,
        interval(RETRY_WINDOW),
    )
    .execute(connection)
    .await
    .map(drop)
}

const fn state(outcome: DeliveryOutcome) -> DeliveryState {
    match outcome {
        DeliveryOutcome::RetryAt(_) | DeliveryOutcome::Blocked => DeliveryState::Waiting,
        DeliveryOutcome::Delivered => DeliveryState::Delivered,
        DeliveryOutcome::Failed => DeliveryState::Failed,
    }
}

async fn append_attempts(
    connection: &mut PgConnection,
    key: EndpointKey,
    request: &FlushRequest,
) -> Result<(), sqlx::Error> {
    for (number, attempt) in &request.attempts {
        sqlx::query!(
            "UPDATE deliveries AS d
                SET log = CASE WHEN jsonb_array_length(d.log) >= $5 THEN d.log - 0 ELSE d.log END || $4
              WHERE d.partner_id = $1
                AND d.webhook_id = $2
                AND d.number = $3
                AND (d.log -> -1) IS DISTINCT FROM $4",
            key.partner_id as _,
            key.webhook_id as _,
            number,
            Json(attempt) as _,
            MAX_LOGGED_ATTEMPTS,
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Makes the waiting deliveries due at once: after the first success of a failing endpoint, or a change of
/// its settings.
pub(crate) async fn make_waiting_due(
    connection: &mut PgConnection,
    partner_id: PartnerId,
    webhook_id: WebhookId,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE deliveries
            SET next_at = now()
          WHERE partner_id = $1
            AND webhook_id = $2
            AND state = 'WAITING'
            AND next_at > now()
            AND next_at < 'infinity'",
        partner_id as _,
        webhook_id as _,
    )
    .execute(connection)
    .await
    .map(drop)
}

async fn schedule_next_attempt(
    connection: &mut PgConnection,
    key: EndpointKey,
    request: &FlushRequest,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE webhook_progress AS p
            SET due_at = COALESCE(now() + $3, (
                SELECT min(d.next_at)
                  FROM deliveries AS d
                 WHERE d.partner_id = $1
                   AND d.webhook_id = $2
                   AND d.state = 'WAITING'
                   AND d.next_at < 'infinity'))
          WHERE p.partner_id = $1 AND p.webhook_id = $2",
        key.partner_id as _,
        key.webhook_id as _,
        request.retry_in.map(interval),
    )
    .execute(connection)
    .await
    .map(drop)
}
