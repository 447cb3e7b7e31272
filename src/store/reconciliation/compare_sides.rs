//! How are a vendor's books and ours walked side by side? By reference, a page of each in memory at a time.

use std::collections::VecDeque;

use sqlx::{Executor as _, PgConnection};

use super::row::{HeldRow, RecordedRow};
use super::{ReconciliationRun, PAGE_ROWS, findings};
use crate::reconciliation::day::Span;
use crate::reconciliation::merge::{MergeStep, Side, Tally, merge_step};
use crate::reconciliation::{OwnVoucher, VendorEntry};
use crate::store::audit::to_bigint;

/// A page of a stream, and where the next one begins.
struct PageStream<T, K> {
    page: VecDeque<T>,
    last: K,
    ended: bool,
}

impl<T, K> PageStream<T, K> {
    fn from(start: K) -> Self {
        Self {
            page: VecDeque::new(),
            last: start,
            ended: false,
        }
    }

    fn needs_refill(&self) -> bool {
        self.page.is_empty() && !self.ended
    }

    fn refill(&mut self, page: Vec<T>, key: impl Fn(&T) -> K) {
        self.ended = page.len() < PAGE_ROWS;
        if let Some(last) = page.last() {
            self.last = key(last);
        }
        self.page = page.into();
    }
}

/// Puts ours in a row: what the day's books must have, and whatever else they have of ours.
pub(super) async fn load_held_vouchers(
    connection: &mut PgConnection,
    books: &ReconciliationRun,
    span: Span,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "WITH meant AS (
            SELECT c.code_id
              FROM codes AS c
              JOIN purchases AS p ON p.purchase_id = c.purchase_id
             WHERE c.bought_at >= $3
               AND c.bought_at < $4
               AND p.vendor = $1
             UNION
            SELECT c.code_id
              FROM pg_temp.incoming AS i
              JOIN codes AS c ON c.vendor_reference = i.reference COLLATE \"default\"
              JOIN purchases AS p ON p.purchase_id = c.purchase_id
             WHERE p.vendor = $1
         )
         INSERT INTO pg_temp.held (place, reference, code_id, purchase_id, product_id, denomination, currency, partner_id,
                                   order_id, due)
         SELECT row_number() OVER (ORDER BY c.vendor_reference COLLATE \"C\", c.code_id),
                c.vendor_reference,
                c.code_id,
                c.purchase_id,
                c.product_id,
                c.denomination,
                p.currency,
                p.partner_id,
                p.order_id,
                c.bought_at >= $3
                AND c.bought_at < $4
                AND NOT EXISTS (
                    SELECT
                      FROM vendor_records AS r
                     WHERE r.vendor = $1 AND r.reference = c.vendor_reference AND r.day <> $2
                )
           FROM meant AS m
           JOIN codes AS c ON c.code_id = m.code_id
           JOIN purchases AS p ON p.purchase_id = c.purchase_id
          WHERE c.vendor_reference IS NOT NULL",
    )
    .bind(&books.vendor)
    .bind(books.day)
    .bind(span.from)
    .bind(span.to)
    .execute(&mut *connection)
    .await?;
    connection.execute("ANALYZE pg_temp.held").await.map(drop)
}

/// Walks both sides to their ends, and notes what is found.
pub(super) async fn compare_records(connection: &mut PgConnection, books: &ReconciliationRun) -> Result<Tally, sqlx::Error> {
    let mut ours: PageStream<(HeldRow, OwnVoucher), i64> = PageStream::from(0);
    let mut theirs: PageStream<(RecordedRow, VendorEntry), String> = PageStream::from(String::new());
    let mut tally = Tally::default();
    let mut findings = findings::Findings::default();
    loop {
        if ours.needs_refill() {
            let page = fetch_held(connection, ours.last).await?;
            ours.refill(page, |(row, _)| row.place);
        }
        if theirs.needs_refill() {
            let page = fetch_recorded(connection, books, &theirs.last).await?;
            theirs.refill(page, |(row, _)| row.reference.clone());
        }
        let (held, recorded) = (ours.page.front(), theirs.page.front());
        let Some(MergeStep { side: takes, comparison: found }) = merge_step(held.map(|(_, held)| held), recorded.map(|(_, one)| one))
        else {
            break;
        };
        let held = matches!(takes, Side::Ours | Side::Both)
            .then(|| ours.page.pop_front())
            .flatten();
        let recorded = matches!(takes, Side::Theirs | Side::Both)
            .then(|| theirs.page.pop_front())
            .flatten();
        if let Some(found) = found {
            tally.count(found);
            findings.push(found, held.map(|(row, _)| row), recorded.map(|(row, _)| row));
        }
        if findings.len() == PAGE_ROWS {
            std::mem::take(&mut findings).flush(connection).await?;
        }
    }
    findings.flush(connection).await?;
    Ok(tally)
}

async fn fetch_held(
    connection: &mut PgConnection,
    after: i64,
) -> Result<Vec<(HeldRow, OwnVoucher)>, sqlx::Error> {
    let page: Vec<HeldRow> =
        sqlx::query_as("SELECT * FROM pg_temp.held WHERE place > $1 ORDER BY place LIMIT $2")
            .bind(after)
            .bind(to_bigint(PAGE_ROWS))
            .fetch_all(connection)
            .await?;
    page.into_iter()
        .map(|row| row.read().map(|held| (row, held)))
        .collect()
}

async fn fetch_recorded(
    connection: &mut PgConnection,
    books: &ReconciliationRun,
    after: &str,
) -> Result<Vec<(RecordedRow, VendorEntry)>, sqlx::Error> {
    let page: Vec<RecordedRow> = sqlx::query_as(
        "SELECT i.reference,
                i.purchase_id,
                i.product_id,
                i.denomination,
                i.currency,
                EXISTS (
                    SELECT
                      FROM vendor_records AS r
                     WHERE r.vendor = $1 AND r.reference = i.reference COLLATE \"default\" AND r.day < $2
                ) AS repeated,
                p.partner_id,
                p.order_id
           FROM pg_temp.incoming AS i
           LEFT JOIN purchases AS p ON p.purchase_id = i.purchase_id AND p.vendor = $1
          WHERE i.reference > $3 COLLATE \"C\"
          ORDER BY i.reference
          LIMIT $4",
    )
    .bind(&books.vendor)
    .bind(books.day)
    .bind(after)
    .bind(to_bigint(PAGE_ROWS))
    .fetch_all(connection)
    .await?;
    page.into_iter()
        .map(|row| row.read().map(|recorded| (row, recorded)))
        .collect()
}
