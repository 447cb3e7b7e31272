//! Simulated webhook receivers with random failures, and the check that they received every event in
//! sequence.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Instant, sleep};
use vouchsafe_actors::delivery::outbox::Sender;
use vouchsafe_actors::ports::store::StoreFuture;
use vouchsafe_domain::delivery::{DeliveryFault, SendResult, WebhookEvent, WebhookTarget};
use vouchsafe_domain::ids::{OrderId, WebhookId};

use crate::MemoryDatabase;

/// Receivers of all endpoints; clones are handles to the same ones.
#[derive(Clone, Default)]
pub struct SimulatedReceivers(Arc<Mutex<ReceiverState>>);

#[derive(Default)]
struct ReceiverState {
    /// Seed of failures; every attempt succeeds without it.
    seed: Option<u64>,
    /// Number of attempts of each event.
    attempts: BTreeMap<(WebhookId, i64), u64>,
    /// Start of the first attempt and time of the first success of each event.
    first_attempts: BTreeMap<(WebhookId, i64), Instant>,
    first_successes: BTreeMap<(WebhookId, i64), Instant>,
}

impl SimulatedReceivers {
    fn state(&self) -> MutexGuard<'_, ReceiverState> {
        self.0.lock()
    }

    pub(super) fn inject_faults(&self, seed: u64) {
        self.state().seed = Some(seed);
    }

    pub(super) fn heal(&self) {
        self.state().seed = None;
    }

    /// Number of attempts so far.
    pub(super) fn attempts(&self) -> u64 {
        self.state().attempts.values().sum()
    }

    /// Events that were not delivered, or were sent before the previous event of their order was delivered.
    pub(super) fn violations(&self, db: &MemoryDatabase) -> Vec<String> {
        let (state, mut found) = (self.state(), Vec::new());
        for (webhook_id, partner_id) in db.endpoints() {
            let mut previous: BTreeMap<OrderId, Instant> = BTreeMap::new();
            for row in db.events(partner_id) {
                for number in row.number..row.number + i64::from(row.bundle.count()) {
                    let Some(delivered_at) = state.first_successes.get(&(webhook_id, number)) else {
                        found.push(format!("event {number} of {partner_id} was not delivered"));
                        continue;
                    };
                    let before = previous.insert(row.bundle.order_id, *delivered_at);
                    if before.is_some_and(|before| state.first_attempts[&(webhook_id, number)] < before) {
                        found.push(format!("event {number} of {partner_id} was sent too early"));
                    }
                }
            }
        }
        found
    }

    /// Logs the attempt; returns its response and delay.
    fn respond(&self, key: (WebhookId, i64)) -> (Result<u16, DeliveryFault>, Duration) {
        let mut state = self.state();
        let attempts = state.attempts.entry(key).or_default();
        *attempts += 1;
        let attempts = *attempts;
        state.first_attempts.entry(key).or_insert_with(Instant::now);
        let Some(seed) = state.seed else {
            return (Ok(204), Duration::ZERO);
        };
        // Independent of the sequence of attempts, which depends on random order ids: one seed must reproduce
        // one run.
        let mut rng = StdRng::seed_from_u64(seed ^ (key.1.unsigned_abs() << 16) ^ attempts);
        match rng.random_range(0..100) {
            0..10 => (Ok(500), Duration::ZERO),
            10..15 => (Err(DeliveryFault::Connection), Duration::ZERO),
            15..25 => (Ok(204), Duration::from_millis(rng.random_range(1..4_000))),
            _ => (Ok(204), Duration::ZERO),
        }
    }
}

impl Sender for SimulatedReceivers {
    fn send(&self, target: Arc<WebhookTarget>, event: WebhookEvent) -> StoreFuture<'static, SendResult> {
        let (receivers, key) = (self.clone(), (target.webhook_id, event.number));
        Box::pin(async move {
            let (status, delay) = receivers.respond(key);
            sleep(delay).await;
            if status == Ok(204) {
                let mut state = receivers.state();
                state.first_successes.entry(key).or_insert_with(Instant::now);
            }
            SendResult {
                status,
                retry_after: None,
                body: String::new(),
            }
        })
    }
}
