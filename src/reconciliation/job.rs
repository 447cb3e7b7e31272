//! Who compares the vendors' books with ours, and when? Each node looks for days that are due, and takes them one by one.
//!
//! Rule: what is due, and who takes it, the database decides. A vendor's books are compared whole or not at all: whatever
//! is wrong on the way is noted with the day, told in the log and counted, and the day is tried again later.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use time::Date;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{error, info, warn};

use super::RecordLine;
use super::day::midnight;
use super::code_leak::first_leaked_code;
use crate::service::Service;
use crate::store::{ReconciliationRun, ClaimedDay, RecordsMessage, RECORDS_PAGE, ReconciliationOutcome, RecordsSource};
use crate::procurement::http::RecordStream;
use crate::procurement::{VendorAdapter, VendorFailure, AdapterConfig, VendorRecord, FailureReason};

/// How often days are looked for that are due: what an operator asks for begins at once.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How often the figures for operators are brought up to date.
const METRICS_INTERVAL: Duration = Duration::from_secs(10);

/// Most vendors that a node compares at a time: each has a connection of its own, and sorts on the database's disk.
const MAX_CONCURRENT: usize = 2;

/// Pages that may have come in while the database takes one: the vendor and the database work at the same time.
pub(crate) const PAGES_AHEAD: usize = 2;

/// The pauses between attempts at a page, after which the whole day is tried later. Seconds.
const PAGE_RETRY_DELAYS_S: [u64; 4] = [1, 2, 4, 8];

