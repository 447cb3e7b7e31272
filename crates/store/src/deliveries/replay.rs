//! Replay of webhook events: one event or a time range becomes new deliveries with a new retry window of 24
//! hours.
//!
//! Replayed events keep their order within an order: each is due when no earlier event of the order waits.
//! Only an attempt that began after the commit of a replay can end it: rows count their replays, and the
//! result of an attempt names the count.

use sqlx::{PgPool, Postgres, Transaction};
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::delivery::queue::FAILING_THRESHOLD;
use vouchsafe_actors::delivery::retry::RETRY_WINDOW;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::delivery::replay::ReplayRequest;
use vouchsafe_domain::delivery::view::DeliveryView;
use vouchsafe_domain::event_kind::EventKinds;
use vouchsafe_domain::ids::{DeliveryId, OrderId, PartnerId, WebhookId};

use super::endpoint::EndpointKey;
use super::interval;
use super::list::find_delivery;
use super::sequence::schedule_first_waiting;
use crate::deliveries::DeliveryLog;
use crate::events::{EventRow, FEED_DAYS, MAX_PAGE_ROWS, find_event};

/// Bounds the transaction of one replay request.
pub const MAX_REPLAYED: usize = 10_000;

/// Stored bytes of the events that one request may read to find those of the endpoint's kinds: a thousand
/// orders of 1,000 vouchers.
const MAX_READ_BYTES: i64 = 64 * 1_024 * 1_024;

/// Result of a replay request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayOutcome {
    /// Number of events to be sent again.
    Scheduled(usize),
    WebhookNotFound,
    /// The event is not in the partner's feed.
    EventNotFound,
    /// More than [`MAX_REPLAYED`] events or commits, or more than [`MAX_READ_BYTES`].
    TooManyEvents,
}

impl DeliveryLog {
    /// Schedules events to be sent to an endpoint again.
    #[boxed]
    pub async fn replay_events(
        &self,
        partner_id: PartnerId,
        webhook_id: WebhookId,
        request: ReplayRequest,
        actor: AuditActor,
    ) -> Result<ReplayOutcome, StoreError> {
        let key = EndpointKey {
            partner_id,
            webhook_id,
        };
        self.0
            .run(move |pool| async move { replay(&pool, key, request, &actor).await })
            .await
    }

    /// Schedules a delivery to be sent again and returns its new state. `None` if it does not exist or its
    /// event is not in the feed.
    #[boxed]
    pub async fn replay(
        &self,
        delivery_id: DeliveryId,
        actor: AuditActor,
    ) -> Result<Option<DeliveryView>, StoreError> {
        self.0
            .run(move |pool| async move {
                let Some(before) = find_delivery(delivery_id).fetch_optional(&pool).await? else {
                    return Ok(None);
                };
                let key = EndpointKey {
                    partner_id: before.partner_id,
                    webhook_id: before.webhook_id,
                };
                let Some(event) = find_event(&pool, key.partner_id, before.event_id).await? else {
                    return Ok(None);
                };
                let number = (event.number, before.order_id);
                let Some(mut transaction) = write_replays(&pool, key, &[number], &actor).await? else {
                    return Ok(None);
                };
                // Read before the commit: afterwards a node may deliver it at once.
                let after = find_delivery(delivery_id)
                    .fetch_optional(&mut *transaction)
                    .await?;
                transaction.commit().await?;
                Ok(after)
            })
            .await
    }
}

async fn replay(
    pool: &PgPool,
    key: EndpointKey,
    request: ReplayRequest,
    actor: &AuditActor,
) -> Result<ReplayOutcome, sqlx::Error> {
    let EndpointKey {
        partner_id,
        webhook_id,
    } = key;
    let events = sqlx::query_scalar!(
        "SELECT events FROM webhooks WHERE partner_id = $1 AND webhook_id = $2",
        partner_id as _,
        webhook_id as _,
    );
    let Some(events) = events.fetch_optional(pool).await? else {
        return Ok(ReplayOutcome::WebhookNotFound);
    };
    let kinds = EventKinds::from_labels(events.as_deref());
    let numbers: Vec<(i64, OrderId)> = match request {
        ReplayRequest::Event(event_id) => {
            let Some(event) = find_event(pool, partner_id, event_id).await? else {
                return Ok(ReplayOutcome::EventNotFound);
            };
            vec![(event.number, event.events.bundle.order_id)]
        }
        ReplayRequest::TimeRange(from, to) => {
            let range = TimeRange::find(pool, partner_id, from, to).await?;
            if range.is_too_large(pool).await? {
                return Ok(ReplayOutcome::TooManyEvents);
            }
            range.read_numbers(pool, &kinds).await?
        }
    };
    if numbers.len() > MAX_REPLAYED {
        return Ok(ReplayOutcome::TooManyEvents);
    }
    let Some(transaction) = write_replays(pool, key, &numbers, actor).await? else {
        return Ok(ReplayOutcome::WebhookNotFound);
    };
    transaction.commit().await?;
    Ok(ReplayOutcome::Scheduled(numbers.len()))
}

/// A partner's events in a time range, at most of the last [`FEED_DAYS`].
struct TimeRange {
    partner_id: PartnerId,
    /// The events of the range have higher numbers.
    after: i64,
    /// The events of the range have numbers up to this one.
    up_to: i64,
    from: OffsetDateTime,
    to: OffsetDateTime,
}

