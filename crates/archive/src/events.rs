//! Archive of events: each partner's feed from the end of the month before to the end of the month, by
//! numbers.
//!
//! A feed is numbered in commit order, so a month is a range of numbers. The file of feeds has these ranges,
//! and the removal goes by them.

use std::path::Path;

use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sqlx::PgConnection;
use time::{Date, OffsetDateTime};
use uuid::Uuid;
use vouchsafe_domain::event::EventBundle;

use crate::file::{LineWriter, read_lines};
use crate::manifest::ArchivedFile;
use crate::{ArchiveError, Log, Month, to_line};

const FEEDS_FILE: &str = "feeds.ndjson.gz";
const EVENTS_FILE: &str = "events.ndjson.gz";

/// Rows of a transaction: it holds no lock that an order waits for, and is short for vacuum's sake.
const REMOVED_PER_TRANSACTION: i32 = 5_000;

/// A partner's part of a month.
#[derive(Debug, Serialize, Deserialize)]
struct FeedRange {
    partner_id: Uuid,
    after: i64,
    up_to: i64,
}

#[derive(Serialize)]
struct EventLine<'a> {
    partner_id: Uuid,
    number: i64,
    count: i32,
    order_id: Uuid,
    first_sequence: i32,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    body: &'a RawValue,
}

pub(crate) async fn list_months(connection: &mut PgConnection) -> Result<Vec<Month>, sqlx::Error> {
    let oldest = sqlx::query_scalar!(
        r#"SELECT min(e.created_at AT TIME ZONE 'UTC')::date AS day
             FROM feeds AS f
            CROSS JOIN LATERAL (
                  SELECT e.created_at FROM events AS e WHERE e.partner_id = f.partner_id ORDER BY e.number LIMIT 1
                 ) AS e"#
    );
    let Some(oldest) = oldest.fetch_one(&mut *connection).await? else {
        return Ok(Vec::new());
    };
    let today = sqlx::query_scalar!(r#"SELECT (now() AT TIME ZONE 'UTC')::date AS "today!""#);
    let last = Month::of(today.fetch_one(connection).await?);
    let months = std::iter::successors(Some(Month::of(oldest)), |month| Some(month.next()));
    Ok(months.take_while(|month| *month <= last).collect())
}

pub(crate) async fn write(
    connection: &mut PgConnection,
    month: Month,
    directory: &Path,
) -> Result<Vec<ArchivedFile>, ArchiveError> {
    let ranges = list_ranges(connection, month.first_day(), month.next().first_day()).await?;
    let mut feeds = LineWriter::create(directory, FEEDS_FILE)?;
    let mut events = LineWriter::create(directory, EVENTS_FILE)?;
    for range in ranges {
        feeds.push(&to_line(directory, &range)?)?;
        let numbers = write_range(connection, &range, directory, &mut events).await?;
        if numbers != range.up_to - range.after {
            return Err(rows_differ(month, &range, numbers));
        }
    }
    Ok(vec![feeds.finish()?, events.finish()?])
}

async fn list_ranges(
    connection: &mut PgConnection,
    from: Date,
    to: Date,
) -> Result<Vec<FeedRange>, sqlx::Error> {
    sqlx::query_as!(
        FeedRange,
        r#"SELECT b.partner_id AS "partner_id!", b.after AS "after!", b.up_to AS "up_to!"
             FROM (
                  SELECT f.partner_id,
                         event_boundary_v1(f.partner_id, $1::date::timestamp AT TIME ZONE 'UTC') AS after,
                         event_boundary_v1(f.partner_id, $2::date::timestamp AT TIME ZONE 'UTC') AS up_to
                    FROM feeds AS f
                   ORDER BY f.partner_id
                 ) AS b
            WHERE b.up_to > b.after
            ORDER BY b.partner_id"#,
        from,
        to,
    )
    .fetch_all(connection)
    .await
}

/// Returns how many events the rows have.
async fn write_range(
    connection: &mut PgConnection,
    range: &FeedRange,
    directory: &Path,
    file: &mut LineWriter,
) -> Result<i64, ArchiveError> {
    let rows = sqlx::query!(
        r#"SELECT e.number, e.count, e.order_id, e.first_sequence, e.body, e.created_at,
                  COALESCE((
                      SELECT true
                        FROM orders AS o
                       WHERE o.partner_id = e.partner_id AND o.order_id = e.order_id AND o.erased_at IS NOT NULL
                       LIMIT 1), false) AS "is_erased!"
             FROM events AS e
            WHERE e.partner_id = $1 AND e.number > $2 AND e.number <= $3
            ORDER BY e.number"#,
        range.partner_id,
        range.after,
        range.up_to,
    );
    let mut rows = rows.fetch(connection);
    let mut numbers = 0;
    while let Some(row) = rows.try_next().await? {
        let body = match row.is_erased {
            true => {
                let mut bundle: EventBundle = parse(&row.body, row.number)?;
                bundle.erase();
                to_line(directory, &bundle)?
            }
            false => row.body,
        };
        let line = EventLine {
            partner_id: range.partner_id,
            number: row.number,
            count: row.count,
            order_id: row.order_id,
            first_sequence: row.first_sequence,
            created_at: row.created_at,
            body: parse(&body, row.number)?,
        };
        file.push(&to_line(directory, &line)?)?;
        numbers += i64::from(row.count);
    }
    Ok(numbers)
}

fn parse<'a, T: Deserialize<'a>>(body: &'a str, number: i64) -> Result<T, sqlx::Error> {
    serde_json::from_str(body)
        .map_err(|_| sqlx::Error::Decode(format!("cannot decode the events from number {number}").into()))
}

/// Whether something of the service still needs the events: an endpoint that has not attempted them yet, or
/// an entry of a delivery.
async fn is_needed(connection: &mut PgConnection, ranges: &[FeedRange]) -> Result<bool, sqlx::Error> {
    let (partners, up_to): (Vec<_>, Vec<_>) =
        ranges.iter().map(|range| (range.partner_id, range.up_to)).unzip();
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT
                 FROM unnest($1::uuid[], $2::bigint[]) AS r (partner_id, up_to)
                WHERE EXISTS (
                      SELECT
                        FROM webhook_progress AS p
                        JOIN webhooks AS w ON w.partner_id = p.partner_id AND w.webhook_id = p.webhook_id
                       WHERE p.partner_id = r.partner_id AND w.enabled AND p.cursor < r.up_to
                     )
                   OR EXISTS (SELECT FROM deliveries AS d WHERE d.partner_id = r.partner_id AND d.number <= r.up_to)
              ) AS "is_needed!""#,
        &partners,
        &up_to,
    )
    .fetch_one(connection)
    .await
}

