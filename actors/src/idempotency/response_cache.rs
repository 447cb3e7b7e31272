//! Bounded in-memory cache of recent responses: most replays need no database access. Evicts the oldest
//! first.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};

/// Maximum number of cached responses: about 23 MB at some 700 B each. That is five seconds of full load, in
/// which most retries arrive.
const CAPACITY: usize = 32_768;

/// Maximum total size of cached bodies: the response to an order of 1,000 vouchers is some hundred times as
/// long as most.
const CAPACITY_BYTES: usize = 64 * 1024 * 1024;

/// Number of independently locked shards; reduces lock contention.
const SHARDS: usize = 16;

/// How long a response may be served from the cache. Counted from before its commit, so it ends before the 24
/// h of the database.
const RETENTION_TIME: Duration = Duration::from_hours(24);

#[derive(Debug, Default)]
struct Shard {
    responses: HashMap<KeyHash, (StoredResponse, Duration)>,
    oldest_first: VecDeque<KeyHash>,
    bytes: usize,
}

impl Shard {
    fn insert(&mut self, key: KeyHash, response: StoredResponse, started_at: Duration) {
        self.bytes += response.response.body.len();
        match self.responses.insert(key, (response, started_at)) {
            None => self.oldest_first.push_back(key),
            Some((before, _)) => self.bytes -= before.response.body.len(),
        }
    }

    fn evict_oldest(&mut self) {
        let oldest = self.oldest_first.pop_front();
        if let Some((evicted, _)) = oldest.and_then(|oldest| self.responses.remove(&oldest)) {
            self.bytes -= evicted.response.body.len();
        }
    }
}

/// A bounded map from key to response.
#[derive(Debug)]
pub(super) struct ResponseCache {
    shards: [Mutex<Shard>; SHARDS],
    capacity_per_shard: usize,
    bytes_per_shard: usize,
}

impl ResponseCache {
    pub(super) fn new() -> Self {
        Self::with_capacity(CAPACITY, CAPACITY_BYTES)
    }

    fn with_capacity(responses: usize, bytes: usize) -> Self {
        Self {
            shards: Default::default(),
            capacity_per_shard: responses.div_ceil(SHARDS),
            bytes_per_shard: bytes.div_ceil(SHARDS),
        }
    }

    /// The cached response of `key` unless it has expired. `now` is monotonic.
    pub(super) fn get(&self, key: KeyHash, now: Duration) -> Option<StoredResponse> {
        let shard = self.shard(key).lock();
        let (response, started_at) = shard.responses.get(&key)?;
        (now.saturating_sub(*started_at) < RETENTION_TIME).then(|| response.clone())
    }

    /// Caches a response. `started_at` is a monotonic time before its commit.
    pub(super) fn insert(&self, key: KeyHash, response: StoredResponse, started_at: Duration) {
        let mut shard = self.shard(key).lock();
        shard.insert(key, response, started_at);
        while shard.oldest_first.len() > self.capacity_per_shard || shard.bytes > self.bytes_per_shard {
            shard.evict_oldest();
        }
    }

    /// Drops all responses.
    pub(super) fn clear(&self) {
        for shard in &self.shards {
            *shard.lock() = Shard::default();
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
    use vouchsafe_domain::idempotency::{Fingerprint, Response};

    use super::*;

    fn key(n: u128) -> KeyHash {
        KeyHash(Uuid::from_u128(n))
    }

    fn response(status: u16) -> StoredResponse {
        StoredResponse {
            fingerprint: Fingerprint([0; 32]),
            response: Response {
                status,
                body: Bytes::new(),
            },
        }
    }

    #[test]
    fn response_expires_after_24_hours() {
        let responses = ResponseCache::new();
        responses.insert(key(1), response(201), Duration::from_secs(5));
        let day = Duration::from_hours(24);
        assert_eq!(responses.get(key(1), day), Some(response(201)));
        assert_eq!(responses.get(key(1), day + Duration::from_secs(5)), None);
    }

    #[test]
    fn oldest_response_is_evicted_at_capacity() {
        let responses = ResponseCache::with_capacity(SHARDS * 2, CAPACITY_BYTES);
        for n in 1..=3 {
            responses.insert(key(n), response(201), Duration::ZERO);
        }
        let cached: Vec<_> = (1..=3)
            .filter(|n| responses.get(key(*n), Duration::ZERO).is_some())
            .collect();
        assert_eq!(cached, [2, 3]);
    }

    #[test]
    fn long_responses_count_by_their_bytes() {
        let responses = ResponseCache::with_capacity(CAPACITY, SHARDS * 100);
        let long = |length: usize| StoredResponse {
            response: Response {
                status: 201,
                body: Bytes::from(vec![b' '; length]),
            },
            ..response(201)
        };
        let cached = |responses: &ResponseCache| -> Vec<u128> {
            let known = |n: &u128| responses.get(key(*n), Duration::ZERO).is_some();
            (1..=4).filter(known).collect()
        };
        for (n, length) in [(1, 60), (2, 30), (3, 30)] {
            responses.insert(key(n), long(length), Duration::ZERO);
        }
        assert_eq!(cached(&responses), [2, 3]);
        (0..9).for_each(|_| responses.insert(key(3), long(70), Duration::ZERO));
        assert_eq!(cached(&responses), [2, 3]);
        responses.insert(key(4), long(101), Duration::ZERO);
        assert_eq!(cached(&responses), [] as [u128; 0]);
        responses.insert(key(4), long(100), Duration::ZERO);
        assert_eq!(cached(&responses), [4]);
    }

    #[test]
    fn reinserting_a_key_uses_no_second_slot() {
        let responses = ResponseCache::with_capacity(SHARDS * 2, CAPACITY_BYTES);
        for _ in 0..10 {
            responses.insert(key(1), response(201), Duration::ZERO);
        }
        responses.insert(key(2), response(202), Duration::ZERO);
        assert_eq!(responses.get(key(1), Duration::ZERO), Some(response(201)));
    }
}
