//! Reconciliation job: fetches the vendor records of due days and compares them with our vouchers.
//!
//! The database decides which day is due and which node claims it. A day's records are compared completely or
//! not at all: any failure is stored with the day, logged and counted, and the day is retried later.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use time::Date;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{error, info, warn};
use vouchsafe_domain::catalogue::current::CurrentCatalogue;
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::reconciliation::RecordLine;
use vouchsafe_domain::reconciliation::day::midnight;
use vouchsafe_domain::reconciliation::result::RecordsSource;
use vouchsafe_domain::vendor::VendorNetwork;
use vouchsafe_store::StoreError;
use vouchsafe_store::keyring::Keyring;
use vouchsafe_store::{
    ClaimedDay, Purchases, RECORDS_PAGE, ReconciliationOutcome, ReconciliationRun, Reconciliations,
    RecordsMessage, Stock, VendorConfigs,
};

use super::code_leak::first_leaked_code;
use crate::http::RecordStream;
use crate::metrics::VendorMetrics;
use crate::mock::{MockRecords, MockRecordsError};
use crate::{FailureReason, VendorAdapter, VendorFailure, VendorRecord};

/// Poll interval for due days: a day requested by an operator starts at once.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

const METRICS_INTERVAL: Duration = Duration::from_secs(10);

/// Delay after a failed count of allocations.
const COUNT_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Vendors that a node reconciles concurrently: each has its own connection, and sorts on the database's
/// disk.
const MAX_CONCURRENT: usize = 2;

/// Pages buffered while the database imports one, so that the vendor and the database work concurrently.
pub const PAGES_AHEAD: usize = 2;

/// Delays between attempts at a page, after which the whole day is retried later. Seconds.
const PAGE_RETRY_DELAYS_S: [u64; 4] = [1, 2, 4, 8];

