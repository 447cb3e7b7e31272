//! Writes down what the sandbox saw, as soon as it is seen, and takes over what other nodes have written.
//!
//! Rule: a note waits until it is written, as far as there is room, and nobody else waits for it. One that is written twice,
//! since nobody heard of the first time, is read once.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::order::{Order, OrderStatus};
use vouchsafe_actors::store::Unavailable;

use super::observation::{Observation, ObservationKind};
use super::observer::{Note, Observer, NotePayload};
use crate::service::Service;
use crate::store::unavailable;

/// How often it is looked for what other nodes have written: they see a pause end before it could be broken there.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What was written before that is known already. Ten looks: a write may come late.
const POLL_OVERLAP: time::Duration = time::Duration::seconds(10);

/// What a start reads of what was written before: no Retry-After is longer than a window may be.
const STARTUP_LOOKBACK: time::Duration = time::Duration::seconds(crate::access::limits::MAX_WINDOW_S as i64);

/// How many notes one transaction writes.
const BATCH_SIZE: usize = 256;

/// Keeps watch for as long as the service lives; in production there is nothing to see. Never returns.
pub(crate) async fn run_recorder(service: &Service) {
    let Some(watch) = &service.certification else {
        return std::future::pending().await;
    };
    let mut tick = interval(POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut since = service.clock.now() - STARTUP_LOOKBACK;
    loop {
        tokio::select! {
            () = watch.wait_for_note() => flush(service, watch).await,
            _ = tick.tick() => {
                flush(service, watch).await;
                let now = service.clock.now();
                match service.store.list_observations_since(since).await {
                    Ok(written) => {
                        watch.sync(&written, now);
                        since = now - POLL_OVERLAP;
                    }
                    Err(error) => warn!(%error, "what other nodes saw of partners cannot be read now"),
                }
            }
        }
    }
}

/// Writes down all that waits. For the end of the service, too.
pub(crate) async fn flush(service: &Service, watch: &Observer) {
    let lost = watch.take_dropped();
    if lost > 0 {
        warn!(lost, "more was seen of partners than could be written down");
    }
    loop {
        let notes = watch.peek_oldest(BATCH_SIZE);
        if notes.is_empty() {
            return;
        }
        if let Err(error) = write_batch(service, &notes).await {
            return warn!(%error, "what was seen of partners cannot be written down now");
        }
        watch.discard_written(notes.len());
    }
}

async fn write_batch(service: &Service, notes: &[Note]) -> Result<(), Unavailable> {
    let mut observations: Vec<(PartnerId, Observation)> = Vec::with_capacity(notes.len());
    for Note { partner_id, at, payload: what } in notes {
        let seen = match what {
            NotePayload::Seen(seen) => Some(seen.clone()),
            NotePayload::CodesFetched { order_id, vouchers } => {
                let order = service.node.find_order(*partner_id, *order_id).await?;
                order.and_then(|order| codes_observation(&order, *vouchers))
            }
        };
        observations.extend(seen.map(|seen| (*partner_id, Observation { at: *at, kind: seen })));
    }
    if observations.is_empty() {
        return Ok(());
    }
    let written = service.store.write_observations(observations).await;
    written.map_err(|error| unavailable(&error))
}

/// What it says that so many codes of an order were fetched: nothing, unless it was delivered in parts, or will be.
fn codes_observation(order: &Order, vouchers: usize) -> Option<ObservationKind> {
    let order_id = order.order_id;
    let asked: u32 = order.lines.iter().map(|line| line.quantity).sum();
    let was_partial = order
        .timeline
        .iter()
        .any(|milestone| milestone.status == OrderStatus::PartiallyDelivered);
    let ends_whole = !order.closed || order.status == OrderStatus::Delivered;
    match (was_partial && ends_whole, vouchers < asked as usize) {
        (false, _) => None,
        (true, true) => Some(ObservationKind::CodesInPart { order_id }),
        (true, false) => Some(ObservationKind::CodesInFull { order_id }),
    }
}
