//! Reconciliation of a vendor's daily records with our purchases: load, merge join by reference, replace the
//! previous result.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | lock the vendor: one comparison at a time | | session-level advisory lock |
//! | load the vendor's records | one page | temporary table |
//! | merge both sides by reference | one page of each, and of the findings | temporary tables |
//! | write the result | | records, result and drifts in one commit |
//! | count the day's allocations | | by vendor and batch, in the same commit |
//!
//! Incomplete records, or records with a duplicate reference, change nothing. A comparison runs on a separate
//! connection in a task that is never cancelled; the sender of the records may disconnect at any time.
//!
//! Statements on the temporary tables cannot be checked at compile time, when these tables do not exist.

mod allocations;
mod compare_sides;
mod drifts;
mod findings;
mod partner_day;
mod results;
mod row;
mod schedule;
mod vendor_records;

use std::time::Duration;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, open};

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, Executor as _, PgConnection};
use time::{Date, OffsetDateTime};
use tokio::sync::mpsc::Receiver;
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::reconciliation::RecordLine;
use vouchsafe_domain::reconciliation::result::RecordsSource;

use vouchsafe_database::database::Database;

pub use self::drifts::Drifts;
pub use self::schedule::{ClaimedDay, ReconciliationStatus};

/// Rows per page of either side and of the findings, which bounds memory.
pub const PAGE_ROWS: usize = 1_000;

/// Settings of a comparison's connection. Statements work on a whole day in the background, so timeouts are
/// long. Custom plans, because a generic plan would sort the whole day for each page.
const SESSION_SETTINGS: [(&str, &str); 4] = [
    ("plan_cache_mode", "force_custom_plan"),
    ("statement_timeout", "30min"),
    ("lock_timeout", "30s"),
    ("idle_in_transaction_session_timeout", "60s"),
];

/// Deadline of the comparison after the records are loaded. Longer than the statement timeout, so only a dead
/// connection reaches it.
const DEADLINE: Duration = Duration::from_secs(3_600);

/// One comparison of a vendor's records of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconciliationRun {
    pub vendor: String,
    /// Day in UTC.
    pub day: Date,
    pub source: RecordsSource,
    /// Not later than the request of the records.
    pub started_at: OffsetDateTime,
    /// The uploading operator; `None` for the service itself.
    pub actor: Option<AuditActor>,
}

/// A part of the vendor's records.
#[derive(Debug)]
pub enum RecordsMessage {
    Records(Vec<RecordLine>),
    /// All records were sent. Without this message nothing is compared.
    End,
}

/// Result of a reconciliation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReconciliationOutcome {
    Completed,
    /// Another comparison of the vendor is in flight. Nothing was written.
    Busy,
    /// The records contain a reference twice. Nothing was written.
    DuplicateReference {
        /// Number of the second record with the reference, from 1.
        record: u64,
    },
    /// The sender disconnected before the end. Nothing was written.
    Incomplete,
}

/// Daily comparisons of a vendor's records with our purchases.
#[derive(Debug, Clone)]
pub struct Reconciliations(pub(super) Database);

impl Reconciliations {
    /// Loads a vendor's records, compares them with our purchases, and replaces the previous result of the
    /// day.
    ///
    /// # Errors
    /// The result may have been written; repeating is safe.
    #[boxed]
    pub async fn reconcile(
        &self,
        run: ReconciliationRun,
        messages: Receiver<RecordsMessage>,
    ) -> Result<ReconciliationOutcome, StoreError> {
        let options = self.0.find_primary().await?.options(SESSION_SETTINGS);
        self.0
            .run_detached(async move { Ok(reconcile(&options, &run, messages).await?) })
            .await
    }

    /// Whether the records and counts of a day are archived and removed: it cannot be compared again.
    #[boxed]
    pub async fn is_archived(&self, day: Date) -> Result<bool, StoreError> {
        let archived = sqlx::query_scalar!(
            r#"SELECT EXISTS (
                   SELECT
                     FROM log_archives AS a
                    WHERE a.log = 'reconciliation'
                      AND a.month = date_trunc('month', $1::date::timestamp)::date
                      AND a.removal_began_at IS NOT NULL
                  ) AS "is_archived!""#,
            day,
        );
        self.0
            .run(|pool| async move { archived.fetch_one(&pool).await })
            .await
    }

    /// Returns the database's clock, which defines the days.
    #[boxed]
    pub async fn database_time(&self) -> Result<OffsetDateTime, StoreError> {
        self.0
            .run(|pool| async move {
                sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#)
                    .fetch_one(&pool)
                    .await
            })
            .await
    }
}

async fn reconcile(
    options: &PgConnectOptions,
    run: &ReconciliationRun,
    messages: Receiver<RecordsMessage>,
) -> Result<ReconciliationOutcome, sqlx::Error> {
    let mut connection = open(options).await?;
    if !try_lock_vendor(&mut connection, &run.vendor).await? {
        connection.close().await?;
        return Ok(ReconciliationOutcome::Busy);
    }
    let outcome = load_and_compare(&mut connection, run, messages).await?;
    // Released before the caller continues: the server would notice the closed connection only later.
    connection.execute("SELECT pg_advisory_unlock_all()").await?;
    connection.close().await?;
    Ok(outcome)
}

async fn load_and_compare(
    connection: &mut PgConnection,
    run: &ReconciliationRun,
    mut messages: Receiver<RecordsMessage>,
) -> Result<ReconciliationOutcome, sqlx::Error> {
    vendor_records::create_tables(connection).await?;
    let mut received = 0;
    loop {
        match messages.recv().await {
            Some(RecordsMessage::Records(lines)) => {
                let count = lines.len() as u64;
                if let Some(duplicate) = vendor_records::insert_records(connection, lines).await? {
                    let record = received + duplicate as u64 + 1;
                    return Ok(ReconciliationOutcome::DuplicateReference { record });
                }
                received += count;
            }
            Some(RecordsMessage::End) => break,
            None => return Ok(ReconciliationOutcome::Incomplete),
        }
    }
    match tokio::time::timeout(DEADLINE, compare(connection, run)).await {
        Ok(compared) => compared.map(|()| ReconciliationOutcome::Completed),
        Err(_) => Err(vouchsafe_database::connection_pool::timeout_error(DEADLINE)),
    }
}

/// Tries to get the advisory lock of a vendor, which all nodes share. It ends with the connection, however
/// that ends.
async fn try_lock_vendor(connection: &mut PgConnection, vendor: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_lock(hashtextextended('reconciliation of ' || $1, 0)) AS "is_locked!""#,
        vendor,
    )
    .fetch_one(connection)
    .await
}

async fn compare(connection: &mut PgConnection, run: &ReconciliationRun) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    vendor_records::replace_records(&mut transaction, run).await?;
    let span = results::load_span(&mut transaction, run).await?;
    compare_sides::load_held_vouchers(&mut transaction, run, span).await?;
    let tally = compare_sides::compare_records(&mut transaction, run).await?;
    let summary = findings::write(&mut transaction, run, span, tally).await?;
    allocations::write_day(&mut transaction, run.day).await?;
    if let Some(actor) = &run.actor {
        let subject = format!("{} {}", run.vendor, run.day);
        audit::write(
            &mut transaction,
            actor,
            AuditAction::UploadVendorRecords,
            &subject,
            NO_STATE,
            Some(&summary),
        )
        .await?;
    }
    transaction.commit().await
}
