//! Replays during an attempt, a wait or a flush: each replay is followed by an attempt, and each order stays
//! sequential.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::{Instant, sleep};
use vouchsafe_simulation::{FlushLatency, RowState};

use super::harness::{DeliveryHarness, run};
use super::receiver::{ACCEPT, FAIL, ReceiverBehavior};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn replay_during_attempt_is_sent_again() {
    run(ReceiverBehavior::Respond(204, 2 * SECOND), async |harness| {
        harness.commit(1).await;
        for second in [1, 3] {
            harness.run_until(second).await;
            harness.replay(1..=1);
            harness.poll().await;
        }
        harness.run_until(8).await;
        assert_eq!(harness.receiver.numbers_and_seconds(), [(1, 0), (1, 2), (1, 4)]);
        assert_eq!(harness.row(1), (RowState::Delivered, 0));
    })
    .await;
}

/// The first attempt fails after the replay, which is not delayed by the retry gap.
#[tokio::test(start_paused = true)]
async fn replay_during_failing_attempt_is_sent_at_once() {
    run(ReceiverBehavior::Respond(500, 2 * SECOND), async |harness| {
        harness.commit(1).await;
        sleep(SECOND).await;
        harness.replay(1..=1);
        harness.receiver.set_behavior(ACCEPT);
        harness.run_until(4).await;
        assert_eq!(harness.receiver.numbers_and_seconds(), [(1, 0), (1, 2)]);
        assert_eq!(harness.row(1), (RowState::Delivered, 0));
    })
    .await;
}

/// The response has arrived but is not flushed when the replay is committed.
#[tokio::test(start_paused = true)]
async fn replay_before_flush_of_success_is_sent_again() {
    run(ACCEPT, async |harness| {
        harness.commit(1).await;
        harness.run_until(3).await;
        harness
            .receiver
            .set_behavior(ReceiverBehavior::Respond(204, SECOND));
        harness.replay(1..=1);
        harness.poll().await;
        sleep(SECOND / 2).await;
        harness.db.set_flush_latency(FlushLatency {
            before: 3 * SECOND,
            ..FlushLatency::default()
        });
        harness.run_until(5).await;
        assert!(matches!(harness.row(1), (RowState::Waiting, 0)), "delivered at 4");
        harness.replay(1..=1);
        harness.poll().await;
        harness.run_until(30).await;
        assert_eq!(harness.receiver.numbers(), [1, 1, 1]);
        assert_eq!(harness.row(1), (RowState::Delivered, 0));
    })
    .await;
}

/// Later events of the order are already in memory and must not overtake the replays.
#[tokio::test(start_paused = true)]
async fn replayed_span_precedes_waiting_events_of_its_order() {
    run(ACCEPT, async |harness| {
        for _ in 0..3 {
            harness.commit(1).await;
        }
        harness.run_until(1).await;
        harness
            .receiver
            .set_behavior(ReceiverBehavior::Respond(204, 2 * SECOND));
        harness.commit(1).await;
        harness.commit(1).await;
        harness.run_until(2).await;
        harness.replay(1..=3);
        harness.poll().await;
        harness.run_until(20).await;
        assert_eq!(harness.receiver.numbers(), [1, 2, 3, 4, 1, 2, 3, 5]);
    })
    .await;
}

/// An event is read while the previous one of its order is failing.
#[tokio::test(start_paused = true)]
async fn event_read_while_predecessor_fails_waits_for_it() {
    run(ReceiverBehavior::Respond(500, 2 * SECOND), async |harness| {
        harness.commit(1).await;
        sleep(SECOND).await;
        harness.db.set_flush_latency(FlushLatency {
            after: 2 * SECOND,
            ..FlushLatency::default()
        });
        harness.commit(1).await;
        harness.receiver.set_behavior(ACCEPT);
        harness.run_until(20).await;
        assert_eq!(harness.receiver.numbers(), [1, 1, 2]);
    })
    .await;
}

/// Random orders, replays, receiver failures, store latency and outages, and stolen leases: in the end each
/// replay is followed by a successful attempt, and no event was sent before its predecessor was delivered.
#[tokio::test(start_paused = true)]
async fn random_walk_follows_each_replay_by_an_attempt_in_sequence() {
    for seed in 0..30 {
        run(ACCEPT, async |harness| RandomWalk::new(seed, harness).run().await).await;
    }
}

