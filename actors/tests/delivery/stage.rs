//! An endpoint, its receiver, and a process that delivers.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::{Instant, sleep_until};
use vouchsafe_actors::delivery::places::{MAX_UNDER_WAY, Places};
use vouchsafe_actors::delivery::{Deliveries, DeliveryMetrics, Equipment};
use vouchsafe_actors::supervisor::Spawner;
use vouchsafe_actors::testing::world::TestClock;

use crate::receiver::{Mood, Receiver};
use vouchsafe_actors::testing::memory_outbox::{MemoryOutbox, RowState};

pub(crate) struct Stage {
    pub(crate) outbox: MemoryOutbox,
    pub(crate) receiver: Receiver,
    pub(crate) deliveries: Deliveries,
    began: Instant,
}

impl Stage {
    /// Commits an event of the order, and rings.
    pub(crate) async fn commit(&self, order: u32) -> i64 {
        let number = self.outbox.commit(order);
        self.look().await;
        number
    }

    /// The look of a process for what is to be delivered.
    pub(crate) async fn look(&self) {
        assert!(self.deliveries.wake(self.outbox.webhook_id).await);
    }

    /// Until this second, with a look each second.
    pub(crate) async fn until(&self, second: u64) {
        let end = self.began + Duration::from_secs(second);
        while Instant::now() < end {
            sleep_until((Instant::now() + Duration::from_secs(1)).min(end)).await;
            self.look().await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// So many seconds more, with a look each second.
    pub(crate) async fn rest(&self, seconds: u64) {
        self.until(self.began.elapsed().as_secs() + seconds).await;
    }

    /// Where the row of this event stands, and how many attempts it counts.
    pub(crate) fn row(&self, number: i64) -> (RowState, u32) {
        let row = self.outbox.tables.lock().unwrap().rows[&number].clone();
        (row.state, row.attempts)
    }

    /// Another process.
    pub(crate) fn another(&self) -> Deliveries {
        process(&self.outbox, &self.receiver)
    }
}

/// Plays a test on paused time.
pub(crate) async fn play<F: Future<Output = ()>>(mood: Mood, test: impl FnOnce(Stage) -> F) {
    let body = async {
        let (outbox, receiver) = (MemoryOutbox::default(), Receiver::new(mood));
        let stage = Stage {
            deliveries: process(&outbox, &receiver),
            outbox,
            receiver,
            began: Instant::now(),
        };
        test(stage).await;
    };
    LocalSet::new().run_until(body).await;
}

fn process(outbox: &MemoryOutbox, receiver: &Receiver) -> Deliveries {
    let equipment = Equipment {
        outbox: Arc::new(outbox.clone()),
        sender: Arc::new(receiver.clone()),
        clock: Arc::new(TestClock::new()),
        places: Places::new(MAX_UNDER_WAY),
        chance: Arc::new(|| 0.0),
        metrics: DeliveryMetrics::default(),
    };
    Deliveries::new(Spawner::Here, equipment)
}