/// Longest accepted Retry-After between pages.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Why a day could not be compared. Contains no text of the vendor.
#[derive(Debug, thiserror::Error)]
enum ReconciliationError {
    #[error("database error: {0}")]
    Database(#[from] StoreError),
    #[error("cannot connect to the vendor: {0}")]
    VendorUnavailable(String),
    #[error("the vendor's records cannot be fetched; upload them")]
    RecordsUnavailable,
    #[error(transparent)]
    Vendor(#[from] VendorFailure),
    #[error(transparent)]
    MockRecords(#[from] MockRecordsError),
    #[error("invalid vendor records: record {0} repeats the reference of an earlier one")]
    RepeatedReference(u64),
    #[error("invalid vendor records: record {0} uses a code as reference")]
    CodeAsReference(u64),
    #[error("another reconciliation of the vendor is in progress")]
    Busy,
}

/// Reconciles the due days of all vendors.
pub struct ReconciliationJob {
    pub reconciliations: Reconciliations,
    pub purchases: Purchases,
    pub stock: Stock,
    pub vendors: VendorConfigs,
    pub catalogue: Arc<CurrentCatalogue>,
    pub keyring: Arc<Keyring>,
    pub network: VendorNetwork,
    pub clock: Arc<dyn Clock>,
    pub metrics: VendorMetrics,
}

impl ReconciliationJob {
    /// Runs for the lifetime of the service. Never returns.
    pub async fn run(&self) -> Infallible {
        let (never, _, _) = tokio::join!(poll_due_days(self), count_due_days(self), update_metrics(self));
        never
    }
}

/// The records of a day, wherever the adapter has them.
enum DayRecords<'v> {
    Http(RecordStream<'v>),
    Mock(MockRecords),
}

/// Counts the allocations of due days, with or without a vendor that lists its sales.
async fn count_due_days(job: &ReconciliationJob) -> Infallible {
    let mut tick = interval(POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        match job.reconciliations.count_due_day().await {
            Ok(Some(day)) => {
                info!(%day, "allocations counted");
                tick.reset_immediately();
            }
            Ok(None) => {}
            Err(error) => {
                warn!(error.message = %error, "cannot count the allocations of a day");
                sleep(COUNT_RETRY_DELAY).await;
            }
        }
    }
}

async fn poll_due_days(job: &ReconciliationJob) -> Infallible {
    let mut tick = interval(POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut vendors = HashSet::new();
    let mut in_flight = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(vendor) = in_flight.next(), if !in_flight.is_empty() => {
                vendors.remove(&vendor);
            }
            _ = tick.tick(), if in_flight.len() < MAX_CONCURRENT => {
                let excluded = vendors.iter().cloned().collect();
                match job.reconciliations.claim(excluded).await {
                    Ok(Some(claimed)) => {
                        vendors.insert(claimed.vendor.clone());
                        in_flight.push(reconcile_day(job, claimed));
                        tick.reset_immediately();
                    }
                    Ok(None) => {}
                    Err(error) => warn!(error.message = %error, "cannot claim a reconciliation day"),
                }
            }
        }
    }
}

/// Compares a day, or records the failure. Returns the vendor.
async fn reconcile_day(job: &ReconciliationJob, claimed: ClaimedDay) -> String {
    let ClaimedDay { vendor, day, .. } = &claimed;
    match reconcile(job, &claimed).await {
        Ok(()) => info!(vendor.id = vendor, %day, "day reconciled"),
        Err(reason) => {
            job.metrics.record_failed_reconciliation(vendor);
            match &reason {
                ReconciliationError::RepeatedReference(_)
                | ReconciliationError::CodeAsReference(_)
                | ReconciliationError::Vendor(VendorFailure::InvalidResponse(_)) => {
                    error!(vendor.id = vendor, %day, error.message = %reason, "vendor records rejected; operator action required");
                }
                _ => {
                    warn!(vendor.id = vendor, %day, error.message = %reason, "reconciliation failed; the day will be retried")
                }
            }
            let recorded = job
                .reconciliations
                .record_failure(vendor.clone(), *day, reason.to_string());
            if let Err(error) = recorded.await {
                warn!(error.message = %error, vendor.id = vendor, %day, "cannot record the reconciliation failure");
            }
        }
    }
    claimed.vendor
}

async fn reconcile(job: &ReconciliationJob, claimed: &ClaimedDay) -> Result<(), ReconciliationError> {
    let adapter = connect(job, &claimed.vendor).await?;
    let records = match (&adapter, adapter.records(claimed.day)) {
        (VendorAdapter::Mock(_), _) => DayRecords::Mock(MockRecords::new(
            job.purchases.clone(),
            claimed.vendor.clone(),
            claimed.day,
            job.clock.now(),
        )),
        (_, Some(records)) => DayRecords::Http(records),
        (_, None) => return Err(ReconciliationError::RecordsUnavailable),
    };
    let run = ReconciliationRun {
        vendor: claimed.vendor.clone(),
        day: claimed.day,
        source: RecordsSource::Http,
        started_at: claimed.claimed_at,
        actor: None,
    };
    let (sender, intake) = channel(PAGES_AHEAD);
    let (streamed, outcome) = tokio::join!(
        stream_records(job, records, sender),
        job.reconciliations.reconcile(run, intake)
    );
    streamed?;
    match outcome? {
        ReconciliationOutcome::Completed => Ok(()),
        ReconciliationOutcome::Busy => Err(ReconciliationError::Busy),
        ReconciliationOutcome::DuplicateReference { record } => {
            Err(ReconciliationError::RepeatedReference(record))
        }
        ReconciliationOutcome::Incomplete => Err(ReconciliationError::RecordsUnavailable),
    }
}

/// Streams the records of a day to the comparison. If the comparison has ended, it reports the reason itself.
async fn stream_records(
    job: &ReconciliationJob,
    mut records: DayRecords<'_>,
    sender: Sender<RecordsMessage>,
) -> Result<(), ReconciliationError> {
    let mut sent = 0;
    loop {
        let page = read_page(&mut records).await?;
        let count = page.len() as u64;
        if let Some(code) = first_leaked_code(&job.catalogue, &job.keyring, &job.stock, &page).await? {
            return Err(ReconciliationError::CodeAsReference(sent + code as u64 + 1));
        }
        let part = if count > 0 {
            RecordsMessage::Records(page)
        } else {
            RecordsMessage::End
        };
        if sender.send(part).await.is_err() || count == 0 {
            return Ok(());
        }
        sent += count;
    }
}

/// The next records; empty at the end.
async fn read_page(records: &mut DayRecords<'_>) -> Result<Vec<RecordLine>, ReconciliationError> {
    let mut page = Vec::with_capacity(RECORDS_PAGE);
    while page.len() < RECORDS_PAGE {
        let record = match records {
            DayRecords::Http(records) => read_record(records).await?,
            DayRecords::Mock(records) => records.next().await?,
        };
        match record {
            Some(record) => page.push(RecordLine::from(record)),
            None => break,
        }
    }
    Ok(page)
}

/// The next record. Retries transient failures: one lost response must not restart a long run.
async fn read_record(records: &mut RecordStream<'_>) -> Result<Option<VendorRecord>, VendorFailure> {
    for pause in PAGE_RETRY_DELAYS_S.map(Duration::from_secs) {
        match records.next().await {
            Err(failure) => match retry_delay(&failure) {
                Some(after) => sleep(after.clamp(pause, MAX_RETRY_DELAY)).await,
                None => return Err(failure),
            },
            record => return record,
        }
    }
    records.next().await
}

/// The minimum delay if a retry may succeed.
fn retry_delay(failure: &VendorFailure) -> Option<Duration> {
    let (VendorFailure::RetryLater {
        reason: why,
        retry_after: after,
    }
    | VendorFailure::Unknown {
        reason: why,
        retry_after: after,
    }) = failure
    else {
        return None;
    };
    let is_transient = matches!(
        why,
        FailureReason::Busy
            | FailureReason::CircuitOpen
            | FailureReason::Unreachable
            | FailureReason::TimedOut
            | FailureReason::ConnectionLost
            | FailureReason::ServerError(_)
    );
    is_transient.then(|| after.unwrap_or_default())
}

/// A separate adapter with its own circuit breaker: purchases are independent of it.
async fn connect(job: &ReconciliationJob, vendor_id: &str) -> Result<VendorAdapter, ReconciliationError> {
    let unavailable = |reason: String| ReconciliationError::VendorUnavailable(reason);
    let found = job.vendors.find(vendor_id.to_owned()).await?;
    let access = found.ok_or_else(|| unavailable("it was deleted".to_owned()))?;
    let adapter = VendorAdapter::open(&access, &job.keyring, job.network, Arc::clone(&job.clock));
    adapter.await.map_err(unavailable)
}

async fn update_metrics(job: &ReconciliationJob) -> Infallible {
    let mut tick = interval(METRICS_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        match job.reconciliations.list_statuses().await {
            Ok(statuses) => {
                for status in statuses {
                    let last_day = status.last_day.map(seconds);
                    job.metrics
                        .set_reconciliation(&status.vendor, status.open, last_day);
                }
            }
            Err(error) => warn!(error.message = %error, "cannot count drifts"),
        }
    }
}

/// Start of a day, as metrics report it.
fn seconds(day: Date) -> i64 {
    midnight(day).unix_timestamp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InvalidResponse;

    #[test]
    fn only_transient_failures_are_retried() {
        let unknown = |why| VendorFailure::Unknown {
            reason: why,
            retry_after: None,
        };
        let busy = VendorFailure::RetryLater {
            reason: FailureReason::Busy,
            retry_after: Some(Duration::from_secs(7)),
        };
        for (failure, expected) in [
            (busy, Some(7)),
            (unknown(FailureReason::TimedOut), Some(0)),
            (unknown(FailureReason::ServerError(503)), Some(0)),
            (unknown(FailureReason::Credential(401)), None),
            (unknown(FailureReason::UnexpectedStatus(404)), None),
            (InvalidResponse::CursorLoop.into(), None),
        ] {
            assert_eq!(
                retry_delay(&failure),
                expected.map(Duration::from_secs),
                "{failure}"
            );
        }
    }
}
