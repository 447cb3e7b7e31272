//! Delivery test harness: an endpoint, its receiver, and a delivery process.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::{Instant, sleep_until};
use vouchsafe_actors::delivery::concurrency::{ConcurrencyLimit, MAX_IN_FLIGHT};
use vouchsafe_actors::delivery::{Deliveries, DeliveryContext, DeliveryMetrics};
use vouchsafe_actors::supervisor::Spawner;
use vouchsafe_simulation::memory_outbox::{MemoryOutbox, RowState};
use vouchsafe_simulation::simulation::TestClock;

use crate::receiver::{Receiver, ReceiverBehavior};

pub(crate) struct DeliveryHarness {
    pub(crate) outbox: MemoryOutbox,
    pub(crate) receiver: Receiver,
    pub(crate) deliveries: Deliveries,
    started_at: Instant,
}

impl DeliveryHarness {
    /// Commits an event of the order and notifies the poller.
    pub(crate) async fn commit(&self, order: u32) -> i64 {
        let number = self.outbox.commit(order);
        self.poll().await;
        number
    }

    /// Wakes the poller.
    pub(crate) async fn poll(&self) {
        assert!(self.deliveries.wake(self.outbox.webhook_id).await);
    }

    /// Runs until this second, polling every second.
    pub(crate) async fn run_until(&self, second: u64) {
        let end = self.started_at + Duration::from_secs(second);
        while Instant::now() < end {
            sleep_until((Instant::now() + Duration::from_secs(1)).min(end)).await;
            self.poll().await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Runs for this many seconds, polling every second.
    pub(crate) async fn run_for(&self, seconds: u64) {
        self.run_until(self.started_at.elapsed().as_secs() + seconds)
            .await;
    }

    /// State and attempt count of an event's row.
    pub(crate) fn row(&self, number: i64) -> (RowState, u32) {
        let row = self.outbox.tables.lock().unwrap().rows[&number].clone();
        (row.state, row.attempts)
    }

    pub(crate) fn start_second_process(&self) -> Deliveries {
        start_process(&self.outbox, &self.receiver)
    }
}

/// Runs a test with a new harness.
pub(crate) async fn run<F: Future<Output = ()>>(
    behavior: ReceiverBehavior,
    test: impl FnOnce(DeliveryHarness) -> F,
) {
    let body = async {
        let (outbox, receiver) = (MemoryOutbox::default(), Receiver::new(behavior));
        let harness = DeliveryHarness {
            deliveries: start_process(&outbox, &receiver),
            outbox,
            receiver,
            started_at: Instant::now(),
        };
        test(harness).await;
    };
    LocalSet::new().run_until(body).await;
}

fn start_process(outbox: &MemoryOutbox, receiver: &Receiver) -> Deliveries {
    let equipment = DeliveryContext {
        outbox: Arc::new(outbox.clone()),
        sender: Arc::new(receiver.clone()),
        clock: Arc::new(TestClock::new()),
        concurrency: ConcurrencyLimit::new(MAX_IN_FLIGHT),
        jitter: Arc::new(|| 0.0),
        metrics: DeliveryMetrics::default(),
    };
    Deliveries::new(Spawner::CurrentThread, equipment)
}
