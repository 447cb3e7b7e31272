//! Rate-limit window of a deployment: this node's requests, and its view of those of the other nodes.
//!
//! The database counts the requests of all nodes in buckets. Each node publishes its own requests about once
//! a second and receives the counts of all; in between it admits requests on its own:
//!
//! | Nodes | Requests that a node admits between two exchanges |
//! |---|---|
//! | this one alone | all that remain: no other node counts against the window |
//! | N | 1/(10·N) of what remains; the database decides on the first request of a window and on each beyond (an *exchange*) |
//! | N, and the database does not answer | 1/N of what remains, rounded up |
//!
//! The nodes together admit at most a tenth of the quota that the database does not know of, however old
//! their views are: each admits at most 1/(10·N) of the quota, and the database admits nothing beyond the
//! quota. Near the quota, and for quotas below 10·N, each request is decided by the database. A bucket counts
//! until its last request expires, so a slot becomes free at most 1/64 of the window late.

use std::time::Duration;

use vouchsafe_domain::limits::Limit;

use super::sliding_window::{Bucket, Exhausted, RateLimitStatus, SlidingWindow, nanoseconds};

/// Buckets of a window in publications and in the database.
pub const BUCKETS: u64 = 64;

/// Part of the remaining quota that the nodes together admit without an exchange.
const UNPUBLISHED_PART: u64 = 10;

/// Who else admits requests under the same limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharing {
    /// Live nodes, this one included.
    pub nodes: u32,
    /// The database does not answer.
    pub is_degraded: bool,
}

/// The decision about a request that the limit does not refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The request was counted.
    Admitted(RateLimitStatus),
    /// The request was not counted: the database decides.
    ExchangeRequired,
}

/// Requests of this node on their way to the database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "a publication is confirmed or restored"]
pub struct Publication(Vec<Bucket>);

impl Publication {
    /// Age and number of the requests, oldest first. Microseconds.
    pub fn ages_us(&self, now: Duration) -> impl Iterator<Item = (i64, u32)> {
        let now_ns = nanoseconds(now);
        let age_us =
            move |at_ns: u64| i64::try_from(now_ns.saturating_sub(at_ns) / 1_000).unwrap_or(i64::MAX);
        self.0
            .iter()
            .map(move |bucket| (age_us(bucket.at_ns), bucket.count))
    }

    fn count(&self) -> u32 {
        self.0.iter().map(|bucket| bucket.count).sum()
    }
}

/// Requests that the database counts: ages in microseconds, negative for a bucket that is not over, and
/// numbers; oldest first.
pub type UsageView = Vec<(i64, u32)>;

#[derive(Debug)]
pub struct SharedWindow {
    /// The requests of the last view, and this node's own since then.
    known: SlidingWindow,
    /// This node's requests that it has not published, oldest first.
    unpublished: Vec<Bucket>,
    /// The number of requests in publications that were neither confirmed nor restored.
    in_flight: u32,
    /// Whether a view of the other nodes' requests was received.
    has_view: bool,
}

impl SharedWindow {
    #[must_use]
    pub const fn new(limit: Limit) -> Self {
        Self {
            known: SlidingWindow::new(limit),
            unpublished: Vec::new(),
            in_flight: 0,
            has_view: false,
        }
    }

    /// Counts a request if this node may decide on it alone.
    ///
    /// # Errors
    /// [`Exhausted`]: the request was not counted.
    pub fn try_acquire(
        &mut self,
        limit: Limit,
        sharing: Sharing,
        now: Duration,
    ) -> Result<Admission, Exhausted> {
        if sharing.is_degraded {
            return self
                .try_acquire_alone(limit, sharing.nodes, now)
                .map(Admission::Admitted);
        }
        let status = self.peek(limit, now)?;
        match self.has_share(status, sharing, now) {
            true => Ok(Admission::Admitted(self.admit(now))),
            false => Ok(Admission::ExchangeRequired),
        }
    }

    /// Counts a request if it is within this node's part of what remains, without the database.
    ///
    /// # Errors
    /// [`Exhausted`]: the request was not counted.
    pub fn try_acquire_alone(
        &mut self,
        limit: Limit,
        nodes: u32,
        now: Duration,
    ) -> Result<RateLimitStatus, Exhausted> {
        let status = self.peek(limit, now)?;
        let sharing = Sharing {
            nodes,
            is_degraded: true,
        };
        match self.has_share(status, sharing, now) {
            true => Ok(self.admit(now)),
            false => Err(Exhausted(RateLimitStatus {
                remaining: 0,
                ..status
            })),
        }
    }

