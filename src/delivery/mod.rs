//! Deliveries over HTTP: where they may go, how they are signed and sent, and who looks for what is to be delivered.

mod address;
mod desk;
mod resolver;
mod sample;
mod sender;
mod signature;
mod url;

use std::sync::Arc;

use vouchsafe_actors::delivery::places::{MAX_UNDER_WAY, Places};
use vouchsafe_actors::delivery::{DeliveryMetrics, Equipment};
use vouchsafe_actors::domain::clock::Clock;

pub(crate) use desk::keep_delivering;
pub(crate) use sample::sample;
pub(crate) use sender::{HttpSender, Parcel, SenderParts};
pub(crate) use url::{Grounds, MAX_URL_BYTES};

use crate::store::{PgNode, PgOutbox};

/// What the delivery actors of this node work with.
pub(crate) fn equip(
    node: &PgNode,
    sender: &HttpSender,
    clock: &Arc<dyn Clock>,
    metrics: DeliveryMetrics,
) -> Equipment {
    Equipment {
        outbox: Arc::new(PgOutbox::new(node)),
        sender: Arc::new(sender.clone()),
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
