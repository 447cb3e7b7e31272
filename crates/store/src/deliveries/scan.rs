//! Scan of the events after the read position: events that the endpoint subscribes to, and due delivery rows
//! among them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sqlx::PgPool;
use vouchsafe_actors::delivery::outbox::{DeliveryPage, PendingDelivery};
use vouchsafe_actors::delivery::queue::ReadRequest;
use vouchsafe_actors::delivery::retry::RETRY_WINDOW;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::delivery::{CommittedEvents, WebhookEvent};
use vouchsafe_domain::ids::OrderId;

use super::due_rows::read_by_number;
use super::endpoint::{EndpointKey, EndpointSnapshot};
use crate::events::{EventRow, MAX_PAGE_BYTES, MAX_PAGE_ROWS};

struct NewRow {
    event: EventRow,
    first_waiting: Option<i64>,
}

/// Events of one commit, with the first waiting delivery of their order.
struct CommittedBundle {
    events: Arc<CommittedEvents>,
    first_waiting: Option<i64>,
}

/// Delivery rows after the read position.
#[derive(Default)]
struct RowsAhead {
    /// Event numbers of all rows.
    stored: HashSet<i64>,
    /// Rows that are due, or all that may be attempted if the endpoint is failing.
    due: HashMap<i64, PendingDelivery>,
    /// Last number of a full page of due rows: the scan must not go beyond.
    end: Option<i64>,
}

/// Adds up to `limit` deliveries to the page, in number order.
pub(super) async fn scan_events(
    pool: &PgPool,
    endpoint: &EndpointSnapshot,
    request: ReadRequest,
    limit: usize,
    page: &mut DeliveryPage,
) -> Result<(), sqlx::Error> {
    let after = page.scanned_to;
    let found = fetch_rows_after(pool, endpoint.key, after).await?;
    let bytes: usize = found.iter().map(|row| row.event.bytes()).sum();
    page.has_more = found.len() == MAX_PAGE_ROWS || to_bigint(bytes) >= MAX_PAGE_BYTES;
    let decode = |row: NewRow| {
        Ok(CommittedBundle {
            events: Arc::new(row.event.into_committed_events(endpoint.key.partner_id)?),
            first_waiting: row.first_waiting,
        })
    };
    let found: Vec<CommittedBundle> = found
        .into_iter()
        .map(decode)
        .collect::<Result<_, sqlx::Error>>()?;
    let Some(last) = found.last().map(|bundle| bundle.events.last_number()) else {
        return Ok(());
    };
    let mut ahead = RowsAhead::default();
    if endpoint.rows_ahead {
        ahead = RowsAhead::read(pool, endpoint, request, after, last).await?;
    }
    let mut remaining = limit;
    for bundle in found {
        for number in bundle.events.first_number.max(after + 1)..=bundle.events.last_number() {
            let pending = ahead.due.remove(&number).or_else(|| {
                let is_new =
                    is_subscribed(endpoint, &bundle.events, number) && !ahead.stored.contains(&number);
                is_new.then(|| new_delivery(endpoint, &bundle, number))
            });
            if remaining == 0 && pending.is_some() || ahead.end.is_some_and(|end| number > end) {
                page.has_more = true;
                return Ok(());
            }
            remaining -= usize::from(pending.is_some());
            page.pending.extend(pending);
            page.scanned_to = number;
        }
    }
    Ok(())
}

fn is_subscribed(endpoint: &EndpointSnapshot, events: &CommittedEvents, number: i64) -> bool {
    events
        .kind(number)
        .is_some_and(|kind| endpoint.kinds.contains(kind))
}

fn new_delivery(endpoint: &EndpointSnapshot, bundle: &CommittedBundle, number: i64) -> PendingDelivery {
    PendingDelivery {
        event: WebhookEvent {
            events: Arc::clone(&bundle.events),
            number,
        },
        order_id: bundle.events.bundle.order_id,
        attempts: 0,
        replays: 0,
        has_row: false,
        is_blocked: bundle.first_waiting.is_some_and(|first| first < number),
        due_in: time::Duration::ZERO,
        give_up_in: bundle.events.created_at + RETRY_WINDOW - endpoint.now,
    }
}

impl RowsAhead {
    async fn read(
        pool: &PgPool,
        endpoint: &EndpointSnapshot,
        request: ReadRequest,
        after: i64,
        last: i64,
    ) -> Result<Self, sqlx::Error> {
        let due = read_by_number(pool, endpoint, request, after + 1..=last).await?;
        let end = due.last().filter(|_| due.len() == MAX_PAGE_ROWS);
        Ok(Self {
            stored: find_stored_numbers(pool, endpoint.key, after, last).await?,
            end: end.map(|pending| pending.event.number),
            due: due
                .into_iter()
                .map(|pending| (pending.event.number, pending))
                .collect(),
        })
    }
}

/// Fetches the event rows after a number, each with the first waiting delivery of its order.
async fn fetch_rows_after(pool: &PgPool, key: EndpointKey, after: i64) -> Result<Vec<NewRow>, sqlx::Error> {
    sqlx::query!(
        r#"SELECT e.number, e.order_id AS "order_id: OrderId", e.body, e.created_at,
                COALESCE((
                      SELECT true
                        FROM orders AS o
                       WHERE o.partner_id = e.partner_id AND o.order_id = e.order_id AND o.erased_at IS NOT NULL
                       LIMIT 1), false) AS "is_erased!",
                (SELECT min(d.number)
                   FROM deliveries AS d
                  WHERE d.partner_id = $1
                    AND d.webhook_id = $2
                    AND d.order_id = e.order_id
                    AND d.state = 'WAITING'
                ) AS first_waiting
           FROM (SELECT e.*,
                        sum(octet_length(e.body)) OVER (ORDER BY e.number) - octet_length(e.body) AS bytes_before
                   FROM events AS e
                  WHERE e.partner_id = $1
                    AND e.number >= COALESCE(
                        (SELECT f.number
                           FROM events AS f
                          WHERE f.partner_id = $1 AND f.number <= $3::bigint + 1
                          ORDER BY f.number DESC
                          LIMIT 1), 0)
                  ORDER BY e.number
                  LIMIT $4) AS e
          WHERE e.bytes_before < $5
          ORDER BY e.number"#,
        key.partner_id as _,
        key.webhook_id as _,
        after,
        to_bigint(MAX_PAGE_ROWS),
        MAX_PAGE_BYTES,
    )
    .map(|row| NewRow {
        event: EventRow {
            number: row.number,
            is_erased: row.is_erased,
            order_id: row.order_id,
            body: row.body,
            created_at: row.created_at,
        },
        first_waiting: row.first_waiting,
    })
    .fetch_all(pool)
    .await
}

/// Finds the event numbers in the range that have a delivery row.
async fn find_stored_numbers(
    pool: &PgPool,
    key: EndpointKey,
    after: i64,
    last: i64,
) -> Result<HashSet<i64>, sqlx::Error> {
    let numbers = sqlx::query_scalar!(
        "SELECT number
           FROM deliveries
          WHERE partner_id = $1 AND webhook_id = $2 AND number > $3 AND number <= $4",
        key.partner_id as _,
        key.webhook_id as _,
        after,
        last,
    );
    Ok(numbers.fetch_all(pool).await?.into_iter().collect())
}
