//! Log of delivery attempts: inserts in batches, and lists per endpoint.
//!
//! | filter | index |
//! |---|---|
//! | none, time range | primary key: an attempt's id begins with its start |
//! | failed attempts | `delivery_attempts_failed` |
//! | order, delivery | `delivery_attempts_of_order` |
//! | type of event, successful attempts | primary key |
//!
//! Rows lie in partitions by the attempt's start, so a list reads the newest partitions until its page is
//! full.

use std::sync::Arc;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;

use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_domain::delivery::attempt::{AttemptFilter, AttemptResult, EndedAttempt, LoggedAttempt};
use vouchsafe_domain::delivery::{AttemptOutcome, DeliveryFault};
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_domain::ids::{AttemptId, DeliveryId, EventId, OrderId, PartnerId, WebhookId};

use super::partitions;
use crate::deliveries::DeliveryLog;

impl DeliveryLog {
    /// Inserts attempts and adds them to the hours of their endpoints, in one statement; attempts that are
    /// stored already stay as they are.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer, or a partition that is missing cannot be created.
    #[boxed]
    pub async fn insert_attempts(
        &self,
        attempts: Arc<[(AttemptId, EndedAttempt)]>,
    ) -> Result<(), StoreError> {
        self.0
            .run(move |pool| async move { insert_into_partitions(&pool, &attempts).await })
            .await
    }

    /// Lists up to `limit` attempts of an endpoint before `before`, newest first.
    #[boxed]
    pub async fn list_attempts(
        &self,
        webhook_id: WebhookId,
        filter: AttemptFilter,
        before: Option<AttemptId>,
        limit: usize,
    ) -> Result<Vec<LoggedAttempt>, StoreError> {
        self.0
            .run(move |pool| async move { list(&pool, webhook_id, filter, before, limit).await })
            .await
    }
}

/// Creates the partitions that are missing: of a day whose partition no node created ahead of time.
async fn insert_into_partitions(
    pool: &PgPool,
    attempts: &[(AttemptId, EndedAttempt)],
) -> Result<(), sqlx::Error> {
    match insert(pool, attempts).await {
        Err(error) if is_partition_missing(&error) => {
            let starts = attempts.iter().map(|(id, _)| id.started_at().date());
            for day in starts.collect::<std::collections::BTreeSet<_>>() {
                partitions::create(pool, day).await?;
            }
            insert(pool, attempts).await
        }
        result => result,
    }
}

/// Postgres reports a row without a partition as a check violation without a constraint.
fn is_partition_missing(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|error| error.is_check_violation() && error.constraint().is_none())
}

async fn insert(pool: &PgPool, attempts: &[(AttemptId, EndedAttempt)]) -> Result<(), sqlx::Error> {
    // An event of an unknown type was not sent.
    let rows = attempts
        .iter()
        .filter_map(|(id, ended)| Some((*id, ended, ended.event.events.kind(ended.event.number)?)));
    let rows: Vec<_> = rows.collect();
    let ended = || rows.iter().map(|(_, ended, _)| ended);
    let webhook_ids: Vec<Uuid> = ended().map(|ended| ended.webhook_id.as_uuid()).collect();
    let attempt_ids: Vec<Uuid> = rows.iter().map(|(id, ..)| id.as_uuid()).collect();
    let partner_ids: Vec<Uuid> = ended()
        .map(|ended| ended.event.events.partner_id.as_uuid())
        .collect();
    let numbers: Vec<i64> = ended().map(|ended| ended.event.number).collect();
    let event_times: Vec<OffsetDateTime> = ended().map(|ended| ended.event.events.created_at).collect();
    let events: Vec<EventKind> = rows.iter().map(|(_, _, event)| *event).collect();
    let order_ids: Vec<Uuid> = ended().map(|ended| ended.order_id.as_uuid()).collect();
    let attempt_numbers: Vec<i32> = ended()
        .map(|ended| i32::try_from(ended.number).unwrap_or(i32::MAX))
        .collect();
    let latencies: Vec<i32> = ended()
        .map(|ended| i32::try_from(ended.attempt.latency_ms).unwrap_or(i32::MAX))
        .collect();
    let delivered: Vec<bool> = ended()
        .map(|ended| ended.outcome == AttemptOutcome::Delivered)
        .collect();
    let statuses: Vec<Option<i16>> = ended()
        .map(|ended| ended.attempt.status.map(u16::cast_signed))
        .collect();
    let faults: Vec<Option<DeliveryFault>> = ended().map(|ended| ended.attempt.fault).collect();
    let answers: Vec<&str> = ended().map(|ended| ended.attempt.answer.as_str()).collect();
    let retry_times: Vec<Option<OffsetDateTime>> = ended().map(|ended| ended.retry_at).collect();
    let starts: Vec<OffsetDateTime> = rows.iter().map(|(id, ..)| id.started_at()).collect();
    // Hours are sorted: two nodes that add to the same ones do not wait for each other in a circle.
    let inserted = sqlx::query!(
        "WITH logged AS (
             INSERT INTO delivery_attempts (webhook_id, attempt_id, partner_id, number, event_at, event, order_id, attempt, latency_ms,
                                            delivered, status, fault, answer, retry_at)
             SELECT a.*
               FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[], $5::timestamptz[], $6::text[], $7::uuid[],
                           $8::integer[], $9::integer[], $10::boolean[], $11::smallint[], $12::text[], $13::text[],
                           $14::timestamptz[]) AS a
             ON CONFLICT DO NOTHING
             RETURNING webhook_id, attempt_id, latency_ms, delivered)
         INSERT INTO webhook_hours AS h (webhook_id, hour, delivered, failed, latency_ms, longest_ms)
         SELECT l.webhook_id, date_trunc('hour', s.started_at, 'UTC') AS hour, count(*) FILTER (WHERE l.delivered),
                count(*) FILTER (WHERE NOT l.delivered), sum(l.latency_ms), max(l.latency_ms)
           FROM logged AS l
           JOIN unnest($2::uuid[], $15::timestamptz[]) AS s (attempt_id, started_at) USING (attempt_id)
          GROUP BY 1, 2
          ORDER BY 1, 2
         ON CONFLICT (webhook_id, hour) DO UPDATE
            SET delivered = h.delivered + EXCLUDED.delivered,
                failed = h.failed + EXCLUDED.failed,
                latency_ms = h.latency_ms + EXCLUDED.latency_ms,
                longest_ms = GREATEST(h.longest_ms, EXCLUDED.longest_ms)",
        &webhook_ids,
        &attempt_ids,
        &partner_ids,
        &numbers,
        &event_times,
        &events as _,
        &order_ids,
        &attempt_numbers,
        &latencies,
        &delivered,
        &statuses as _,
        &faults as _,
        &answers as _,
        &retry_times as _,
        &starts,
    );
    inserted.execute(pool).await.map(drop)
}

