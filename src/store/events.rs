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

use super::audit::rows;
use super::together::{BatchOp, Outcomes, place};

/// For how long events are in the feed, and can be replayed (contract §3). Days.
pub const FEED_DAYS: i32 = 30;

/// Most bytes of rows that a page is made of, unless one row alone has more: what is kept of an order of a thousand
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
    After(EventId),
}

/// A page of a feed that is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct FeedRequest {
    pub(super) partner_id: PartnerId,
    pub(super) place: FeedPlace,
    /// How many events at most.
    pub(super) limit: usize,
}

/// Reads pages of feeds.
#[derive(Debug, Clone)]
pub(super) struct ReadFeeds;

impl BatchOp for ReadFeeds {
    type Request = FeedRequest;
    /// `None` where the event to begin behind is none of the feed.
    type Answer = Option<FeedPage>;

    /// A page may have `MAX_BYTES`.
    const MOST: usize = 8;

    async fn together(
        self,
        pool: PgPool,
        requests: Vec<FeedRequest>,
    ) -> Result<Outcomes<Option<FeedPage>>, sqlx::Error> {
        read(&pool, &requests).await
    }

    async fn alone(self, pool: PgPool, request: FeedRequest) -> Result<Option<FeedPage>, sqlx::Error> {
        let page = read(&pool, &[request]).await?.pop().flatten();
        page.unwrap_or(Ok(None))
    }
}

/// The pages that are asked for, in their order. What cannot be read of one is an error of its own.
async fn read(pool: &PgPool, requests: &[FeedRequest]) -> Result<Outcomes<Option<FeedPage>>, sqlx::Error> {
    let mut pages: Outcomes<_> = requests.iter().map(|_| Some(Ok(None))).collect();
    let mut begun = Vec::with_capacity(requests.len());
    let (mut oldest, mut after) = (Vec::new(), Vec::new());
    for (asked, request) in requests.iter().enumerate() {
        match request.place {
            FeedPlace::Oldest => oldest.push((asked, request.partner_id)),
            FeedPlace::After(event_id) => after.push((asked, (request.partner_id, event_id))),
        }
    }
    if !oldest.is_empty() {
        let partners: Vec<_> = oldest.iter().map(|(_, partner_id)| *partner_id).collect();
        let numbers = before_feeds(pool, &partners).await?;
        begun.extend(
            oldest
                .iter()
                .zip(numbers)
                .map(|((asked, _), number)| (*asked, number)),
        );
    }
    if !after.is_empty() {
        let events: Vec<_> = after.iter().map(|(_, event)| *event).collect();
        for ((asked, _), letter) in after.iter().zip(find_events(pool, &events).await?) {
            match letter {
                Ok(Some(letter)) => begun.push((*asked, letter.number)),
                Ok(None) => {}
                Err(error) => pages[*asked] = Some(Err(error)),
            }
        }
    }
    if !begun.is_empty() {
        let places: Vec<_> = begun
            .iter()
            .map(|(asked, number)| (requests[*asked], *number))
            .collect();
        for ((asked, _), page) in begun.iter().zip(pages_after(pool, &places).await?) {
            pages[*asked] = Some(page.map(Some));
        }
    }
    Ok(pages)
}

/// The event with this id, if it is the partner's and in its feed.
pub(super) async fn find_event(
    pool: &PgPool,
    partner_id: PartnerId,
    event_id: EventId,
) -> Result<Option<Letter>, sqlx::Error> {
    let found = find_events(pool, &[(partner_id, event_id)]).await?.pop();
    found.unwrap_or(Ok(None))
}

/// The same of many, in their order.
async fn find_events(
    pool: &PgPool,
    asked: &[(PartnerId, EventId)],
) -> Result<Vec<Result<Option<Letter>, sqlx::Error>>, sqlx::Error> {
    // No event has a number of zero, and an id that says none is no event's.
    let numbers = asked
        .iter()
        .map(|(partner_id, event_id)| event_id.number(*partner_id).unwrap_or(0));
    let rows: Vec<FoundRow> = sqlx::query_as(
        "SELECT a.place::integer, e.number, e.order_id, e.body, e.created_at
           FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS a (partner_id, number, place)
          CROSS JOIN LATERAL (SELECT *
                                FROM events AS e
                               WHERE e.partner_id = a.partner_id AND e.number <= a.number
                               ORDER BY e.number DESC
                               LIMIT 1) AS e
          WHERE e.created_at >= now() - make_interval(days => $3)",
    )
    .bind(asked.iter().map(|(id, _)| id.as_uuid()).collect::<Vec<_>>())
    .bind(numbers.collect::<Vec<_>>())
    .bind(FEED_DAYS)
    .fetch_all(pool)
    .await?;
    let mut letters: Vec<_> = asked.iter().map(|_| Ok(None)).collect();
    for row in rows {
        let place = place(row.place)?;
        let (partner_id, event_id) = asked[place];
        letters[place] = row.event.told(partner_id).map(|told| letter(told, event_id));
    }
    Ok(letters)
}

