//! Which events past what was read are next? Those that the endpoint asks for, and rows that are due and lie among them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sqlx::PgPool;
use vouchsafe_actors::delivery::outbox::{Page, Pending};
use vouchsafe_actors::delivery::queue::Want;
use vouchsafe_actors::delivery::schedule::TRIED_FOR;
use vouchsafe_actors::domain::delivery::{Letter, Told};

use super::page::{Endpoint, due_rows};
use super::turn::Key;
use crate::store::audit::rows;
use crate::store::events::{EventRow, MAX_BYTES, MAX_ROWS};

#[derive(sqlx::FromRow)]
struct NewRow {
    #[sqlx(flatten)]
    event: EventRow,
    first_waiting: Option<i64>,
}

/// The events of one commit, and the first of its order that waits in a row.
struct New {
    told: Arc<Told>,
    first_waiting: Option<i64>,
}

/// Rows past what was read.
#[derive(Default)]
struct Ahead {
    /// The numbers of all of them.
    stored: HashSet<i64>,
    /// Those that are due, or wait where the oldest is wanted.
    due: HashMap<i64, Pending>,
    /// No farther: there are more that are due.
    end: Option<i64>,
}

/// Adds up to `most` deliveries to the page, in the order of their numbers.
pub(super) async fn walk(
    pool: &PgPool,
    endpoint: &Endpoint,
    want: Want,
    most: usize,
    page: &mut Page,
) -> Result<(), sqlx::Error> {
    let after = page.read_to;
    let found = rows_after(pool, endpoint.key, after).await?;
    let bytes: usize = found.iter().map(|row| row.event.bytes()).sum();
    page.more = found.len() == MAX_ROWS || rows(bytes) >= MAX_BYTES;
    let told = |row: NewRow| {
        Ok(New {
            told: Arc::new(row.event.told(endpoint.key.partner_id)?),
            first_waiting: row.first_waiting,
        })
    };
    let found: Vec<New> = found.into_iter().map(told).collect::<Result<_, sqlx::Error>>()?;
    let Some(last) = found.last().map(|new| new.told.last_number()) else {
        return Ok(());
    };
    let mut ahead = Ahead::default();
    if endpoint.rows_ahead {
        ahead = Ahead::read(pool, endpoint, want, after, last).await?;
    }
    let mut room = most;
    for new in found {
        for number in new.told.number.max(after + 1)..=new.told.last_number() {
            let pending = ahead.due.remove(&number).or_else(|| {
                let is_new = asks_for(endpoint, &new.told, number) && !ahead.stored.contains(&number);
                is_new.then(|| first_time(endpoint, &new, number))
            });
            if room == 0 && pending.is_some() || ahead.end.is_some_and(|end| number > end) {
                page.more = true;
                return Ok(());
            }
            room -= usize::from(pending.is_some());
            page.pending.extend(pending);
            page.read_to = number;
        }
    }
    Ok(())
}

fn asks_for(endpoint: &Endpoint, told: &Told, number: i64) -> bool {
    told.kind(number)
        .is_some_and(|kind| endpoint.kinds.contains(kind))
}

fn first_time(endpoint: &Endpoint, new: &New, number: i64) -> Pending {
    Pending {
        letter: Letter {
            told: Arc::clone(&new.told),
            number,
        },
        order_id: new.told.bundle.order_id,
        attempts: 0,
        replays: 0,
        stored: false,
        behind: new.first_waiting.is_some_and(|first| first < number),
        due_in: time::Duration::ZERO,
        ends_in: new.told.created_at + TRIED_FOR - endpoint.now,
    }
}

impl Ahead {
    async fn read(
        pool: &PgPool,
        endpoint: &Endpoint,
        want: Want,
        after: i64,
        last: i64,
    ) -> Result<Self, sqlx::Error> {
        let due = due_rows(pool, endpoint, want, after + 1..=last).await?;
        let end = due.last().filter(|_| due.len() == MAX_ROWS);
        Ok(Self {
            stored: stored_after(pool, endpoint.key, after, last).await?,
            end: end.map(|pending| pending.letter.number),
            due: due
                .into_iter()
                .map(|pending| (pending.letter.number, pending))
                .collect(),
        })
    }
}

/// The rows that have the events past a number, each with the first of its order that waits in a row.
async fn rows_after(pool: &PgPool, key: Key, after: i64) -> Result<Vec<NewRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT e.number, e.order_id, e.body, e.created_at,
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
                          WHERE f.partner_id = $1 AND f.number <= $3 + 1
                          ORDER BY f.number DESC
                          LIMIT 1), 0)
                  ORDER BY e.number
                  LIMIT $4) AS e
          WHERE e.bytes_before < $5
          ORDER BY e.number",
    )
    .bind(key.partner_id.as_uuid())
    .bind(key.webhook_id.as_uuid())
    .bind(after)
    .bind(rows(MAX_ROWS))
    .bind(MAX_BYTES)
    .fetch_all(pool)
    .await
}

/// Which of these numbers have a row.
async fn stored_after(pool: &PgPool, key: Key, after: i64, last: i64) -> Result<HashSet<i64>, sqlx::Error> {
    let numbers: Vec<i64> = sqlx::query_scalar(
        "SELECT number
           FROM deliveries
          WHERE partner_id = $1 AND webhook_id = $2 AND number > $3 AND number <= $4",
    )
    .bind(key.partner_id.as_uuid())
    .bind(key.webhook_id.as_uuid())
    .bind(after)
    .bind(last)
    .fetch_all(pool)
    .await?;
    Ok(numbers.into_iter().collect())
}
