//! What is sent again: one event or a span of them becomes deliveries anew, with 24 hours of their own.
//!
//! Rules: a replayed event goes before what waits of its order; of an order it is due once nothing before it waits. A replay is
//! ended by an attempt that began after it was committed: each has a number, and what is written of an attempt names it.

use sqlx::{PgExecutor, PgPool, Postgres, Transaction};
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::delivery::schedule::TRIED_FOR;
use vouchsafe_actors::domain::delivery::Told;
use vouchsafe_actors::domain::ids::{DeliveryId, EventId, PartnerId, WebhookId};

use super::interval;
use super::list::{COLUMNS, DeliveryRow, ShownDelivery};
use super::sequence::line_up;
use super::turn::Key;
use crate::store::PgStore;
use crate::store::audit::{self, By, Deed, NOTHING, rows};
use crate::store::events::{EventRow, FEED_DAYS, find_event};
use crate::store::webhooks::kinds_of;

/// Most events of one replay: what is asked for in one request is written in one transaction.
pub const MAX_REPLAYED: usize = 10_000;

/// What is to be sent again.
#[derive(Debug, Clone, Copy)]
pub enum ReplayWish {
    Event(EventId),
    /// Those that were committed from the one moment on and before the other.
    Span(OffsetDateTime, OffsetDateTime),
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replayed {
    /// So many events are sent again.
    Again(usize),
    /// The endpoint is none of the partner.
    NoWebhook,
    /// The event is none of the partner's feed.
    NoEvent,
    /// There are more than [`MAX_REPLAYED`].
    TooMany,
}

impl PgStore {
    /// Sends events to an endpoint again.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn replay_events(
        &self,
        partner_id: PartnerId,
        webhook_id: WebhookId,
        wish: ReplayWish,
        by: By,
    ) -> Result<Replayed, sqlx::Error> {
        let key = Key {
            partner_id,
            webhook_id,
        };
        self.run(move |pool| async move { replay(&pool, key, wish, &by).await })
            .await
    }

    /// Sends a delivery again, and says how it stands then; `None` where there is none with this id, or none that can be sent.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn replay_delivery(
        &self,
        delivery_id: DeliveryId,
        by: By,
    ) -> Result<Option<ShownDelivery>, sqlx::Error> {
        self.run(move |pool| async move {
            let Some(before) = find_delivery(&pool, delivery_id).await? else {
                return Ok(None);
            };
            let key = Key {
                partner_id: before.partner_id,
                webhook_id: before.webhook_id,
            };
            let Some(letter) = find_event(&pool, key.partner_id, before.event_id).await? else {
                return Ok(None);
            };
            let number = (letter.number, before.order_id.as_uuid());
            let Some(mut transaction) = write(&pool, key, &[number], &by).await? else {
                return Ok(None);
            };
            // Once it is committed somebody may take it at once.
            let again = find_delivery(&mut *transaction, delivery_id).await?;
            transaction.commit().await?;
            Ok(again)
        })
        .await
    }
}

async fn find_delivery(
    connection: impl PgExecutor<'_>,
    delivery_id: DeliveryId,
) -> Result<Option<ShownDelivery>, sqlx::Error> {
    let row: Option<DeliveryRow> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
        "SELECT {COLUMNS} FROM deliveries AS d WHERE d.delivery_id = $1"
    )))
    .bind(delivery_id.as_uuid())
    .fetch_optional(connection)
    .await?;
    row.map(ShownDelivery::try_from).transpose()
}

