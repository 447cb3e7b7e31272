//! Event feed: reads a partner's events by number.
//!
//! The numbers of a partner's events have no gap and follow the commit order, so a reader that has read up to
//! a number has missed nothing. Pages are bounded in rows and bytes.
//!
//! The batched lookups share [`EventRow`] as a part of their rows, which the macros for checked SQL cannot
//! fill.

use std::sync::Arc;

use sqlx::PgPool;
use time::OffsetDateTime;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::delivery::{CommittedEvents, WebhookEvent};
use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::ids::{EventId, OrderId, PartnerId};

use vouchsafe_database::batcher::{BatchOp, BatchResponse, request_index};

/// How long events stay in the feed and can be replayed (contract §3). Days.
pub const FEED_DAYS: i32 = 30;

/// Stored bytes per page, unless a single row has more. The events of an order of 1,000 vouchers take about
/// 60 KiB stored, and several times that on the wire.
pub(super) const MAX_PAGE_BYTES: i64 = 256 * 1_024;

pub(super) const MAX_PAGE_ROWS: usize = 64;

#[derive(sqlx::FromRow)]
pub(super) struct EventRow {
    pub(super) number: i64,
    pub(super) order_id: OrderId,
    pub(super) body: String,
    pub(super) created_at: OffsetDateTime,
    /// Whether the personal data of the order was erased.
    pub(super) is_erased: bool,
}

impl EventRow {
    pub(super) const fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(super) fn into_committed_events(self, partner_id: PartnerId) -> Result<CommittedEvents, sqlx::Error> {
        let mut bundle: EventBundle = serde_json::from_str(&self.body).map_err(|_| {
            sqlx::Error::Decode(format!("cannot decode the events from number {}", self.number).into())
        })?;
        if self.is_erased {
            bundle.erase();
        }
        Ok(CommittedEvents {
            partner_id,
            first_number: self.number,
            bundle: EventBundle {
                order_id: self.order_id,
                ..bundle
            },
            created_at: self.created_at,
        })
    }
}

#[derive(Debug, Default)]
pub struct FeedPage {
    /// Sorted by commit.
    pub events: Vec<WebhookEvent>,
    pub has_more: bool,
}

/// Start of a feed page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedPosition {
    /// The oldest event in the feed.
    Oldest,
    After(EventId),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct FeedRequest {
    pub(super) partner_id: PartnerId,
    pub(super) position: FeedPosition,
    pub(super) limit: usize,
}

#[derive(Debug, Clone)]
pub(super) struct ReadFeedsOp;

impl BatchOp for ReadFeedsOp {
    type Request = FeedRequest;
    /// `None` if the event to start after is not in the partner's feed.
    type Response = Option<FeedPage>;

    /// Each page may have `MAX_PAGE_BYTES`.
    const MAX_BATCH: usize = 8;

    async fn execute_batch(
        self,
        pool: PgPool,
        requests: Vec<FeedRequest>,
    ) -> Result<BatchResponse<Option<FeedPage>>, sqlx::Error> {
        read_pages(&pool, &requests).await
    }
}

/// Reads the requested pages. A row that cannot be decoded fails only its own page.
async fn read_pages(
    pool: &PgPool,
    requests: &[FeedRequest],
) -> Result<BatchResponse<Option<FeedPage>>, sqlx::Error> {
    let mut pages: BatchResponse<_> = requests.iter().map(|_| Some(Ok(None))).collect();
    let mut starts = Vec::with_capacity(requests.len());
    let (mut oldest, mut after) = (Vec::new(), Vec::new());
    for (index, request) in requests.iter().enumerate() {
        match request.position {
            FeedPosition::Oldest => oldest.push((index, request.partner_id)),
            FeedPosition::After(event_id) => after.push((index, (request.partner_id, event_id))),
        }
    }
    if !oldest.is_empty() {
        let partners: Vec<_> = oldest.iter().map(|(_, partner_id)| *partner_id).collect();
        let numbers = feed_starts(pool, &partners).await?;
        starts.extend(
            oldest
                .iter()
                .zip(numbers)
                .map(|((index, _), number)| (*index, number)),
        );
    }
    if !after.is_empty() {
        let events: Vec<_> = after.iter().map(|(_, event)| *event).collect();
        for ((index, _), event) in after.iter().zip(find_events(pool, &events).await?) {
            match event {
                Ok(Some(event)) => starts.push((*index, event.number)),
                Ok(None) => {}
                Err(error) => pages[*index] = Some(Err(error)),
            }
        }
    }
    if !starts.is_empty() {
        let page_requests: Vec<_> = starts
            .iter()
            .map(|(index, number)| (requests[*index], *number))
            .collect();
        for ((index, _), page) in starts.iter().zip(read_pages_after(pool, &page_requests).await?) {
            pages[*index] = Some(page.map(Some));
        }
    }
    Ok(pages)
}

/// Finds an event in the partner's feed.
pub(super) async fn find_event(
    pool: &PgPool,
    partner_id: PartnerId,
    event_id: EventId,
) -> Result<Option<WebhookEvent>, sqlx::Error> {
    let found = find_events(pool, &[(partner_id, event_id)]).await?.pop();
    found.unwrap_or(Ok(None))
}

