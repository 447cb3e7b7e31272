//! Delivery test harness: an endpoint, its receiver, and a delivery process.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::{Instant, sleep_until};
use vouchsafe_actors::delivery::concurrency::{ConcurrencyLimit, MAX_IN_FLIGHT};
use vouchsafe_actors::delivery::{Deliveries, DeliveryContext, DeliveryMetrics};
use vouchsafe_actors::supervisor::Spawner;
use vouchsafe_domain::ids::WebhookId;
use vouchsafe_simulation::walk::TestClock;
use vouchsafe_simulation::{DeliveryRow, EndpointStatus, MemoryDatabase, MemoryStore, RowState};

use super::receiver::{Receiver, ReceiverBehavior};
use crate::fixture::ALICE;

pub(crate) struct DeliveryHarness {
    pub(crate) db: MemoryDatabase,
    pub(crate) webhook_id: WebhookId,
    pub(crate) receiver: Receiver,
    pub(crate) deliveries: Deliveries,
    store: MemoryStore,
    started_at: Instant,
}

impl DeliveryHarness {
    fn start(behavior: ReceiverBehavior) -> Self {
        let (db, webhook_id) = (MemoryDatabase::new(), WebhookId::generate());
        db.add_endpoint(ALICE, webhook_id);
        let (store, receiver) = (db.start_node("one"), Receiver::new(behavior));
        Self {
            deliveries: start_process(&store, &receiver),
            db,
            webhook_id,
            receiver,
            store,
            started_at: Instant::now(),
        }
    }

    /// Commits an event of the order.
    pub(crate) fn append(&self, order: u32) -> i64 {
        self.db.append_event(ALICE, order)
    }

    /// Commits an event of the order and notifies the poller.
    pub(crate) async fn commit(&self, order: u32) -> i64 {
        let number = self.append(order);
        self.poll().await;
        number
    }

    /// Wakes the poller.
    pub(crate) async fn poll(&self) {
        assert!(self.deliveries.wake(self.webhook_id).await);
    }

    pub(crate) fn replay(&self, numbers: RangeInclusive<i64>) {
        self.db.replay(self.webhook_id, numbers);
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

    pub(crate) fn status(&self) -> EndpointStatus {
        self.db.endpoint(self.webhook_id).unwrap()
    }

    /// Delivery rows by event number.
    pub(crate) fn rows(&self) -> BTreeMap<i64, DeliveryRow> {
        self.db.deliveries(self.webhook_id)
    }

    /// State and attempt count of an event's row.
    pub(crate) fn row(&self, number: i64) -> (RowState, u32) {
        let row = &self.rows()[&number];
        (row.state, row.attempts)
    }

    pub(crate) fn start_second_process(&self) -> Deliveries {
        start_process(&self.store, &self.receiver)
    }
}

/// Runs a test with a new harness.
pub(crate) async fn run<F: Future<Output = ()>>(
    behavior: ReceiverBehavior,
    test: impl FnOnce(DeliveryHarness) -> F,
) {
    let body = async { test(DeliveryHarness::start(behavior)).await };
    LocalSet::new().run_until(body).await;
}

fn start_process(store: &MemoryStore, receiver: &Receiver) -> Deliveries {
    let context = DeliveryContext {
        outbox: Arc::new(store.clone()),
        sender: Arc::new(receiver.clone()),
        attempt_log: None,
        clock: Arc::new(TestClock::new()),
        concurrency: ConcurrencyLimit::new(MAX_IN_FLIGHT),
        jitter: Arc::new(|| 0.0),
        metrics: DeliveryMetrics::default(),
    };
    Deliveries::new(Spawner::CurrentThread, context)
}
