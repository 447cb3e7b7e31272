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

use super::observation::{Observation, Seen};
use super::watch::{Note, Watch, What};
use crate::service::Service;
use crate::store::unavailable;

/// How often it is looked for what other nodes have written: they see a pause end before it could be broken there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What was written before that is known already. Ten looks: a write may come late.
const LOOK_BACK: time::Duration = time::Duration::seconds(10);

/// What a start reads of what was written before: no Retry-After is longer than a window may be.
const LONGEST_PAUSE: time::Duration = time::Duration::seconds(crate::access::limits::MAX_WINDOW_S as i64);

/// How many notes one transaction writes.
const NOTES_AT_ONCE: usize = 256;

/// Keeps watch for as long as the service lives; in production there is nothing to see. Never returns.
pub(crate) async fn keep_watch(service: &Service) {
    let Some(watch) = &service.certification else {
        return std::future::pending().await;
    };
    let mut tick = interval(LOOK_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut since = service.clock.now() - LONGEST_PAUSE;
    loop {
        tokio::select! {
            () = watch.woken() => write_down(service, watch).await,
            _ = tick.tick() => {
                write_down(service, watch).await;
                let now = service.clock.now();
                match service.store.observations_since(since).await {
                    Ok(written) => {
                        watch.follow(&written, now);
                        since = now - LOOK_BACK;
                    }
                    Err(error) => warn!(%error, "what other nodes saw of partners cannot be read now"),
                }
            }
        }
    }
}

/// Writes down all that waits. For the end of the service, too.
pub(crate) async fn write_down(service: &Service, watch: &Watch) {
    let lost = watch.take_lost();
    if lost > 0 {
        warn!(lost, "more was seen of partners than could be written down");
    }
    loop {
        let notes = watch.oldest(NOTES_AT_ONCE);
        if notes.is_empty() {
            return;
        }
        if let Err(error) = write(service, &notes).await {
            return warn!(%error, "what was seen of partners cannot be written down now");
        }
        watch.is_written(notes.len());
    }
}

async fn write(service: &Service, notes: &[Note]) -> Result<(), Unavailable> {
    let mut observations: Vec<(PartnerId, Observation)> = Vec::with_capacity(notes.len());
    for Note { partner_id, at, what } in notes {
        let seen = match what {
            What::Seen(seen) => Some(seen.clone()),
            What::CodesFetched { order_id, vouchers } => {
                let order = service.node.find_order(*partner_id, *order_id).await?;
                order.and_then(|order| codes_of(&order, *vouchers))
            }
        };
        observations.extend(seen.map(|seen| (*partner_id, Observation { at: *at, seen })));
    }
    if observations.is_empty() {
        return Ok(());
    }
    let written = service.store.write_observations(observations).await;
    written.map_err(|error| unavailable(&error))
}

/// What it says that so many codes of an order were fetched: nothing, unless it was delivered in parts, or will be.
fn codes_of(order: &Order, vouchers: usize) -> Option<Seen> {
    let order_id = order.order_id;
    let asked: u32 = order.lines.iter().map(|line| line.quantity).sum();
    let was_partial = order
        .timeline
        .iter()
        .any(|milestone| milestone.status == OrderStatus::PartiallyDelivered);
    let ends_whole = !order.closed || order.status == OrderStatus::Delivered;
    match (was_partial && ends_whole, vouchers < asked as usize) {
        (false, _) => None,
        (true, true) => Some(Seen::CodesInPart { order_id }),
        (true, false) => Some(Seen::CodesInFull { order_id }),
    }
}
