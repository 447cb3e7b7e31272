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
        "SELECT e.number, e.order_id, e.body, e.created_at
           FROM (SELECT *
                   FROM events
                  WHERE partner_id = $1 AND number <= $2
                  ORDER BY number DESC
                  LIMIT 1) AS e
          WHERE e.created_at >= now() - make_interval(days => $3)",
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
    let found = rows_after(pool, partner_id, after, limit).await?;
    let newest = found.first().map_or(after, |row| row.newest);
    let mut page = FeedPage::default();
    for row in found {
        let told = Arc::new(row.event.told(partner_id)?);
        let left = limit - page.letters.len();
        let letters = (told.number.max(after + 1)..=told.last_number()).take(left);
        page.letters.extend(letters.map(|number| Letter {
            told: Arc::clone(&told),
            number,
        }));
    }
    page.more = page.letters.last().is_some_and(|last| newest > last.number);
    Ok(page)
}

/// A row of a page, and the number of the partner's newest event.
#[derive(sqlx::FromRow)]
struct FeedRow {
    #[sqlx(flatten)]
    event: EventRow,
    newest: i64,
}

/// The rows that have the next events past a number: numbers have no gap, so they say where the page ends.
async fn rows_after(
    pool: &PgPool,
    partner_id: PartnerId,
    after: i64,
    limit: usize,
) -> Result<Vec<FeedRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT e.number, e.order_id, e.body, e.created_at,
                (SELECT f.last_number FROM feeds AS f WHERE f.partner_id = $1) AS newest
           FROM (SELECT e.*,
                        sum(octet_length(e.body)) OVER (ORDER BY e.number) - octet_length(e.body) AS bytes_before
                   FROM events AS e
                  WHERE e.partner_id = $1
                    AND e.number >= COALESCE(
                        (SELECT f.number
                           FROM events AS f
                          WHERE f.partner_id = $1 AND f.number <= $2 + 1
                          ORDER BY f.number DESC
                          LIMIT 1), 0)
                    AND e.number <= $2 + $3) AS e
          WHERE e.bytes_before < $4
          ORDER BY e.number",
    )
    .bind(partner_id.as_uuid())
    .bind(after)
    .bind(rows(limit))
    .bind(MAX_BYTES)
    .fetch_all(pool)
    .await
}
