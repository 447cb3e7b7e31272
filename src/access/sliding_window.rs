//! May this request pass, and when is there room again?
//!
//! A sliding window: in any span of `window_s` seconds at most `quota` requests pass, wherever the span begins. A unit
//! that a request drew comes back `window_s` after it, and never sooner.
//!
//! Every draw is remembered until it comes back. Up to a quota of [`RESOLUTION`] each is remembered by itself, and the
//! window is exact. Above, the window is cut into that many ticks, the draws of a tick are one entry, and a unit comes
//! back at most a tick late; so a window holds some four thousand entries of 16 bytes at most, whatever the quota.
//!
//! Time is the monotonic time of the process's clock, as an argument.

use std::collections::VecDeque;
use std::time::Duration;

use super::limits::Limit;

/// Into how many ticks a window is cut, and up to which quota each draw is remembered by itself.
pub const RESOLUTION: u32 = 4_096;

/// The draws of a moment.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    at_ns: u64,
    count: u32,
}

/// What was drawn under one limit, as far as it has not come back.
#[derive(Debug)]
pub struct SlidingWindow {
    limit: Limit,
    buckets: VecDeque<Bucket>,
    /// The sum of their counts.
    used: u32,
}

/// How a window stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitStatus {
    /// The limit in force.
    pub limit: Limit,
    /// How many requests would pass now.
    pub remaining: u32,
    /// In how long there is room for one more than that; the whole window, where nothing is drawn.
    pub next_slot_in: Duration,
}

/// There is no room: a request after [`Reading::more_in`] passes if nobody else draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted(pub RateLimitStatus);

impl SlidingWindow {
    /// A window from which nothing is drawn.
    #[must_use]
    pub const fn new(limit: Limit) -> Self {
        Self {
            limit,
            buckets: VecDeque::new(),
            used: 0,
        }
    }

    /// Lets a request pass and counts it, or refuses it and does not count it. What was drawn under another limit counts
    /// under this one.
    ///
    /// # Errors
    /// [`Exhausted`] without room for it.
    pub fn try_acquire(&mut self, limit: Limit, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        self.peek(limit, now)?;
        self.record(Bucket {
            at_ns: nanoseconds(now),
            count: 1,
        });
        Ok(self.status(now))
    }

    /// Says whether a request would pass, and draws nothing.
    ///
    /// # Errors
    /// [`Exhausted`] without room for it.
    pub fn peek(&mut self, limit: Limit, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        self.apply_limit(limit);
        self.expire(now);
        let reading = self.status(now);
        if reading.remaining == 0 {
            return Err(Exhausted(reading));
        }
        Ok(reading)
    }

    /// Whether everything drawn has come back, so that nothing is lost with it.
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

    /// Another limit has other ticks: what is held is remembered anew under them.
    fn apply_limit(&mut self, limit: Limit) {
        if limit == self.limit {
            return;
        }
        self.limit = limit;
        self.used = 0;
        for hits in std::mem::take(&mut self.buckets) {
            self.record(hits);
        }
    }

    /// Rounded up, so that nothing comes back early; and never before what is remembered already.
    fn record(&mut self, hits: Bucket) {
        self.used += hits.count;
        let at_ns = hits.at_ns.div_ceil(self.tick_ns()).saturating_mul(self.tick_ns());
        match self.buckets.back_mut() {
            Some(last) if last.at_ns >= at_ns => last.count += hits.count,
            _ => self.buckets.push_back(Bucket {
                at_ns,
                count: hits.count,
            }),
        }
    }

    fn expire(&mut self, now: Duration) {
        let now_ns = nanoseconds(now);
        while let Some(first) = self.buckets.front().copied()
            && self.is_expired(&first, now_ns)
        {
            self.used -= first.count;
            self.buckets.pop_front();
        }
    }

    fn is_expired(&self, hits: &Bucket, now_ns: u64) -> bool {
        self.expires_at_ns(hits) <= now_ns
    }

    fn expires_at_ns(&self, hits: &Bucket) -> u64 {
        hits.at_ns.saturating_add(nanoseconds(self.length()))
    }

    fn status(&self, now: Duration) -> RateLimitStatus {
        RateLimitStatus {
            limit: self.limit,
            remaining: self.limit.quota.saturating_sub(self.used),
            next_slot_in: self.next_slot_in(now),
        }
    }

    /// More may be held than the quota, after an operator has lowered it: then room comes only when the excess is back.
    fn next_slot_in(&self, now: Duration) -> Duration {
        let awaited = (self.used + 1).saturating_sub(self.limit.quota).max(1);
        let mut back = 0;
        let last_awaited = self.buckets.iter().find(|hits| {
            back += hits.count;
            back >= awaited
        });
        last_awaited.map_or(self.length(), |hits| {
            Duration::from_nanos(self.expires_at_ns(hits).saturating_sub(nanoseconds(now)))
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
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