struct RandomWalk {
    seed: u64,
    rng: StdRng,
    harness: DeliveryHarness,
    /// Order of each event, from number 1.
    orders: Vec<u32>,
    replays: Vec<(RangeInclusive<i64>, Instant)>,
}

impl RandomWalk {
    fn new(seed: u64, harness: DeliveryHarness) -> Self {
        Self {
            seed,
            rng: StdRng::seed_from_u64(seed),
            harness,
            orders: Vec::new(),
            replays: Vec::new(),
        }
    }

    async fn run(mut self) {
        for _ in 0..150 {
            self.step();
            sleep(Duration::from_millis(self.rng.random_range(0..1_500))).await;
            self.harness.poll().await;
        }
        self.harness.db.set_flush_latency(FlushLatency::default());
        self.harness.db.set_unavailable(false);
        self.harness.receiver.set_behavior(ACCEPT);
        self.harness.run_for(2 * 3_600).await;
        self.check();
    }

    fn step(&mut self) {
        match self.rng.random_range(0..12) {
            0..=3 => {
                let order = self.rng.random_range(1..=3);
                self.harness.append(order);
                self.orders.push(order);
            }
            4..=6 if !self.orders.is_empty() => {
                let last = i64::try_from(self.orders.len()).unwrap();
                let first = self.rng.random_range(1..=last);
                let numbers = first..=self.rng.random_range(first..=last.min(first + 3));
                self.harness.replay(numbers.clone());
                self.replays.push((numbers, Instant::now()));
            }
            7 | 8 => {
                let after = self.random_millis(2_500);
                let behaviors = [
                    ACCEPT,
                    ReceiverBehavior::Respond(204, after),
                    ReceiverBehavior::Respond(500, after),
                    FAIL,
                ];
                let behavior = behaviors[self.rng.random_range(0..behaviors.len())];
                self.harness.receiver.set_behavior(behavior);
            }
            9 | 10 => {
                let (before, after) = (self.random_millis(2_000), self.random_millis(2_000));
                let down = self.rng.random_range(0..5) == 0;
                self.harness.db.set_flush_latency(FlushLatency { before, after });
                self.harness.db.set_unavailable(down);
            }
            11 if self.rng.random_range(0..4) == 0 => self.harness.db.steal_lease(self.harness.webhook_id),
            _ => {}
        }
    }

    fn random_millis(&mut self, max: u64) -> Duration {
        Duration::from_millis(self.rng.random_range(0..max))
    }

    fn check(&self) {
        let seed = self.seed;
        let attempts = self.harness.receiver.attempts();
        for (numbers, at) in &self.replays {
            for number in numbers.clone() {
                let again = |attempt: &&super::receiver::ReceivedAttempt| {
                    attempt.number == number && attempt.started_at >= *at && attempt.delivered_at.is_some()
                };
                let again = attempts.iter().find(again);
                assert!(
                    again.is_some(),
                    "seed {seed}: no attempt followed the replay of {number} at {at:?}"
                );
            }
        }
        let mut delivered_at: HashMap<i64, Instant> = HashMap::new();
        for attempt in attempts.iter().filter(|attempt| attempt.delivered_at.is_some()) {
            let first = delivered_at
                .entry(attempt.number)
                .or_insert(attempt.delivered_at.unwrap());
            *first = (*first).min(attempt.delivered_at.unwrap());
        }
        let mut before: HashMap<u32, i64> = HashMap::new();
        for (number, order) in (1..).zip(&self.orders) {
            let earlier = before.insert(*order, number);
            let first = attempts.iter().find(|attempt| attempt.number == number);
            let first = first.unwrap_or_else(|| panic!("seed {seed}: {number} was not sent"));
            if let Some(earlier) = earlier {
                let in_sequence = delivered_at[&earlier] <= first.started_at;
                assert!(in_sequence, "seed {seed}: {number} was sent before {earlier}");
            }
        }
        for (number, row) in &self.harness.rows() {
            assert_eq!(row.state, RowState::Delivered, "seed {seed}: {number}");
        }
    }
}