impl TimeRange {
    async fn find(
        pool: &PgPool,
        partner_id: PartnerId,
        from: OffsetDateTime,
        to: OffsetDateTime,
    ) -> Result<Self, sqlx::Error> {
        sqlx::query!(
            r#"SELECT last_event_before_v2($1, s.from_at - interval '1 minute') AS "after!",
                    last_event_before_v2($1, $4::timestamptz + interval '1 minute') AS "up_to!",
                    s.from_at AS "from_at!"
               FROM (SELECT GREATEST($2, now() - make_interval(days => $3)) AS from_at) AS s"#,
            partner_id as _,
            from,
            FEED_DAYS,
            to,
        )
        .map(|row| Self {
            partner_id,
            after: row.after,
            up_to: row.up_to,
            from: row.from_at,
            to,
        })
        .fetch_one(pool)
        .await
    }

    /// Counts commits and bytes without reading the events, up to one commit more than may be replayed.
    async fn is_too_large(&self, pool: &PgPool) -> Result<bool, sqlx::Error> {
        let size = sqlx::query!(
            r#"SELECT count(*) AS "commits!", COALESCE(sum(octet_length(e.body)), 0) AS "bytes!"
               FROM (SELECT body
                       FROM events
                      WHERE partner_id = $1 AND number > $2 AND number <= $6 AND created_at >= $3 AND created_at < $4
                      ORDER BY number
                      LIMIT $5) AS e"#,
            self.partner_id as _,
            self.after,
            self.from,
            self.to,
            to_bigint(MAX_REPLAYED + 1),
            self.up_to,
        );
        let size = size.fetch_one(pool).await?;
        Ok(size.commits > to_bigint(MAX_REPLAYED) || size.bytes > MAX_READ_BYTES)
    }

    /// Reads the numbers of the events of these kinds, one page of events at a time, until they are too many.
    async fn read_numbers(
        &self,
        pool: &PgPool,
        kinds: &EventKinds,
    ) -> Result<Vec<(i64, OrderId)>, sqlx::Error> {
        let (mut numbers, mut after) = (Vec::new(), self.after);
        loop {
            let page = sqlx::query_as!(
                EventRow,
                // Only the kinds of the events are read.
                r#"SELECT number, order_id AS "order_id: OrderId", body, created_at, true AS "is_erased!"
                   FROM events
                  WHERE partner_id = $1 AND number > $2 AND number <= $6 AND created_at >= $3 AND created_at < $4
                  ORDER BY number
                  LIMIT $5"#,
                self.partner_id as _,
                after,
                self.from,
                self.to,
                to_bigint(MAX_PAGE_ROWS),
                self.up_to,
            );
            let page = page.fetch_all(pool).await?;
            let Some(last) = page.last() else {
                return Ok(numbers);
            };
            after = last.number;
            for row in page {
                let events = row.into_committed_events(self.partner_id)?;
                let is_subscribed =
                    |number: &i64| events.kind(*number).is_some_and(|kind| kinds.contains(kind));
                let subscribed = (events.first_number..=events.last_number()).filter(is_subscribed);
                numbers.extend(subscribed.map(|number| (number, events.bundle.order_id)));
            }
            if numbers.len() > MAX_REPLAYED {
                return Ok(numbers);
            }
        }
    }
}

/// Returns the transaction to commit, or `None` if the endpoint was removed. Lock order: webhook_progress,
/// deliveries by number.
async fn write_replays(
    pool: &PgPool,
    key: EndpointKey,
    numbers: &[(i64, OrderId)],
    actor: &AuditActor,
) -> Result<Option<Transaction<'static, Postgres>>, sqlx::Error> {
    let ids: Vec<Uuid> = numbers.iter().map(|_| Uuid::now_v7()).collect();
    let (numbers, orders): (Vec<i64>, Vec<OrderId>) = numbers.iter().copied().unzip();
    let mut transaction = pool.begin().await?;
    // Makes the endpoint due on all nodes unless it fails, and keeps waiting rows from ending meanwhile.
    let found = sqlx::query!(
        "UPDATE webhook_progress
            SET due_at = CASE WHEN failures < $3 OR due_at IS NULL THEN now() ELSE due_at END
          WHERE partner_id = $1 AND webhook_id = $2",
        key.partner_id as _,
        key.webhook_id as _,
        FAILING_THRESHOLD.cast_signed(),
    );
    // The endpoint was removed since it was read.
    if found.execute(&mut *transaction).await?.rows_affected() == 0 {
        return transaction.rollback().await.map(|()| None);
    }
    sqlx::query!(
        "INSERT INTO deliveries AS d (partner_id, webhook_id, number, delivery_id, order_id, state, attempts, replays,
                                      next_at, give_up_at, event_at)
         SELECT $1, $2, m.number, m.delivery_id, m.order_id, 'WAITING', 0, 1, 'infinity', now() + $6, e.created_at
           FROM unnest($3::bigint[], $4::uuid[], $5::uuid[]) AS m (number, delivery_id, order_id)
          CROSS JOIN LATERAL (
                SELECT e.created_at
                  FROM events AS e
                 WHERE e.partner_id = $1 AND e.number <= m.number
                 ORDER BY e.number DESC
                 LIMIT 1) AS e
          ORDER BY m.number
         ON CONFLICT (partner_id, webhook_id, number) DO UPDATE
            SET state = 'WAITING',
                attempts = 0,
                replays = d.replays + 1,
                next_at = EXCLUDED.next_at,
                give_up_at = EXCLUDED.give_up_at,
                updated_at = now()",
        key.partner_id as _,
        key.webhook_id as _,
        &numbers,
        &ids,
        &orders as _,
        interval(RETRY_WINDOW),
    )
    .execute(&mut *transaction)
    .await?;
    schedule_first_waiting(&mut transaction, key, &orders).await?;
    audit::write_of_partner(
        &mut transaction,
        actor,
        key.partner_id,
        AuditAction::ReplayEvents,
        &key.webhook_id,
        NO_STATE,
        NO_STATE,
    )
    .await?;
    Ok(Some(transaction))
}
