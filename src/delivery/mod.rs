//! Deliveries over HTTP: where they may go, how they are signed and sent, and who looks for what is to be delivered.

mod address;
mod poller;
mod resolver;
mod sample;
mod sender;
mod signature;
mod url_policy;
mod observed_sender;

use std::sync::Arc;

use vouchsafe_actors::delivery::outbox::Sender;
use vouchsafe_actors::delivery::concurrency::{MAX_IN_FLIGHT, ConcurrencyLimit};
use vouchsafe_actors::delivery::{DeliveryMetrics, DeliveryContext};
use vouchsafe_actors::domain::clock::Clock;

pub(crate) use poller::run_poller;
pub(crate) use sample::sample_event;
pub(crate) use sender::{HttpSender, WebhookRequest, SenderConfig, SigningMode};
pub(crate) use url_policy::{UrlPolicy, MAX_URL_BYTES};

use crate::certification::Observer;
use crate::store::{PgNode, PgOutbox};
use observed_sender::ObservedSender;

/// What the delivery actors of this node work with. In the sandbox their deliveries are seen.
pub(crate) fn build_context(
    node: &PgNode,
    sender: &HttpSender,
    clock: &Arc<dyn Clock>,
    metrics: DeliveryMetrics,
    watch: Option<&Arc<Observer>>,
) -> DeliveryContext {
    let sender: Arc<dyn Sender> = match watch {
        None => Arc::new(sender.clone()),
        Some(watch) => Arc::new(ObservedSender {
            sender: sender.clone(),
            observer: Arc::clone(watch),
            clock: Arc::clone(clock),
        }),
    };
    DeliveryContext {
        outbox: Arc::new(PgOutbox::new(node)),
        sender,
        clock: Arc::clone(clock),
        concurrency: ConcurrencyLimit::new(MAX_IN_FLIGHT),
        jitter: Arc::new(random_fraction),
        metrics,
    }
}

/// From 0 to 1; what spreads attempts needs no better than the machine gives, and nought where it gives none.
fn random_fraction() -> f64 {
    getrandom::u32().map_or(0.0, |random| f64::from(random) / f64::from(u32::MAX))
}
