//! Merge join of our vouchers and the vendor's records by reference, with one page of each side in memory.

use std::collections::VecDeque;

use sqlx::{Executor as _, PgConnection};
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::reconciliation::day::Span;
use vouchsafe_domain::reconciliation::merge::{MergeStep, Side, Tally, merge_step};

use super::row::{HeldVoucher, RecordedVoucher};
use super::{PAGE_ROWS, ReconciliationRun, findings};

/// Buffered page of a sorted stream, and the key after which the next page begins.
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

/// Numbers our side: vouchers bought in the day's span, and any others that the vendor's records name.
pub(super) async fn load_held_vouchers(
    connection: &mut PgConnection,
    run: &ReconciliationRun,
    span: Span,
) -> Result<(), sqlx::Error> {
    // Not checked at compile time, when the temporary table does not exist.
    sqlx::query(
        "WITH relevant AS (
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
         INSERT INTO pg_temp.held (position, reference, code_id, purchase_id, product_id, denomination, currency, partner_id,
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
           FROM relevant AS m
           JOIN codes AS c ON c.code_id = m.code_id
           JOIN purchases AS p ON p.purchase_id = c.purchase_id
          WHERE c.vendor_reference IS NOT NULL",
    )
    .bind(&run.vendor)
    .bind(run.day)
    .bind(span.from)
    .bind(span.to)
    .execute(&mut *connection)
    .await?;
    connection.execute("ANALYZE pg_temp.held").await.map(drop)
}

/// Merges both sides and writes the findings to the temporary table.
pub(super) async fn compare_records(
    connection: &mut PgConnection,
    run: &ReconciliationRun,
) -> Result<Tally, sqlx::Error> {
    let mut ours: PageStream<HeldVoucher, i64> = PageStream::from(0);
    let mut theirs: PageStream<RecordedVoucher, String> = PageStream::from(String::new());
    let mut tally = Tally::default();
    let mut findings = findings::Findings::default();
    loop {
        if ours.needs_refill() {
            let page = fetch_held(connection, ours.last).await?;
            ours.refill(page, |held| held.position);
        }
        if theirs.needs_refill() {
            let page = fetch_recorded(connection, run, &theirs.last).await?;
            theirs.refill(page, |recorded| recorded.entry.reference.clone());
        }
        let (held, recorded) = (ours.page.front(), theirs.page.front());
        let step = merge_step(
            held.map(|held| &held.voucher),
            recorded.map(|recorded| &recorded.entry),
        );
        let Some(MergeStep { side, comparison }) = step else {
            break;
        };
        let held = matches!(side, Side::Ours | Side::Both)
            .then(|| ours.page.pop_front())
            .flatten();
        let recorded = matches!(side, Side::Theirs | Side::Both)
            .then(|| theirs.page.pop_front())
            .flatten();
        if let Some(comparison) = comparison {
            tally.count(comparison);
            findings.push(comparison, held, recorded);
        }
        if findings.len() == PAGE_ROWS {
            std::mem::take(&mut findings).flush(connection).await?;
        }
    }
    findings.flush(connection).await?;
    Ok(tally)
}

async fn fetch_held(connection: &mut PgConnection, after: i64) -> Result<Vec<HeldVoucher>, sqlx::Error> {
    // Not checked at compile time, when the temporary table does not exist.
    sqlx::query_as("SELECT * FROM pg_temp.held WHERE position > $1 ORDER BY position LIMIT $2")
        .bind(after)
        .bind(to_bigint(PAGE_ROWS))
        .fetch_all(connection)
        .await
}

async fn fetch_recorded(
    connection: &mut PgConnection,
    run: &ReconciliationRun,
    after: &str,
) -> Result<Vec<RecordedVoucher>, sqlx::Error> {
    // Not checked at compile time, when the temporary table does not exist.
    sqlx::query_as(
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
    .bind(&run.vendor)
    .bind(run.day)
    .bind(after)
    .bind(to_bigint(PAGE_ROWS))
    .fetch_all(connection)
    .await
}
