//! Webhook delivery over HTTP: URL policy, signing, sending, and polling for due endpoints.

mod address;
mod observed_sender;
mod poller;
mod resolver;
mod sample;
mod sender;
mod signature;
mod url_policy;

use std::sync::Arc;

use vouchsafe_actors::delivery::concurrency::{ConcurrencyLimit, MAX_IN_FLIGHT};
use vouchsafe_actors::delivery::outbox::Sender;
use vouchsafe_actors::delivery::{DeliveryContext, DeliveryMetrics};
use vouchsafe_domain::clock::Clock;

pub(crate) use poller::run_poller;
pub(crate) use sample::sample_event;
pub(crate) use sender::{HttpSender, SenderConfig, SigningMode, WebhookRequest};
pub(crate) use url_policy::{MAX_URL_BYTES, UrlPolicy};

use crate::certification::Observer;
use crate::store::{PgNode, PgOutbox};
use observed_sender::ObservedSender;

/// The dependencies of this node's delivery actors. In the sandbox the sender records observations for certifications.
pub(crate) fn build_context(
    node: &PgNode,
    sender: &HttpSender,
    clock: &Arc<dyn Clock>,
    metrics: DeliveryMetrics,
    observer: Option<&Arc<Observer>>,
) -> DeliveryContext {
    let sender: Arc<dyn Sender> = match observer {
        None => Arc::new(sender.clone()),
        Some(observer) => Arc::new(ObservedSender {
            sender: sender.clone(),
            observer: Arc::clone(observer),
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

/// Jitter between 0 and 1. It needs no cryptographic quality; 0 if the system provides no random bytes.
fn random_fraction() -> f64 {
    getrandom::u32().map_or(0.0, |random| f64::from(random) / f64::from(u32::MAX))
}
