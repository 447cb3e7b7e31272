//! Answers that were given lately, so that most replays cost no database work. Bounded; the oldest go first.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::domain::answer::{KeyHash, KnownAnswer};

/// How many answers are kept in memory: at about 700 B each some 23 MB, and five seconds of full load, which covers the
/// time in which most retries come.
const CAPACITY: usize = 32_768;

/// How many bytes of bodies are kept in memory, however few answers they are: the one to an order of 1,000 vouchers is
/// some hundred times as long as most.
const CAPACITY_BYTES: usize = 64 * 1024 * 1024;

/// Independent parts, so that threads seldom meet at a lock.
const SHARDS: usize = 16;

/// For how long an answer may be given from memory; counted from before its commit, so it ends before the database's 24 h.
const KEPT_FOR: Duration = Duration::from_hours(24);

#[derive(Debug, Default)]
struct Shard {
    answers: HashMap<KeyHash, (KnownAnswer, Duration)>,
    oldest_first: VecDeque<KeyHash>,
    bytes: usize,
}

impl Shard {
    fn insert(&mut self, key: KeyHash, answer: KnownAnswer, since: Duration) {
        self.bytes += answer.answer.body.len();
        match self.answers.insert(key, (answer, since)) {
            None => self.oldest_first.push_back(key),
            Some((before, _)) => self.bytes -= before.answer.body.len(),
        }
    }

    fn forget_oldest(&mut self) {
        let oldest = self.oldest_first.pop_front();
        if let Some((forgotten, _)) = oldest.and_then(|oldest| self.answers.remove(&oldest)) {
            self.bytes -= forgotten.answer.body.len();
        }
    }
}

/// A bounded map from key to answer.
#[derive(Debug)]
pub(super) struct Answers {
    shards: [Mutex<Shard>; SHARDS],
    capacity_per_shard: usize,
    bytes_per_shard: usize,
}

impl Answers {
    pub(super) fn new() -> Self {
        Self::with_capacity(CAPACITY, CAPACITY_BYTES)
    }

    fn with_capacity(answers: usize, bytes: usize) -> Self {
        Self {
            shards: Default::default(),
            capacity_per_shard: answers.div_ceil(SHARDS),
            bytes_per_shard: bytes.div_ceil(SHARDS),
        }
    }

    /// The answer under `key`, if it is remembered and its time is not over. `now` is monotonic.
    pub(super) fn get(&self, key: KeyHash, now: Duration) -> Option<KnownAnswer> {
        let shard = self.shard(key).lock().unwrap_or_else(PoisonError::into_inner);
        let (answer, since) = shard.answers.get(&key)?;
        (now.saturating_sub(*since) < KEPT_FOR).then(|| answer.clone())
    }

    /// Remembers an answer. `since` is a monotonic time before its commit.
    pub(super) fn insert(&self, key: KeyHash, answer: KnownAnswer, since: Duration) {
        let mut shard = self.shard(key).lock().unwrap_or_else(PoisonError::into_inner);
        shard.insert(key, answer, since);
        while shard.oldest_first.len() > self.capacity_per_shard || shard.bytes > self.bytes_per_shard {
            shard.forget_oldest();
        }
    }

    fn shard(&self, key: KeyHash) -> &Mutex<Shard> {
        let index = usize::from(key.0.as_bytes()[0]) % SHARDS;
        &self.shards[index]
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use uuid::Uuid;

    use super::*;
    use crate::domain::answer::{Answer, Fingerprint};

    fn key(n: u128) -> KeyHash {
        KeyHash(Uuid::from_u128(n))
    }

    fn answer(status: u16) -> KnownAnswer {
        KnownAnswer {
            fingerprint: Fingerprint([0; 32]),
            answer: Answer {
                status,
                body: Bytes::new(),
            },
        }
    }

    #[test]
    fn an_answer_is_forgotten_after_a_day() {
        let answers = Answers::new();
        answers.insert(key(1), answer(201), Duration::from_secs(5));
        let day = Duration::from_hours(24);
        assert_eq!(answers.get(key(1), day), Some(answer(201)));
        assert_eq!(answers.get(key(1), day + Duration::from_secs(5)), None);
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let answers = Answers::with_capacity(SHARDS * 2, CAPACITY_BYTES);
        for n in 1..=3 {
            answers.insert(key(n), answer(201), Duration::ZERO);
        }
        let kept: Vec<_> = (1..=3)
            .filter(|n| answers.get(key(*n), Duration::ZERO).is_some())
            .collect();
        assert_eq!(kept, [2, 3]);
    }

    #[test]
    fn long_answers_take_the_room_of_many() {
        let answers = Answers::with_capacity(CAPACITY, SHARDS * 100);
        let long = |length: usize| KnownAnswer {
            answer: Answer {
                status: 201,
                body: Bytes::from(vec![b' '; length]),
            },
            ..answer(201)
        };
        let kept = |answers: &Answers| -> Vec<u128> {
            let known = |n: &u128| answers.get(key(*n), Duration::ZERO).is_some();
            (1..=4).filter(known).collect()
        };
        for (n, length) in [(1, 60), (2, 30), (3, 30)] {
            answers.insert(key(n), long(length), Duration::ZERO);
        }
        assert_eq!(kept(&answers), [2, 3]);
        (0..9).for_each(|_| answers.insert(key(3), long(70), Duration::ZERO));
        assert_eq!(kept(&answers), [2, 3]);
        answers.insert(key(4), long(101), Duration::ZERO);
        assert_eq!(kept(&answers), [] as [u128; 0]);
        answers.insert(key(4), long(100), Duration::ZERO);
        assert_eq!(kept(&answers), [4]);
    }

    #[test]
    fn inserting_again_takes_no_second_place() {
        let answers = Answers::with_capacity(SHARDS * 2, CAPACITY_BYTES);
        for _ in 0..10 {
            answers.insert(key(1), answer(201), Duration::ZERO);
        }
        answers.insert(key(2), answer(202), Duration::ZERO);
        assert_eq!(answers.get(key(1), Duration::ZERO), Some(answer(201)));
    }
}
