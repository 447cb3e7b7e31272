//! Webhook delivery over HTTP: URL policy, signing, sending, polling for due endpoints, and the log of
//! attempts.

mod attempt_log;
mod connections;
pub mod metrics;
mod poller;
mod sender;

use std::sync::Arc;

use vouchsafe_actors::delivery::concurrency::{ConcurrencyLimit, MAX_IN_FLIGHT};
use vouchsafe_actors::delivery::outbox::{AttemptLog, Sender};
use vouchsafe_actors::delivery::{DeliveryContext, DeliveryMetrics};
use vouchsafe_domain::clock::Clock;

pub use attempt_log::AttemptLogWriter;
pub use poller::Poller;
pub use sender::{HttpSender, SenderConfig, SigningMode, WebhookRequest};
pub use vouchsafe_http_client::url_policy::{LoopbackTargets, UrlPolicy};

use vouchsafe_store::{PgNode, PgOutbox};

/// The dependencies of this node's delivery actors.
pub fn build_context(
    node: &PgNode,
    sender: Arc<dyn Sender>,
    attempt_log: Option<Arc<dyn AttemptLog>>,
    clock: &Arc<dyn Clock>,
    metrics: DeliveryMetrics,
) -> DeliveryContext {
    DeliveryContext {
        outbox: Arc::new(PgOutbox::new(node)),
        sender,
        attempt_log,
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
