//! Deliveries over HTTP: where they may go, how they are signed and sent, and who looks for what is to be delivered.

mod address;
mod desk;
mod resolver;
mod sample;
mod sender;
mod signature;
mod url;
mod watched;

use std::sync::Arc;

use vouchsafe_actors::delivery::outbox::Sender;
use vouchsafe_actors::delivery::places::{MAX_UNDER_WAY, Places};
use vouchsafe_actors::delivery::{DeliveryMetrics, Equipment};
use vouchsafe_actors::domain::clock::Clock;

pub(crate) use desk::keep_delivering;
pub(crate) use sample::sample;
pub(crate) use sender::{HttpSender, Parcel, SenderParts, Signing};
pub(crate) use url::{Grounds, MAX_URL_BYTES};

use crate::certification::Watch;
use crate::store::{PgNode, PgOutbox};
use watched::WatchedSender;

/// What the delivery actors of this node work with. In the sandbox their deliveries are seen.
pub(crate) fn equip(
    node: &PgNode,
    sender: &HttpSender,
    clock: &Arc<dyn Clock>,
    metrics: DeliveryMetrics,
    watch: Option<&Arc<Watch>>,
) -> Equipment {
    let sender: Arc<dyn Sender> = match watch {
        None => Arc::new(sender.clone()),
        Some(watch) => Arc::new(WatchedSender {
            sender: sender.clone(),
            watch: Arc::clone(watch),
            clock: Arc::clone(clock),
        }),
    };
    Equipment {
        outbox: Arc::new(PgOutbox::new(node)),
        sender,
        clock: Arc::clone(clock),
        places: Places::new(MAX_UNDER_WAY),
        chance: Arc::new(chance),
        metrics,
    }
}

/// From 0 to 1; what spreads attempts needs no better than the machine gives, and nought where it gives none.
fn chance() -> f64 {
    getrandom::u32().map_or(0.0, |random| f64::from(random) / f64::from(u32::MAX))
}