/// Finds several events, in request order.
async fn find_events(
    pool: &PgPool,
    keys: &[(PartnerId, EventId)],
) -> Result<Vec<Result<Option<WebhookEvent>, sqlx::Error>>, sqlx::Error> {
    // An id without a number matches no event: numbers start at 1.
    let numbers = keys
        .iter()
        .map(|(partner_id, event_id)| event_id.number(*partner_id).unwrap_or(0));
    // Not checked at compile time: `query_as!` does not use `FromRow`, so it cannot fill the flattened row.
    let rows: Vec<IndexedEventRow> = sqlx::query_as(
        "SELECT a.position::integer, e.number, e.order_id, e.body, e.created_at,
                COALESCE((
                      SELECT true
                        FROM orders AS o
                       WHERE o.partner_id = e.partner_id AND o.order_id = e.order_id AND o.erased_at IS NOT NULL
                       LIMIT 1), false) AS is_erased
           FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS a (partner_id, number, position)
          CROSS JOIN LATERAL (SELECT *
                                FROM events AS e
                               WHERE e.partner_id = a.partner_id AND e.number <= a.number
                               ORDER BY e.number DESC
                               LIMIT 1) AS e
          WHERE e.created_at >= now() - make_interval(days => $3)",
    )
    .bind(keys.iter().map(|(partner_id, _)| *partner_id).collect::<Vec<_>>())
    .bind(numbers.collect::<Vec<_>>())
    .bind(FEED_DAYS)
    .fetch_all(pool)
    .await?;
    let mut events: Vec<_> = keys.iter().map(|_| Ok(None)).collect();
    for row in rows {
        let position = request_index(row.position)?;
        let (partner_id, event_id) = keys[position];
        events[position] = row
            .event
            .into_committed_events(partner_id)
            .map(|bundle| find_in_bundle(bundle, event_id));
    }
    Ok(events)
}

/// Returns the event with this id if the bundle contains it.
fn find_in_bundle(bundle: CommittedEvents, event_id: EventId) -> Option<WebhookEvent> {
    let number = event_id.number(bundle.partner_id)?;
    let is_match = number >= bundle.first_number
        && number <= bundle.last_number()
        && bundle.event_id(number) == event_id;
    is_match.then(|| WebhookEvent {
        events: Arc::new(bundle),
        number,
    })
}

#[derive(sqlx::FromRow)]
struct IndexedEventRow {
    position: i32,
    #[sqlx(flatten)]
    event: EventRow,
}

/// The number before the first event in the feed of each partner.
async fn feed_starts(pool: &PgPool, partners: &[PartnerId]) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT last_event_before_v2(a.partner_id, now() - make_interval(days => $2)) AS "number!"
           FROM unnest($1::uuid[]) WITH ORDINALITY AS a (partner_id, position)
          ORDER BY a.position"#,
        partners as _,
        FEED_DAYS,
    )
    .fetch_all(pool)
    .await
}

/// Reads a page after a number for each request, in request order.
async fn read_pages_after(
    pool: &PgPool,
    requests: &[(FeedRequest, i64)],
) -> Result<Vec<Result<FeedPage, sqlx::Error>>, sqlx::Error> {
    let mut pages: Vec<_> = requests.iter().map(|_| Ok(FeedPage::default())).collect();
    for row in fetch_rows_after(pool, requests).await? {
        let position = request_index(row.position)?;
        let (request, after) = requests[position];
        let newest = row.newest;
        match (
            row.event.into_committed_events(request.partner_id),
            &mut pages[position],
        ) {
            (Ok(bundle), Ok(page)) => page.add_events(Arc::new(bundle), after, newest, request.limit),
            (Err(error), page) => *page = Err(error),
            (Ok(_), Err(_)) => {}
        }
    }
    Ok(pages)
}

impl FeedPage {
    /// Adds the events of a row after number `after`, up to `limit`.
    fn add_events(&mut self, bundle: Arc<CommittedEvents>, after: i64, newest: i64, limit: usize) {
        let left = limit - self.events.len();
        let events = (bundle.first_number.max(after + 1)..=bundle.last_number()).take(left);
        self.events.extend(events.map(|number| WebhookEvent {
            events: Arc::clone(&bundle),
            number,
        }));
        self.has_more = self.events.last().is_some_and(|last| newest > last.number);
    }
}

/// A row of a page with the number of the partner's newest event.
#[derive(sqlx::FromRow)]
struct IndexedFeedRow {
    position: i32,
    #[sqlx(flatten)]
    event: EventRow,
    newest: i64,
}

/// Fetches the rows of the next events. Numbers have no gap, so adding the limit gives the end of a page.
async fn fetch_rows_after(
    pool: &PgPool,
    requests: &[(FeedRequest, i64)],
) -> Result<Vec<IndexedFeedRow>, sqlx::Error> {
    // Not checked at compile time: `query_as!` does not use `FromRow`, so it cannot fill the flattened row.
    sqlx::query_as(
        "SELECT a.position::integer, e.number, e.order_id, e.body, e.created_at, f.last_number AS newest,
                COALESCE((
                      SELECT true
                        FROM orders AS o
                       WHERE o.partner_id = e.partner_id AND o.order_id = e.order_id AND o.erased_at IS NOT NULL
                       LIMIT 1), false) AS is_erased
           FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS a (partner_id, after, page_limit, position)
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
                   AND e.number <= a.after + a.page_limit) AS e
          WHERE e.bytes_before < $4
          ORDER BY a.position, e.number",
    )
    .bind(requests.iter().map(|(request, _)| request.partner_id).collect::<Vec<_>>())
    .bind(requests.iter().map(|(_, after)| *after).collect::<Vec<_>>())
    .bind(requests.iter().map(|(request, _)| to_bigint(request.limit)).collect::<Vec<_>>())
    .bind(MAX_PAGE_BYTES)
    .fetch_all(pool)
    .await
}