async fn replay(pool: &PgPool, key: Key, wish: ReplayWish, by: &By) -> Result<Replayed, sqlx::Error> {
    let Key {
        partner_id,
        webhook_id,
    } = key;
    let events: Option<Option<Vec<String>>> =
        sqlx::query_scalar("SELECT events FROM webhooks WHERE partner_id = $1 AND webhook_id = $2")
            .bind(partner_id.as_uuid())
            .bind(webhook_id.as_uuid())
            .fetch_optional(pool)
            .await?;
    let Some(events) = events else {
        return Ok(Replayed::NoWebhook);
    };
    let kinds = kinds_of(events.as_deref());
    let numbers: Vec<(i64, Uuid)> = match wish {
        ReplayWish::Event(event_id) => {
            let Some(letter) = find_event(pool, partner_id, event_id).await? else {
                return Ok(Replayed::NoEvent);
            };
            vec![(letter.number, letter.told.bundle.order_id.as_uuid())]
        }
        ReplayWish::Span(from, to) => {
            let told = committed_between(pool, partner_id, from, to).await?;
            let asked = |told: &Told, number| told.kind(number).is_some_and(|kind| kinds.contains(kind));
            let numbers = told.iter().flat_map(|told| {
                let order_id = told.bundle.order_id.as_uuid();
                let numbers = told.number..=told.last_number();
                let numbers = numbers.filter(|number| asked(told, *number));
                numbers.map(move |number| (number, order_id))
            });
            numbers.take(MAX_REPLAYED + 1).collect()
        }
    };
    if numbers.len() > MAX_REPLAYED {
        return Ok(Replayed::TooMany);
    }
    let Some(transaction) = write(pool, key, &numbers, by).await? else {
        return Ok(Replayed::NoWebhook);
    };
    transaction.commit().await?;
    Ok(Replayed::Again(numbers.len()))
}

async fn committed_between(
    pool: &PgPool,
    partner_id: PartnerId,
    from: OffsetDateTime,
    to: OffsetDateTime,
) -> Result<Vec<Told>, sqlx::Error> {
    let found: Vec<EventRow> = sqlx::query_as(
        "SELECT number, order_id, body, created_at
           FROM events
          WHERE partner_id = $1
            AND number > events_before($1, GREATEST($2, now() - make_interval(days => $4)) - interval '1 minute')
            AND created_at >= GREATEST($2, now() - make_interval(days => $4))
            AND created_at < $3
          ORDER BY number
          LIMIT $5",
    )
    .bind(partner_id.as_uuid())
    .bind(from)
    .bind(to)
    .bind(FEED_DAYS)
    .bind(rows(MAX_REPLAYED + 1))
    .fetch_all(pool)
    .await?;
    found.into_iter().map(|row| row.told(partner_id)).collect()
}

/// What is to be committed; `None` where there is no such endpoint any more. Locks: webhook_progress, deliveries by number.
async fn write(
    pool: &PgPool,
    key: Key,
    numbers: &[(i64, Uuid)],
    by: &By,
) -> Result<Option<Transaction<'static, Postgres>>, sqlx::Error> {
    let ids: Vec<Uuid> = numbers.iter().map(|_| Uuid::now_v7()).collect();
    let (numbers, orders): (Vec<i64>, Vec<Uuid>) = numbers.iter().copied().unzip();
    let mut transaction = pool.begin().await?;
    // Whoever delivers looks at once, on whichever node; and a row that waits is not ended meanwhile.
    let found = sqlx::query(
        "UPDATE webhook_progress
            SET due_at = CASE WHEN failing_since IS NULL OR due_at IS NULL THEN now() ELSE due_at END
          WHERE partner_id = $1 AND webhook_id = $2",
    )
    .bind(key.partner_id.as_uuid())
    .bind(key.webhook_id.as_uuid())
    .execute(&mut *transaction)
    .await?;
    // It was removed since it was read, and has no rows any more.
    if found.rows_affected() == 0 {
        return transaction.rollback().await.map(|()| None);
    }
    sqlx::query(
        "INSERT INTO deliveries AS d (partner_id, webhook_id, number, delivery_id, order_id, state, attempts, replays,
                                      next_at, ends_at, event_at)
         SELECT $1, $2, m.number, m.delivery_id, m.order_id, 'WAITING', 0, 1, 'infinity', now() + $6, e.created_at
           FROM unnest($3, $4, $5) AS m (number, delivery_id, order_id)
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
                ends_at = EXCLUDED.ends_at,
                updated_at = now()",
    )
    .bind(key.partner_id.as_uuid())
    .bind(key.webhook_id.as_uuid())
    .bind(numbers)
    .bind(ids)
    .bind(&orders)
    .bind(interval(TRIED_FOR))
    .execute(&mut *transaction)
    .await?;
    line_up(&mut transaction, key, &orders).await?;
    let subject = key.webhook_id.to_string();
    let deed = Deed {
        action: "webhook.replay",
        subject: &subject,
    };
    audit::write(&mut transaction, by, deed, NOTHING, NOTHING).await?;
    Ok(Some(transaction))
}
