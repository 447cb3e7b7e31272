//! Background recorder of sandbox observations.
//!
//! Writes queued notes to the database and reads those of other nodes. Notes stay queued until they are
//! written; a note written twice after an unknown outcome counts once.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use tracing::warn;
use vouchsafe_domain::certification::observation::{Observation, ObservationKind};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::order::{Order, OrderStatus};
use vouchsafe_domain::store_error::Unavailable;

use super::ticker;
use crate::service::JobState;
use vouchsafe_certification::evaluate;
use vouchsafe_certification::observer::{Note, NotePayload, Observer};
use vouchsafe_store::StoreError;

/// Poll interval for notes of other nodes: shorter than the shortest pause, which may be broken on any node.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Each poll repeats ten intervals: a transaction may commit late.
const POLL_OVERLAP: time::Duration = time::Duration::seconds(10);

/// How far the first poll reads back: no Retry-After is longer than the longest rate-limit window.
const STARTUP_LOOKBACK: time::Duration =
    time::Duration::seconds(vouchsafe_domain::limits::MAX_WINDOW_S as i64);

/// Notes per transaction.
const BATCH_SIZE: usize = 256;

/// Runs for the lifetime of the service; does nothing in production. Never returns.
pub(crate) async fn run_recorder(service: &JobState) -> Infallible {
    let Some(observer) = &service.certification else {
        return std::future::pending().await;
    };
    let mut tick = ticker(POLL_INTERVAL);
    let mut since = service.clock.now() - STARTUP_LOOKBACK;
    loop {
        tokio::select! {
            () = observer.wait_for_note() => flush(service, observer).await,
            _ = tick.tick() => {
                flush(service, observer).await;
                let now = service.clock.now();
                match service.store.observations.list_since(since).await {
                    Ok(written) => {
                        observer.sync(&written, now);
                        since = now - POLL_OVERLAP;
                    }
                    Err(error) => warn!(error.message = %error, "cannot read observations of other nodes"),
                }
            }
        }
    }
}

/// Writes all queued notes. Also called at shutdown.
pub(crate) async fn flush(service: &JobState, observer: &Observer) {
    let dropped = observer.take_dropped();
    if dropped > 0 {
        warn!(observations.dropped = dropped, "observation queue overflowed");
    }
    loop {
        let notes = observer.peek_oldest(BATCH_SIZE);
        if notes.is_empty() {
            return;
        }
        if let Err(error) = write_batch(service, &notes).await {
            return warn!(error.message = %error, "cannot write observations");
        }
        observer.discard_written(notes.len());
    }
}

async fn write_batch(service: &JobState, notes: &[Note]) -> Result<(), Unavailable> {
    let mut observations: Vec<(PartnerId, Observation)> = Vec::with_capacity(notes.len());
    for Note {
        partner_id,
        at,
        payload,
    } in notes
    {
        let kind = match payload {
            NotePayload::Seen(kind) => Some(kind.clone()),
            NotePayload::CodesFetched { order_id, vouchers } => {
                let order = service.node.find_order(*partner_id, *order_id).await?;
                order.and_then(|order| codes_observation(&order, *vouchers))
            }
        };
        observations.extend(kind.map(|kind| (*partner_id, Observation { at: *at, kind })));
    }
    if observations.is_empty() {
        return Ok(());
    }
    let partners: BTreeSet<PartnerId> = observations.iter().map(|(partner_id, _)| *partner_id).collect();
    service.store.observations.write(observations).await?;
    for partner_id in partners {
        // The notes are written: an error here must not write them again. The partner's next note repeats
        // this.
        if let Err(error) = record_pass(service, partner_id).await {
            warn!(error.message = %error, partner.id = %partner_id, "cannot record a passed certification");
        }
    }
    Ok(())
}

/// Stores that the partner has passed its certification, before newer observations replace those that show
/// it.
async fn record_pass(service: &JobState, partner_id: PartnerId) -> Result<(), StoreError> {
    let store = &service.store.observations;
    let observations = store.list(partner_id).await?;
    let kind = ObservationKind::CertificationPassed;
    if observations.iter().any(|observation| observation.kind == kind) {
        return Ok(());
    }
    match evaluate(&observations, service.clock.now()).first_passed_at {
        Some(at) => store.write(vec![(partner_id, Observation { at, kind })]).await,
        None => Ok(()),
    }
}

/// The observation of a code retrieval; `None` unless the order was or will be delivered in parts.
fn codes_observation(order: &Order, vouchers: usize) -> Option<ObservationKind> {
    let order_id = order.order_id;
    let ordered: u32 = order.lines.iter().map(|line| line.quantity).sum();
    let was_partial = order
        .timeline
        .iter()
        .any(|milestone| milestone.status == OrderStatus::PartiallyDelivered);
    let ends_whole = !order.closed || order.status == OrderStatus::Delivered;
    match (was_partial && ends_whole, vouchers < ordered as usize) {
        (false, _) => None,
        (true, true) => Some(ObservationKind::PartialCodesFetched { order_id }),
        (true, false) => Some(ObservationKind::AllCodesFetched { order_id }),
    }
}
