//! The last ten minutes of the busiest actors, and of those that an operator has looked at.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use time::OffsetDateTime;
use vouchsafe_wire::operator::actors::{ActorKind, ActorSample, LiveActor};

/// Ten minutes, with a reading each ten seconds.
const READINGS: usize = 60;

/// Actors with a history: some 2 MB.
const MAX_HISTORIES: usize = 1_000;

/// An actor that was neither busy nor looked at for so long has no history.
const KEPT_FOR: Duration = Duration::from_mins(10);

/// A rate over less time would be noise.
const SHORTEST_PERIOD: Duration = Duration::from_millis(500);

type ActorName = (ActorKind, String);

/// What each of these actors handled.
#[derive(Debug, Default)]
pub(crate) struct ActorHistories(Mutex<HashMap<ActorName, History>>);

#[derive(Debug)]
struct History {
    readings: VecDeque<Reading>,
    /// When the actor was last busy or looked at.
    used_at: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    at: OffsetDateTime,
    read_at: Instant,
    mailbox_depth: usize,
    handled: u64,
}

impl ActorHistories {
    /// Adds a reading of the busiest actors. `read_other` reads one that was looked at and is not among them.
    pub(crate) fn record(
        &self,
        busiest: &[LiveActor],
        read_other: impl Fn(ActorKind, &str) -> Option<LiveActor>,
        at: OffsetDateTime,
    ) {
        let now = Instant::now();
        let mut histories = self.lock();
        for actor in busiest {
            let history = histories
                .entry((actor.kind, actor.key.clone()))
                .or_insert_with(|| History::new(now));
            history.used_at = now;
            history.push(actor, at, now);
        }
        for ((kind, key), history) in histories.iter_mut() {
            let is_read = history.readings.back().is_some_and(|last| last.read_at == now);
            if !is_read && let Some(actor) = read_other(*kind, key) {
                history.push(&actor, at, now);
            }
        }
        histories.retain(|_, history| now.duration_since(history.used_at) < KEPT_FOR);
        if let Some(excess) = histories
            .len()
            .checked_sub(MAX_HISTORIES)
            .filter(|excess| *excess > 0)
        {
            let mut by_age: Vec<_> = histories
                .iter()
                .map(|(name, history)| (history.used_at, name.clone()))
                .collect();
            by_age.sort_unstable_by_key(|(used_at, _)| *used_at);
            for (_, name) in by_age.into_iter().take(excess) {
                histories.remove(&name);
            }
        }
    }

    /// Sets the rates of actors with a history.
    pub(crate) fn add_rates(&self, actors: &mut [LiveActor]) {
        let now = Instant::now();
        let histories = self.lock();
        for actor in actors {
            let name = (actor.kind, actor.key.clone());
            let history = histories.get(&name);
            actor.stats.handled_per_s = history.and_then(|history| history.rate(actor.stats.handled, now));
        }
    }

    /// The samples of an actor, oldest first. From now on it has a history.
    pub(crate) fn samples(&self, kind: ActorKind, key: &str) -> Vec<ActorSample> {
        let now = Instant::now();
        let mut histories = self.lock();
        let history = histories
            .entry((kind, key.to_owned()))
            .or_insert_with(|| History::new(now));
        history.used_at = now;
        history.samples()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ActorName, History>> {
        self.0.lock()
    }
}

impl History {
    const fn new(now: Instant) -> Self {
        Self {
            readings: VecDeque::new(),
            used_at: now,
        }
    }

    fn push(&mut self, actor: &LiveActor, at: OffsetDateTime, read_at: Instant) {
        if self.readings.len() == READINGS {
            self.readings.pop_front();
        }
        self.readings.push_back(Reading {
            at,
            read_at,
            mailbox_depth: actor.stats.mailbox_depth,
            handled: actor.stats.handled,
        });
    }

    /// Messages per second since the last reading that is not too recent.
    fn rate(&self, handled: u64, now: Instant) -> Option<f64> {
        let mut readings = self.readings.iter().rev();
        let last = readings.find(|reading| now.duration_since(reading.read_at) >= SHORTEST_PERIOD)?;
        per_second(last, handled, now)
    }

    /// The first reading begins the period of the first sample.
    fn samples(&self) -> Vec<ActorSample> {
        let pairs = self.readings.iter().zip(self.readings.iter().skip(1));
        pairs
            .map(|(before, reading)| ActorSample {
                at: reading.at,
                mailbox_depth: reading.mailbox_depth,
                handled_per_s: per_second(before, reading.handled, reading.read_at).unwrap_or(0.0),
            })
            .collect()
    }
}

/// `None` after an eviction, which begins the count again.
#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn per_second(before: &Reading, handled: u64, now: Instant) -> Option<f64> {
    let messages = handled.checked_sub(before.handled)?;
    let rate = messages as f64 / now.duration_since(before.read_at).as_secs_f64();
    Some((rate * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use vouchsafe_wire::operator::actors::{ActorState, ActorStatsBody};

    use super::*;

    fn actor(key: &str, handled: u64) -> LiveActor {
        LiveActor {
            kind: ActorKind::Wallet,
            key: key.to_owned(),
            stats: ActorStatsBody {
                mailbox_depth: 3,
                handled,
                handled_per_s: None,
                handling_p50_us: None,
                handling_p99_us: None,
                restarts: 0,
                state: ActorState::Ready,
                last_error: None,
            },
        }
    }

    #[test]
    fn watched_actor_is_read_while_others_are_busier() {
        let histories = ActorHistories::default();
        assert!(histories.samples(ActorKind::Wallet, "quiet").is_empty());
        let quiet = |_: ActorKind, key: &str| Some(actor(key, 7));
        for handled in [100, 200] {
            histories.record(&[actor("busy", handled)], quiet, OffsetDateTime::UNIX_EPOCH);
        }
        let samples = histories.samples(ActorKind::Wallet, "quiet");
        assert_eq!(samples.len(), 1);
        assert_eq!((samples[0].mailbox_depth, samples[0].handled_per_s), (3, 0.0));
        let samples = histories.samples(ActorKind::Wallet, "busy");
        assert!(samples[0].handled_per_s > 0.0);
        assert!(histories.samples(ActorKind::Inventory, "busy").is_empty());
    }

    #[test]
    fn number_of_histories_is_bounded() {
        let histories = ActorHistories::default();
        for number in 0..MAX_HISTORIES + 50 {
            histories.samples(ActorKind::Wallet, &number.to_string());
        }
        histories.record(&[actor("busy", 1)], |_, _| None, OffsetDateTime::UNIX_EPOCH);
        let kept = histories.lock();
        assert_eq!(kept.len(), MAX_HISTORIES);
        assert!(kept.contains_key(&(ActorKind::Wallet, "busy".to_owned())));
        assert!(!kept.contains_key(&(ActorKind::Wallet, "0".to_owned())));
    }

    #[test]
    fn rate_needs_two_readings_and_a_growing_count() {
        let mut history = History::new(Instant::now());
        let now = Instant::now() + Duration::from_secs(20);
        assert_eq!(history.rate(5, now), None);
        history.push(&actor("a", 100), OffsetDateTime::UNIX_EPOCH, now);
        assert_eq!(history.rate(150, now), None);
        assert_eq!(history.rate(150, now + Duration::from_secs(10)), Some(5.0));
        assert_eq!(history.rate(50, now + Duration::from_secs(10)), None);
    }
}
