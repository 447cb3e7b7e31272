//! Events as they are read: by the partner's number, out of the rows that commits wrote.
//!
//! Rule: a partner's numbers have no gap and are in the order of the commits, so who has read up to a number has missed
//! nothing. What is read is bounded in rows and in bytes.

use std::sync::Arc;

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::domain::delivery::{Letter, Told};
use vouchsafe_actors::domain::event::EventBundle;
use vouchsafe_actors::domain::ids::{EventId, OrderId, PartnerId};

use super::PgStore;
use super::audit::rows;

/// For how long events are in the feed, and can be replayed (contract §3). Days.
pub const FEED_DAYS: i32 = 30;

/// Most bytes of rows that are read at once, unless one row alone has more: what is kept of an order of a thousand
/// vouchers is some 60 KiB, and spelled out it is several times that.
pub(super) const MAX_BYTES: i64 = 256 * 1_024;

/// Most rows that are read at once.
pub(super) const MAX_ROWS: usize = 64;

#[derive(sqlx::FromRow)]
pub(super) struct EventRow {
    number: i64,
    order_id: Uuid,
    body: String,
    created_at: OffsetDateTime,
}

impl EventRow {
    pub(super) const fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(super) fn told(self, partner_id: PartnerId) -> Result<Told, sqlx::Error> {
        let bundle: EventBundle = serde_json::from_str(&self.body).map_err(|_| {
            sqlx::Error::Decode(format!("the events from {} do not read", self.number).into())
        })?;
        Ok(Told {
            partner_id,
            number: self.number,
            bundle: EventBundle {
                order_id: OrderId::from_uuid(self.order_id),
                ..bundle
            },
            created_at: self.created_at,
        })
    }
}

/// A page of the feed.
#[derive(Debug, Default)]
pub struct FeedPage {
    /// In the order of the commits.
    pub letters: Vec<Letter>,
    /// Whether there are more.
    pub more: bool,
}

/// Where the feed is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedPlace {
    /// The oldest of the time for which it is kept.
    Oldest,
    /// Behind this event.
    After(EventId),
}

impl PgStore {
    /// Up to `limit` events of a partner; `None` where the event to begin behind is none of its feed.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn read_feed(
        &self,
        partner_id: PartnerId,
        place: FeedPlace,
        limit: usize,
    ) -> Result<Option<FeedPage>, sqlx::Error> {
        self.run(move |pool| async move {
            let after = match place {
                FeedPlace::Oldest => before_feed(&pool, partner_id).await?,
                FeedPlace::After(event_id) => {
                    let Some(letter) = find_event(&pool, partner_id, event_id).await? else {
                        return Ok(None);
                    };
                    letter.number
                }
            };
            page(&pool, partner_id, after, limit).await.map(Some)
        })
        .await
    }

    /// The event with this id, if it is the partner's and in its feed.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_event(
        &self,
        partner_id: PartnerId,
        event_id: EventId,
    ) -> Result<Option<Letter>, sqlx::Error> {
        self.run(move |pool| async move { find_event(&pool, partner_id, event_id).await })
            .await
    }
}

pub(super) async fn find_event(
    pool: &PgPool,
    partner_id: PartnerId,
    event_id: EventId,
) -> Result<Option<Letter>, sqlx::Error> {
    let Some(number) = event_id.number(partner_id) else {
        return Ok(None);
    };
    let row: Option<EventRow> = sqlx::query_as(
        "SELECT number, order_id, body, created_at
           FROM events
          WHERE partner_id = $1
            AND number <= $2
            AND created_at >= now() - make_interval(days => $3)
          ORDER BY number DESC
          LIMIT 1",
    )
    .bind(partner_id.as_uuid())
    .bind(number)
    .bind(FEED_DAYS)
    .fetch_optional(pool)
    .await?;
    let Some(told) = row.map(|row| row.told(partner_id)).transpose()? else {
        return Ok(None);
    };
    let is_it = number >= told.number && number <= told.last_number() && told.event_id(number) == event_id;
    Ok(is_it.then(|| Letter {
        told: Arc::new(told),
        number,
    }))
}

/// The number before the first event of the feed.
async fn before_feed(pool: &PgPool, partner_id: PartnerId) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT events_before($1, now() - make_interval(days => $2))")
        .bind(partner_id.as_uuid())
        .bind(FEED_DAYS)
        .fetch_one(pool)
        .await
}

async fn page(
    pool: &PgPool,
    partner_id: PartnerId,
    after: i64,
    limit: usize,
) -> Result<FeedPage, sqlx::Error> {
    let mut page = FeedPage::default();
    // A row has one event at least, so one more row than events says whether there are more.
    for told in rows_after(pool, partner_id, after, limit + 1).await? {
        let told = Arc::new(told);
        for number in told.number.max(after + 1)..=told.last_number() {
            if page.letters.len() == limit {
                page.more = true;
                return Ok(page);
            }
            let told = Arc::clone(&told);
            page.letters.push(Letter { told, number });
        }
    }
    // It ended for its bytes.
    let last = page.letters.last().map_or(after, |letter| letter.number);
    page.more = !page.letters.is_empty() && newest(pool, partner_id).await? > last;
    Ok(page)
}

async fn newest(pool: &PgPool, partner_id: PartnerId) -> Result<i64, sqlx::Error> {
    let newest = sqlx::query_scalar("SELECT last_number FROM feeds WHERE partner_id = $1")
        .bind(partner_id.as_uuid())
        .fetch_optional(pool)
        .await?;
    Ok(newest.unwrap_or_default())
}

/// The rows that have the events past a number.
async fn rows_after(
    pool: &PgPool,
    partner_id: PartnerId,
    after: i64,
    most: usize,
) -> Result<Vec<Told>, sqlx::Error> {
    let found: Vec<EventRow> = sqlx::query_as(
        "SELECT e.number, e.order_id, e.body, e.created_at
           FROM (SELECT e.*,
                        sum(length(e.body)) OVER (ORDER BY e.number) - length(e.body) AS bytes_before
                   FROM events AS e
                  WHERE e.partner_id = $1
                    AND e.number >= COALESCE(
                        (SELECT max(f.number)
                           FROM events AS f
                          WHERE f.partner_id = $1 AND f.number <= $2 + 1), 0)
                  ORDER BY e.number
                  LIMIT $3) AS e
          WHERE e.bytes_before < $4
          ORDER BY e.number",
    )
    .bind(partner_id.as_uuid())
    .bind(after)
    .bind(rows(most))
    .bind(MAX_BYTES)
    .fetch_all(pool)
    .await?;
    found.into_iter().map(|row| row.told(partner_id)).collect()
}