/// Refuses the removal while webhook deliveries of these events are not over. None begins later: events are
/// replayed for thirty days.
pub(crate) async fn check_removable(
    connection: &mut PgConnection,
    month: Month,
    directory: &Path,
) -> Result<(), ArchiveError> {
    let ranges: Vec<FeedRange> = read_lines(&directory.join(FEEDS_FILE))?;
    match is_needed(connection, &ranges).await? {
        true => Err(ArchiveError::Busy {
            log: Log::Events.name(),
            month,
            reason: "webhook deliveries of these events are not over",
        }),
        false => Ok(()),
    }
}

/// Removes the events of the ranges, each partner's oldest first.
pub(crate) async fn remove(
    connection: &mut PgConnection,
    month: Month,
    directory: &Path,
) -> Result<(), ArchiveError> {
    for range in read_lines::<FeedRange>(&directory.join(FEEDS_FILE))? {
        loop {
            let removed = sqlx::query_scalar!(
                r#"SELECT remove_archived_events_v1($1, $2, $3, $4) AS "removed!""#,
                month.first_day(),
                range.partner_id,
                range.up_to,
                REMOVED_PER_TRANSACTION,
            );
            if removed.fetch_one(&mut *connection).await? == 0 {
                break;
            }
        }
    }
    Ok(())
}

fn rows_differ(month: Month, range: &FeedRange, found: i64) -> ArchiveError {
    ArchiveError::RowsDiffer {
        log: Log::Events.name(),
        month,
        file: EVENTS_FILE.to_owned(),
        found,
        archived: range.up_to - range.after,
    }
}
