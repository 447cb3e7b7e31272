//! What is sent again while the same is under way, waits, or is being written: each replay is followed by an attempt, and each
//! order goes in sequence.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::{Instant, sleep};
use vouchsafe_actors::testing::memory_outbox::{Pace, RowState};

use crate::receiver::{FAILS, Mood, TAKES};
use crate::stage::{Stage, play};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn what_is_replayed_while_it_is_under_way_is_sent_again() {
    play(Mood::Answers(204, 2 * SECOND), async |stage| {
        stage.commit(1).await;
        for second in [1, 3] {
            stage.until(second).await;
            stage.outbox.replay(1..=1);
            stage.look().await;
        }
        stage.until(8).await;
        assert_eq!(stage.receiver.seen(), [(1, 0), (1, 2), (1, 4)]);
        assert_eq!(stage.row(1), (RowState::Delivered, 0));
    })
    .await;
}

/// Its first attempt fails after the replay: that is not put off by the gap of a failure.
#[tokio::test(start_paused = true)]
async fn what_is_replayed_while_it_fails_is_sent_at_once() {
    play(Mood::Answers(500, 2 * SECOND), async |stage| {
        stage.commit(1).await;
        sleep(SECOND).await;
        stage.outbox.replay(1..=1);
        stage.receiver.is(TAKES);
        stage.until(4).await;
        assert_eq!(stage.receiver.seen(), [(1, 0), (1, 2)]);
        assert_eq!(stage.row(1), (RowState::Delivered, 0));
    })
    .await;
}

/// The answer was heard, and is not written down yet when the replay is committed.
#[tokio::test(start_paused = true)]
async fn what_is_replayed_before_its_end_is_written_is_sent_again() {
    play(TAKES, async |stage| {
        stage.commit(1).await;
        stage.until(3).await;
        stage.receiver.is(Mood::Answers(204, SECOND));
        stage.outbox.replay(1..=1);
        stage.look().await;
        sleep(SECOND / 2).await;
        stage.outbox.tables.lock().unwrap().pace.before = 3 * SECOND;
        stage.until(5).await;
        assert!(
            matches!(stage.row(1), (RowState::Waiting(_), 0)),
            "it was taken at 4"
        );
        stage.outbox.replay(1..=1);
        stage.look().await;
        stage.until(30).await;
        assert_eq!(stage.receiver.numbers(), [1, 1, 1]);
        assert_eq!(stage.row(1), (RowState::Delivered, 0));
    })
    .await;
}

/// What was committed after them is in memory, and does not come between.
#[tokio::test(start_paused = true)]
async fn a_replayed_span_goes_before_what_waits_of_its_order() {
    play(TAKES, async |stage| {
        for _ in 0..3 {
            stage.commit(1).await;
        }
        stage.until(1).await;
        stage.receiver.is(Mood::Answers(204, 2 * SECOND));
        stage.commit(1).await;
        stage.commit(1).await;
        stage.until(2).await;
        stage.outbox.replay(1..=3);
        stage.look().await;
        stage.until(20).await;
        assert_eq!(stage.receiver.numbers(), [1, 2, 3, 4, 1, 2, 3, 5]);
    })
    .await;
}

/// An event of the order is read while the one before it fails.
#[tokio::test(start_paused = true)]
async fn what_was_read_while_one_of_its_order_failed_waits_for_it() {
    play(Mood::Answers(500, 2 * SECOND), async |stage| {
        stage.commit(1).await;
        sleep(SECOND).await;
        stage.outbox.tables.lock().unwrap().pace.after = 2 * SECOND;
        stage.commit(1).await;
        stage.receiver.is(TAKES);
        stage.until(20).await;
        assert_eq!(stage.receiver.numbers(), [1, 1, 2]);
    })
    .await;
}