#[derive(FromRow)]
struct AttemptRow {
    attempt_id: AttemptId,
    delivery_id: Option<DeliveryId>,
    partner_id: PartnerId,
    number: i64,
    event_at: OffsetDateTime,
    event: EventKind,
    order_id: OrderId,
    attempt: i32,
    latency_ms: i32,
    delivered: bool,
    status: Option<i16>,
    fault: Option<DeliveryFault>,
    answer: String,
    retry_at: Option<OffsetDateTime>,
}

impl From<AttemptRow> for LoggedAttempt {
    fn from(row: AttemptRow) -> Self {
        Self {
            attempt_id: row.attempt_id,
            delivery_id: row.delivery_id,
            event_id: EventId::for_number(row.partner_id, row.number, row.event_at),
            event: row.event,
            order_id: row.order_id,
            attempt: row.attempt,
            at: row.attempt_id.started_at(),
            latency_ms: row.latency_ms,
            outcome: if row.delivered {
                AttemptResult::Delivered
            } else {
                AttemptResult::Failed
            },
            status: row.status,
            fault: row.fault,
            response_body: row.answer.clone(),
            answer: row.answer,
            next_attempt_at: row.retry_at,
        }
    }
}

/// Not prepared persistently: partitions and the best index depend on the filter values.
async fn list(
    pool: &PgPool,
    webhook_id: WebhookId,
    filter: AttemptFilter,
    before: Option<AttemptId>,
    limit: usize,
) -> Result<Vec<LoggedAttempt>, sqlx::Error> {
    let mut query = QueryBuilder::new(
        "SELECT a.*, d.delivery_id
           FROM (SELECT * FROM delivery_attempts AS a WHERE a.webhook_id = ",
    );
    query.push_bind(webhook_id);
    restrict(&mut query, webhook_id, filter);
    if let Some(before) = before {
        query.push(" AND a.attempt_id < ").push_bind(before);
    }
    query
        .push(" ORDER BY a.attempt_id DESC LIMIT ")
        .push_bind(to_bigint(limit));
    query.push(
        ") AS a
           LEFT JOIN deliveries AS d
                  ON d.partner_id = a.partner_id AND d.webhook_id = a.webhook_id AND d.number = a.number
          ORDER BY a.attempt_id DESC",
    );
    let found = query.build_query_as::<AttemptRow>().persistent(false);
    let found = found.fetch_all(pool).await?;
    Ok(found.into_iter().map(LoggedAttempt::from).collect())
}

fn restrict(query: &mut QueryBuilder<Postgres>, webhook_id: WebhookId, filter: AttemptFilter) {
    let AttemptFilter {
        outcome,
        event,
        order_id,
        delivery_id,
        period,
    } = filter;
    match outcome {
        None => {}
        Some(AttemptResult::Delivered) => drop(query.push(" AND a.delivered")),
        Some(AttemptResult::Failed) => drop(query.push(" AND NOT a.delivered")),
    }
    if let Some(event) = event {
        query.push(" AND a.event = ").push_bind(event);
    }
    if let Some(order_id) = order_id {
        query.push(" AND a.order_id = ").push_bind(order_id);
    }
    if let Some(delivery_id) = delivery_id {
        query
            // Not correlated: the planner reads it once, and then the index of the order.
            .push(" AND (a.order_id, a.number) = (SELECT d.order_id, d.number FROM deliveries AS d WHERE d.delivery_id = ")
            .push_bind(delivery_id)
            .push(" AND d.webhook_id = ")
            .push_bind(webhook_id)
            .push(")");
    }
    if let Some(from) = period.from {
        query
            .push(" AND a.attempt_id >= ")
            .push_bind(AttemptId::lower_bound_at(from));
    }
    if let Some(to) = period.to {
        query
            .push(" AND a.attempt_id < ")
            .push_bind(AttemptId::lower_bound_at(to));
    }
}