    fn admit(&mut self, now: Duration) -> RateLimitStatus {
        self.record(nanoseconds(now));
        self.known.count(now)
    }

    /// Returns the status without counting a request.
    ///
    /// # Errors
    /// [`Exhausted`] if the known requests use up the quota.
    pub fn peek(&mut self, limit: Limit, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        self.known.peek(limit, now)
    }

    /// The limit of the last request.
    #[must_use]
    pub const fn limit(&self) -> Limit {
        self.known.limit()
    }

    #[must_use]
    pub const fn has_unpublished(&self) -> bool {
        !self.unpublished.is_empty()
    }

    /// Whether no request counts any more, so that the window can be dropped.
    #[must_use]
    pub fn is_idle(&self, now: Duration) -> bool {
        self.in_flight == 0 && self.known.is_idle(now)
    }

    /// Takes the requests that the database does not know of.
    pub fn begin_publication(&mut self) -> Publication {
        let publication = Publication(std::mem::take(&mut self.unpublished));
        self.in_flight = self.in_flight.saturating_add(publication.count());
        publication
    }

    /// The database has counted the requests.
    pub fn confirm(&mut self, publication: &Publication) {
        self.in_flight = self.in_flight.saturating_sub(publication.count());
    }

    /// The database has probably not counted the requests. If it has, they count twice until they expire.
    pub fn restore(&mut self, publication: Publication) {
        self.confirm(&publication);
        self.unpublished.splice(0..0, publication.0);
    }

    /// Replaces what is known by what the database counts and this node has not published.
    pub fn apply_view(&mut self, view: &[(i64, u32)], now: Duration) {
        let now_ns = nanoseconds(now);
        let to_bucket = |(age_us, count): &(i64, u32)| {
            let age_ns = age_us.unsigned_abs().saturating_mul(1_000);
            let at_ns = match *age_us < 0 {
                true => now_ns.saturating_add(age_ns),
                false => now_ns.saturating_sub(age_ns),
            };
            Bucket { at_ns, count: *count }
        };
        let mut requests: Vec<Bucket> = view.iter().map(to_bucket).collect();
        requests.extend(&self.unpublished);
        requests.sort_by_key(|bucket| bucket.at_ns);
        self.known.replace(requests.into_iter());
        self.has_view = true;
    }

    /// Whether this node may admit one more request before its next exchange. What remained at the last one
    /// is what remains now and what this node has admitted since.
    fn has_share(&mut self, status: RateLimitStatus, sharing: Sharing, now: Duration) -> bool {
        let nodes = u64::from(sharing.nodes);
        if nodes <= 1 {
            return true;
        }
        self.forget_expired(now);
        let unpublished = self
            .unpublished
            .iter()
            .map(|bucket| u64::from(bucket.count))
            .sum::<u64>();
        let admitted = unpublished + u64::from(self.in_flight);
        let remained = (u64::from(status.remaining) + admitted).min(status.limit.quota.into());
        match sharing.is_degraded {
            true => admitted * nodes < remained,
            false => self.has_view && (admitted + 1) * nodes * UNPUBLISHED_PART <= remained,
        }
    }

    /// Requests within a bucket's length are published as one bucket, at the time of the last.
    fn record(&mut self, now_ns: u64) {
        let length_ns = (u64::from(self.limit().window_s) * 1_000_000_000 / BUCKETS).max(1);
        match self.unpublished.last_mut() {
            Some(last) if last.at_ns / length_ns == now_ns / length_ns => {
                last.at_ns = now_ns;
                last.count = last.count.saturating_add(1);
            }
            _ => self.unpublished.push(Bucket {
                at_ns: now_ns,
                count: 1,
            }),
        }
    }

    /// Nothing else removes them without a database.
    fn forget_expired(&mut self, now: Duration) {
        let length = Duration::from_secs(self.limit().window_s.into());
        let oldest_ns = nanoseconds(now.saturating_sub(length));
        let is_expired = |first: &Bucket| first.at_ns <= oldest_ns;
        if self.unpublished.first().is_some_and(is_expired) {
            self.unpublished.retain(|bucket| !is_expired(bucket));
        }
    }
}

#[cfg(test)]
mod tests;