/// The event with this id, if it is of this row.
fn letter(told: Told, event_id: EventId) -> Option<Letter> {
    let number = event_id.number(told.partner_id)?;
    let is_it = number >= told.number && number <= told.last_number() && told.event_id(number) == event_id;
    is_it.then(|| Letter {
        told: Arc::new(told),
        number,
    })
}

/// A row, and which of those that were asked for it is.
#[derive(sqlx::FromRow)]
struct FoundRow {
    place: i32,
    #[sqlx(flatten)]
    event: EventRow,
}

/// The number before the first event of the feed of each.
async fn before_feeds(pool: &PgPool, partners: &[PartnerId]) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT events_before(a.partner_id, now() - make_interval(days => $2))
           FROM unnest($1::uuid[]) WITH ORDINALITY AS a (partner_id, place)
          ORDER BY a.place",
    )
    .bind(partners.iter().map(|id| id.as_uuid()).collect::<Vec<_>>())
    .bind(FEED_DAYS)
    .fetch_all(pool)
    .await
}

/// What follows a number of each feed that is asked for, in their order.
async fn pages_after(
    pool: &PgPool,
    places: &[(FeedRequest, i64)],
) -> Result<Vec<Result<FeedPage, sqlx::Error>>, sqlx::Error> {
    let mut pages: Vec<_> = places.iter().map(|_| Ok(FeedPage::default())).collect();
    for row in rows_after(pool, places).await? {
        let place = place(row.place)?;
        let (request, after) = places[place];
        let newest = row.newest;
        match (row.event.told(request.partner_id), &mut pages[place]) {
            (Ok(told), Ok(page)) => page.tell(Arc::new(told), after, newest, request.limit),
            (Err(error), page) => *page = Err(error),
            (Ok(_), Err(_)) => {}
        }
    }
    Ok(pages)
}

impl FeedPage {
    /// Adds the events of a row past `after`, as far as there is room for them.
    fn tell(&mut self, told: Arc<Told>, after: i64, newest: i64, limit: usize) {
        let left = limit - self.letters.len();
        let letters = (told.number.max(after + 1)..=told.last_number()).take(left);
        self.letters.extend(letters.map(|number| Letter {
            told: Arc::clone(&told),
            number,
        }));
        self.more = self.letters.last().is_some_and(|last| newest > last.number);
    }
}

/// A row of a page, and the number of the partner's newest event.
#[derive(sqlx::FromRow)]
struct FeedRow {
    place: i32,
    #[sqlx(flatten)]
    event: EventRow,
    newest: i64,
}

/// The rows that have the next events past numbers: numbers have no gap, so they say where a page ends.
async fn rows_after(pool: &PgPool, places: &[(FeedRequest, i64)]) -> Result<Vec<FeedRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT a.place::integer, e.number, e.order_id, e.body, e.created_at, f.last_number AS newest
           FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS a (partner_id, after, most, place)
           LEFT JOIN LATERAL (SELECT f.last_number FROM feeds AS f WHERE f.partner_id = a.partner_id LIMIT 1) AS f ON true
          CROSS JOIN LATERAL (
                SELECT e.*,
                       sum(octet_length(e.body)) OVER (ORDER BY e.number) - octet_length(e.body) AS bytes_before
                  FROM events AS e
                 WHERE e.partner_id = a.partner_id
                   AND e.number >= COALESCE(
                       (SELECT f.number
                          FROM events AS f
                         WHERE f.partner_id = a.partner_id AND f.number <= a.after + 1
                         ORDER BY f.number DESC
                         LIMIT 1), 0)
                   AND e.number <= a.after + a.most) AS e
          WHERE e.bytes_before < $4
          ORDER BY a.place, e.number",
    )
    .bind(places.iter().map(|(asked, _)| asked.partner_id.as_uuid()).collect::<Vec<_>>())
    .bind(places.iter().map(|(_, after)| *after).collect::<Vec<_>>())
    .bind(places.iter().map(|(asked, _)| rows(asked.limit)).collect::<Vec<_>>())
    .bind(MAX_BYTES)
    .fetch_all(pool)
    .await
}
