//! Sliding-window rate limiter.
//!
//! In any span of `window_s` seconds at most `quota` requests pass. A request counts for exactly `window_s`
//! after it passed.
//!
//! Up to a quota of [`RESOLUTION`] every request is recorded individually and the window is exact. Above, the
//! window is divided into that many ticks and the requests of a tick share an entry, so a slot becomes free
//! at most one tick late. A window therefore holds at most some four thousand entries of 16 bytes, whatever
//! the quota.
//!
//! `now` is the monotonic time of the process's clock.

use std::collections::VecDeque;
use std::time::Duration;

use vouchsafe_domain::limits::Limit;

/// Number of ticks of a window, and the largest quota with individual entries.
pub const RESOLUTION: u32 = 4_096;

/// The requests of one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) at_ns: u64,
    pub(crate) count: u32,
}

/// The requests under one limit that still count.
#[derive(Debug)]
pub struct SlidingWindow {
    limit: Limit,
    buckets: VecDeque<Bucket>,
    /// The sum of the buckets' counts.
    used: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitStatus {
    pub limit: Limit,
    /// Requests that would pass now.
    pub remaining: u32,
    /// Time until `remaining` grows by one; the whole window if no request counts.
    pub next_slot_in: Duration,
}

/// The limit is reached: a request after [`RateLimitStatus::next_slot_in`] passes unless another one takes
/// the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted(pub RateLimitStatus);

impl SlidingWindow {
    #[must_use]
    pub const fn new(limit: Limit) -> Self {
        Self {
            limit,
            buckets: VecDeque::new(),
            used: 0,
        }
    }

    /// Counts a request if the limit allows it. Requests recorded under another limit count under this one.
    ///
    /// # Errors
    /// [`Exhausted`]: the request was not counted.
    pub fn try_acquire(&mut self, limit: Limit, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        self.peek(limit, now)?;
        Ok(self.count(now))
    }

    /// Counts a request that [`Self::peek`] allows now.
    pub(crate) fn count(&mut self, now: Duration) -> RateLimitStatus {
        self.record(Bucket {
            at_ns: nanoseconds(now),
            count: 1,
        });
        self.status(now)
    }

    /// Takes back a request that [`Self::last_request_ns`] named when it was counted, unless it has expired.
    pub(crate) fn uncount(&mut self, at_ns: u64) {
        let found = self.buckets.iter().rposition(|bucket| bucket.at_ns == at_ns);
        let Some(bucket) = found.and_then(|index| self.buckets.get_mut(index)) else {
            return;
        };
        bucket.count = bucket.count.saturating_sub(1);
        self.used = self.used.saturating_sub(1);
        self.buckets.retain(|bucket| bucket.count > 0);
    }

    /// Returns the status without counting a request.
    ///
    /// # Errors
    /// [`Exhausted`] if a request would be refused.
    pub fn peek(&mut self, limit: Limit, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        self.apply_limit(limit);
        self.expire(now);
        let reading = self.status(now);
        if reading.remaining == 0 {
            return Err(Exhausted(reading));
        }
        Ok(reading)
    }

    /// The limit of the last request.
    pub(crate) const fn limit(&self) -> Limit {
        self.limit
    }

    /// Replaces the requests that count, given in order of time.
    pub(crate) fn replace(&mut self, requests: impl Iterator<Item = Bucket>) {
        self.used = 0;
        self.buckets.clear();
        requests.for_each(|bucket| self.record(bucket));
    }

    /// Whether no request counts any more, so that the window can be dropped.
    #[must_use]
    pub fn is_idle(&self, now: Duration) -> bool {
        self.buckets
            .back()
            .is_none_or(|last| self.is_expired(last, nanoseconds(now)))
    }

    /// When the last request was counted, rounded up to a tick. Nanoseconds of the clock.
    #[must_use]
    pub fn last_request_ns(&self) -> u64 {
        self.buckets.back().map_or(0, |last| last.at_ns)
    }

    /// Another limit has other ticks: re-records the requests under them.
    fn apply_limit(&mut self, limit: Limit) {
        if limit == self.limit {
            return;
        }
        self.limit = limit;
        self.used = 0;
        for bucket in std::mem::take(&mut self.buckets) {
            self.record(bucket);
        }
    }

    /// Rounds up, so that no slot becomes free early, and never below the last bucket.
    fn record(&mut self, bucket: Bucket) {
        // Saturates: views of other nodes' requests are not bounded by the quota.
        self.used = self.used.saturating_add(bucket.count);
        let at_ns = bucket
            .at_ns
            .div_ceil(self.tick_ns())
            .saturating_mul(self.tick_ns());
        match self.buckets.back_mut() {
            Some(last) if last.at_ns >= at_ns => last.count = last.count.saturating_add(bucket.count),
            _ => self.buckets.push_back(Bucket {
                at_ns,
                count: bucket.count,
            }),
        }
    }

    fn expire(&mut self, now: Duration) {
        let now_ns = nanoseconds(now);
        while let Some(first) = self.buckets.front().copied()
            && self.is_expired(&first, now_ns)
        {
            self.used = self.used.saturating_sub(first.count);
            self.buckets.pop_front();
        }
    }

    fn is_expired(&self, bucket: &Bucket, now_ns: u64) -> bool {
        self.expires_at_ns(bucket) <= now_ns
    }

    fn expires_at_ns(&self, bucket: &Bucket) -> u64 {
        bucket.at_ns.saturating_add(nanoseconds(self.length()))
    }

    fn status(&self, now: Duration) -> RateLimitStatus {
        RateLimitStatus {
            limit: self.limit,
            remaining: self.limit.quota.saturating_sub(self.used),
            next_slot_in: self.next_slot_in(now),
        }
    }

    /// After an operator lowered the quota more requests may count than it allows: a slot becomes free once
    /// the excess expired.
    fn next_slot_in(&self, now: Duration) -> Duration {
        let excess = self
            .used
            .saturating_add(1)
            .saturating_sub(self.limit.quota)
            .max(1);
        let mut expired: u32 = 0;
        let last_expiring = self.buckets.iter().find(|bucket| {
            expired = expired.saturating_add(bucket.count);
            expired >= excess
        });
        last_expiring.map_or(self.length(), |bucket| {
            Duration::from_nanos(self.expires_at_ns(bucket).saturating_sub(nanoseconds(now)))
        })
    }

    fn length(&self) -> Duration {
        Duration::from_secs(self.limit.window_s.into())
    }

    fn tick_ns(&self) -> u64 {
        if self.limit.quota <= RESOLUTION {
            return 1;
        }
        nanoseconds(self.length()).div_ceil(RESOLUTION.into())
    }
}

/// 64 bits hold the nanoseconds of 584 years.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