/// Orders, replays, a receiver that hangs and fails and takes, a store that is slow and down, and nodes that die, at random:
/// in the end each replay was followed by an attempt that was taken, and none went before one of its order that had not been.
#[tokio::test(start_paused = true)]
async fn whatever_meets_each_replay_is_followed_by_an_attempt_and_each_order_is_in_sequence() {
    for seed in 0..30 {
        play(TAKES, async |stage| Walk::new(seed, stage).go().await).await;
    }
}

struct Walk {
    seed: u64,
    dice: StdRng,
    stage: Stage,
    /// The order of each event, from number 1 on.
    orders: Vec<u32>,
    replays: Vec<(RangeInclusive<i64>, Instant)>,
}

impl Walk {
    fn new(seed: u64, stage: Stage) -> Self {
        Self {
            seed,
            dice: StdRng::seed_from_u64(seed),
            stage,
            orders: Vec::new(),
            replays: Vec::new(),
        }
    }

    async fn go(mut self) {
        for _ in 0..150 {
            self.step();
            sleep(Duration::from_millis(self.dice.random_range(0..1_500))).await;
            self.stage.look().await;
        }
        {
            let mut tables = self.stage.outbox.tables.lock().unwrap();
            tables.pace = Pace::default();
            tables.down = false;
        }
        self.stage.receiver.is(TAKES);
        self.stage.rest(2 * 3_600).await;
        self.check();
    }

    fn step(&mut self) {
        match self.dice.random_range(0..12) {
            0..=3 => {
                let order = self.dice.random_range(1..=3);
                self.stage.outbox.commit(order);
                self.orders.push(order);
            }
            4..=6 if !self.orders.is_empty() => {
                let last = i64::try_from(self.orders.len()).unwrap();
                let first = self.dice.random_range(1..=last);
                let numbers = first..=self.dice.random_range(first..=last.min(first + 3));
                self.stage.outbox.replay(numbers.clone());
                self.replays.push((numbers, Instant::now()));
            }
            7 | 8 => {
                let after = self.millis(2_500);
                let moods = [TAKES, Mood::Answers(204, after), Mood::Answers(500, after), FAILS];
                let mood = moods[self.dice.random_range(0..moods.len())];
                self.stage.receiver.is(mood);
            }
            9 | 10 => {
                let (before, after) = (self.millis(2_000), self.millis(2_000));
                let down = self.dice.random_range(0..5) == 0;
                let mut tables = self.stage.outbox.tables.lock().unwrap();
                tables.pace = Pace { before, after };
                tables.down = down;
            }
            11 if self.dice.random_range(0..4) == 0 => self.stage.outbox.steal(),
            _ => {}
        }
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.dice.random_range(0..most))
    }

    fn check(&self) {
        let seed = self.seed;
        let attempts = self.stage.receiver.attempts();
        for (numbers, at) in &self.replays {
            for number in numbers.clone() {
                let again = |seen: &&crate::receiver::Seen| {
                    seen.number == number && seen.began >= *at && seen.taken.is_some()
                };
                let again = attempts.iter().find(again);
                assert!(again.is_some(), "seed {seed}: {number} was replayed at {at:?}");
            }
        }
        let mut taken: HashMap<i64, Instant> = HashMap::new();
        for seen in attempts.iter().filter(|seen| seen.taken.is_some()) {
            let first = taken.entry(seen.number).or_insert(seen.taken.unwrap());
            *first = (*first).min(seen.taken.unwrap());
        }
        let mut before: HashMap<u32, i64> = HashMap::new();
        for (number, order) in (1..).zip(&self.orders) {
            let earlier = before.insert(*order, number);
            let first = attempts.iter().find(|seen| seen.number == number);
            let first = first.unwrap_or_else(|| panic!("seed {seed}: {number} was not sent"));
            if let Some(earlier) = earlier {
                let in_sequence = taken[&earlier] <= first.began;
                assert!(in_sequence, "seed {seed}: {number} went before {earlier}");
            }
        }
        let tables = self.stage.outbox.tables.lock().unwrap();
        for (number, row) in &tables.rows {
            assert_eq!(row.state, RowState::Delivered, "seed {seed}: {number}");
        }
    }
}
