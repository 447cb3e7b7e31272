//! A day of a vendor is compared with what was bought: its books come in, both are walked side by side, and the result
//! takes the place of the earlier one.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | its turn: one comparison of a vendor at a time | | a lock that ends with the connection |
//! | the books come in | a page of them | a temporary table, as far as they have come |
//! | they have come to their end | | the same |
//! | both sides are walked by reference | a page of each, and of what was found | temporary tables |
//! | the result is written | | books, result, drifts: in one commit |
//!
//! Rule: books that do not come to their end, or have a voucher twice, change nothing. All of it is done on a connection
//! of its own, by a task that nobody cancels; who feeds it may go away at any time.

mod vendor_records;
mod drifts;
mod schedule;
mod findings;
mod partner_day;
mod results;
mod row;
mod compare_sides;

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, PgConnection};
use time::{Date, OffsetDateTime};
use tokio::sync::mpsc::Receiver;

use super::PgStore;
use super::audit::{self, AuditActor, AuditAction, NO_STATE};
use crate::reconciliation::RecordLine;

pub use self::drifts::{Drift, DriftFilter, DriftResolution, ResolveDriftRequest};
pub use self::schedule::{ClaimedDay, ReconciliationStatus};
pub use self::partner_day::PartnerDay;
pub use self::results::{ReconciliationResult, Reconciliation, RecordsSource, ReconciliationSummary};

/// Rows of a page, of either side and of what was found: what is in memory at once.
pub const PAGE_ROWS: usize = 1_000;

/// What its connection asks of the server: it works on a whole day, and nobody waits for it. Each statement is planned for
/// what it is asked: a plan for any page would sort the whole day for each.
const SESSION_SETTINGS: [(&str, &str); 6] = [
    ("plan_cache_mode", "force_custom_plan"),
    ("statement_timeout", "30min"),
    ("lock_timeout", "30s"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("synchronous_commit", "on"),
    ("default_transaction_isolation", "read committed"),
];

/// How long comparing may take once the books are in. Longer than any statement may, so that only a dead connection
/// gets there.
const DEADLINE: Duration = Duration::from_secs(3_600);

/// Which books come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconciliationRun {
    pub vendor: String,
    /// Of which day (UTC).
    pub day: Date,
    pub source: RecordsSource,
    /// When they were asked for, or before.
    pub begun_at: OffsetDateTime,
    /// Who brings them, where it is not the service.
    pub by: Option<AuditActor>,
}

/// A part of the books.
#[derive(Debug)]
pub enum RecordsMessage {
    Records(Vec<RecordLine>),
    /// There are no more. Without it, nothing is compared.
    End,
}

/// What became of books.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReconciliationOutcome {
    Completed,
    /// Another comparison of the vendor is under way. Nothing was written.
    Busy,
    /// They have a reference twice. Nothing was written.
    DuplicateReference {
        /// Which record has it again, from 1.
        record: u64,
    },
    /// They did not come to their end. Nothing was written.
    Incomplete,
}

impl PgStore {
    /// Takes books in, compares them, and puts the result in the place of the earlier one.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer; then it is not known whether the result is in. It may be
    /// repeated.
    pub async fn reconcile(&self, books: ReconciliationRun, intake: Receiver<RecordsMessage>) -> Result<ReconciliationOutcome, sqlx::Error> {
        let options = self.database.clone().options(SESSION_SETTINGS);
        self.run_detached(async move { reconcile(&options, &books, intake).await })
            .await
    }

    /// What time it is where the days are counted.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn database_time(&self) -> Result<OffsetDateTime, sqlx::Error> {
        self.run(|pool| async move {
            sqlx::query_scalar("SELECT clock_timestamp()")
                .fetch_one(&pool)
                .await
        })
        .await
    }
}

async fn reconcile(
    options: &PgConnectOptions,
    books: &ReconciliationRun,
    intake: Receiver<RecordsMessage>,
) -> Result<ReconciliationOutcome, sqlx::Error> {
    let mut connection = options.connect().await?;
    if !try_lock_vendor(&mut connection, &books.vendor).await? {
        connection.close().await?;
        return Ok(ReconciliationOutcome::Busy);
    }
    let reconciled = load_and_compare(&mut connection, books, intake).await?;
    // Given back before anybody hears of the end: the server notices a closed connection a little later.
    connection.execute("SELECT pg_advisory_unlock_all()").await?;
    connection.close().await?;
    Ok(reconciled)
}

async fn load_and_compare(
    connection: &mut PgConnection,
    books: &ReconciliationRun,
    mut intake: Receiver<RecordsMessage>,
) -> Result<ReconciliationOutcome, sqlx::Error> {
    vendor_records::create_tables(connection).await?;
    let mut taken = 0;
    loop {
        match intake.recv().await {
            Some(RecordsMessage::Records(lines)) => {
                let count = lines.len() as u64;
                if let Some(again) = vendor_records::insert_records(connection, lines).await? {
                    let record = taken + again as u64 + 1;
                    return Ok(ReconciliationOutcome::DuplicateReference { record });
                }
                taken += count;
            }
            Some(RecordsMessage::End) => break,
            None => return Ok(ReconciliationOutcome::Incomplete),
        }
    }
    match tokio::time::timeout(DEADLINE, compare(connection, books)).await {
        Ok(compared) => compared.map(|()| ReconciliationOutcome::Completed),
        Err(_) => Err(super::connection_pool::timeout_error(DEADLINE)),
    }
}

/// One comparison of a vendor at a time, on whichever node. The lock ends with the connection, however that ends.
async fn try_lock_vendor(connection: &mut PgConnection, vendor: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended('reconciliation of ' || $1, 0))")
        .bind(vendor)
        .fetch_one(connection)
        .await
}

async fn compare(connection: &mut PgConnection, books: &ReconciliationRun) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    vendor_records::replace_records(&mut transaction, books).await?;
    let span = results::load_span(&mut transaction, books).await?;
    compare_sides::load_held_vouchers(&mut transaction, books, span).await?;
    let tally = compare_sides::compare_records(&mut transaction, books).await?;
    let summary = findings::write(&mut transaction, books, span, tally).await?;
    if let Some(by) = &books.by {
        let subject = format!("{} {}", books.vendor, books.day);
        let deed = AuditAction {
            name: "reconciliation.upload",
            subject: &subject,
        };
        audit::write(&mut transaction, by, deed, NO_STATE, Some(&summary)).await?;
    }
    transaction.commit().await
}