/// The longest pause that a vendor may ask for between two pages.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Why a day could not be compared. No text of the vendor's is in it.
#[derive(Debug, thiserror::Error)]
enum ReconciliationError {
    #[error("the database did not answer: {0}")]
    Database(#[from] sqlx::Error),
    #[error("the vendor cannot be spoken to: {0}")]
    VendorUnavailable(String),
    #[error("the vendor's books cannot be asked for; upload them")]
    RecordsUnavailable,
    #[error(transparent)]
    Vendor(#[from] VendorFailure),
    #[error("the vendor's books were refused: record {0} names a voucher that an earlier one names")]
    RepeatedReference(u64),
    #[error("the vendor's books were refused: record {0} has a code for a reference")]
    CodeAsReference(u64),
    #[error("another comparison of the vendor is under way")]
    Busy,
}

/// Compares for as long as the service lives. Never returns.
pub(crate) async fn run_reconciliation(service: &web::Data<Service>) {
    tokio::join!(poll_due_days(service), update_metrics(service));
}

async fn poll_due_days(service: &web::Data<Service>) {
    let mut tick = interval(POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut vendors = HashSet::new();
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(vendor) = under_way.next(), if !under_way.is_empty() => {
                vendors.remove(&vendor);
            }
            _ = tick.tick(), if under_way.len() < MAX_CONCURRENT => {
                let but_for = vendors.iter().cloned().collect();
                match service.store.claim_reconciliation(but_for).await {
                    Ok(Some(claimed)) => {
                        vendors.insert(claimed.vendor.clone());
                        under_way.push(reconcile_day(service, claimed));
                        tick.reset_immediately();
                    }
                    Ok(None) => {}
                    Err(error) => warn!(%error, "the days that are to be reconciled cannot be read now"),
                }
            }
        }
    }
}

/// Compares a day, or notes why not. Gives the vendor back.
async fn reconcile_day(service: &web::Data<Service>, claimed: ClaimedDay) -> String {
    let ClaimedDay { vendor, day, .. } = &claimed;
    match reconcile(service, &claimed).await {
        Ok(()) => info!(vendor.id = vendor, %day, "a day is reconciled"),
        Err(reason) => {
            service.metrics.record_failed_reconciliation(vendor);
            match &reason {
                ReconciliationError::RepeatedReference(_)
                | ReconciliationError::CodeAsReference(_)
                | ReconciliationError::Vendor(VendorFailure::InvalidResponse(_)) => {
                    error!(vendor.id = vendor, %day, %reason, "a vendor's books were refused; an operator must look at it");
                }
                _ => {
                    warn!(vendor.id = vendor, %day, %reason, "a day cannot be reconciled now, and is tried again later")
                }
            }
            let noted = service
                .store
                .record_reconciliation_failure(vendor.clone(), *day, reason.to_string());
            if let Err(error) = noted.await {
                warn!(%error, vendor.id = vendor, %day, "why a day was not reconciled cannot be noted now");
            }
        }
    }
    claimed.vendor
}

async fn reconcile(service: &Service, claimed: &ClaimedDay) -> Result<(), ReconciliationError> {
    let adapter = connect(service, &claimed.vendor).await?;
    let records = adapter.records(claimed.day).ok_or(ReconciliationError::RecordsUnavailable)?;
    let books = ReconciliationRun {
        vendor: claimed.vendor.clone(),
        day: claimed.day,
        source: RecordsSource::Http,
        begun_at: claimed.claimed_at,
        by: None,
    };
    let (sender, intake) = channel(PAGES_AHEAD);
    let (brought, compared) = tokio::join!(
        stream_records(service, records, sender),
        service.store.reconcile(books, intake)
    );
    brought?;
    match compared? {
        ReconciliationOutcome::Completed => Ok(()),
        ReconciliationOutcome::Busy => Err(ReconciliationError::Busy),
        ReconciliationOutcome::DuplicateReference { record } => Err(ReconciliationError::RepeatedReference(record)),
        ReconciliationOutcome::Incomplete => Err(ReconciliationError::RecordsUnavailable),
    }
}

/// Brings the books of a day to the comparison. Where that has ended, it says itself why.
async fn stream_records(
    service: &Service,
    mut records: RecordStream<'_>,
    sender: Sender<RecordsMessage>,
) -> Result<(), ReconciliationError> {
    let mut sent = 0;
    loop {
        let page = read_page(&mut records).await?;
        let count = page.len() as u64;
        if let Some(code) = first_leaked_code(service, &page).await? {
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

/// The next records; none at the end.
async fn read_page(records: &mut RecordStream<'_>) -> Result<Vec<RecordLine>, VendorFailure> {
    let mut page = Vec::with_capacity(RECORDS_PAGE);
    while page.len() < RECORDS_PAGE {
        match read_record(records).await? {
            Some(record) => page.push(RecordLine::from(record)),
            None => break,
        }
    }
    Ok(page)
}

/// The next record. What passes is waited for: a long walk does not begin anew for one answer that was lost.
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

/// Whether asking again soon may help, and after how long at least.
fn retry_delay(failure: &VendorFailure) -> Option<Duration> {
    let (VendorFailure::RetryLater { reason: why, retry_after: after } | VendorFailure::Unknown { reason: why, retry_after: after }) = failure else {
        return None;
    };
    let why_passes = matches!(
        why,
        FailureReason::Busy | FailureReason::CircuitOpen | FailureReason::Unreachable | FailureReason::TimedOut | FailureReason::ConnectionLost | FailureReason::ServerError(_)
    );
    why_passes.then(|| after.unwrap_or_default())
}

/// What speaks to a vendor. It has its own word on how the vendor has been of late: buying goes on beside it.
async fn connect(service: &Service, vendor_id: &str) -> Result<VendorAdapter, ReconciliationError> {
    let no_line = |reason: String| ReconciliationError::VendorUnavailable(reason);
    let found = service.store.find_vendor(vendor_id.to_owned()).await?;
    let access = found.ok_or_else(|| no_line("it is gone".to_owned()))?;
    let open = |sealed| service.keyring.vault().open_credential(vendor_id, sealed);
    let credential = access.credential.as_ref().map(open).transpose();
    let url = access.vendor.url.as_deref().map(str::parse).transpose();
    let terms = AdapterConfig {
        kind: access.vendor.adapter,
        url: url.map_err(|_| no_line("its url is none".to_owned()))?,
        credential: credential.map_err(|error| no_line(error.to_string()))?,
    };
    VendorAdapter::connect(&terms, Arc::clone(&service.clock)).map_err(|error| no_line(error.to_string()))
}

/// Keeps the figures that operators watch.
async fn update_metrics(service: &Service) {
    let mut tick = interval(METRICS_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        match service.store.list_reconciliation_statuses().await {
            Ok(standings) => {
                for standing in standings {
                    let last_day = standing.last_day.map(seconds);
                    service
                        .metrics
                        .set_reconciliation(&standing.vendor, standing.open, last_day);
                }
            }
            Err(error) => warn!(%error, "the drifts cannot be counted now"),
        }
    }
}

/// When a day began, as figures say it.
fn seconds(day: Date) -> i64 {
    midnight(day).unix_timestamp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procurement::InvalidResponse;

    #[test]
    fn what_passes_is_waited_for_and_nothing_else() {
        let unknown = |why| VendorFailure::Unknown { reason: why, retry_after: None };
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
            assert_eq!(retry_delay(&failure), expected.map(Duration::from_secs), "{failure}");
        }
    }
}
