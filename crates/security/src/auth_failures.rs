//! Failed authentications by client address.
//!
//! Failures are counted by address because their keys may belong to anyone; an IPv6 client counts by its /64,
//! the size of one subscriber's network. Above the limit further failures get another error, valid requests
//! do not: guessing from an address locks out no other client. Memory is bounded: when it is full, the
//! addresses that failed longest ago are evicted.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use vouchsafe_domain::limits::Limit;

use super::sliding_window::{Exhausted, RateLimitStatus, SlidingWindow};

/// Some 8 MB at the default limit.
pub const MAX_SOURCES: usize = 32_768;

/// A full map evicts a quarter at once, so that the cost for each new address stays low.
const EVICTION_DIVISOR: usize = 4;

/// The client of a failed authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientPrefix {
    V4(Ipv4Addr),
    /// The first 64 bits.
    V6([u16; 4]),
}

impl ClientPrefix {
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

impl fmt::Display for ClientPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::V4(address) => write!(f, "{address}"),
            Self::V6([a, b, c, d]) => write!(f, "{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)),
        }
    }
}

/// A request that counts like a failure until its outcome is known.
#[derive(Debug, Clone, Copy)]
pub struct Reservation {
    prefix: ClientPrefix,
    at_ns: u64,
}

#[derive(Debug)]
pub struct AuthFailures {
    limit: Limit,
    windows: HashMap<ClientPrefix, SlidingWindow>,
}

impl AuthFailures {
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            windows: HashMap::new(),
        }
    }

    /// Counts a failed request of this address.
    ///
    /// # Errors
    /// [`Exhausted`] above the limit: the client does not learn the reason of the failure, which is not
    /// counted.
    pub fn record(&mut self, address: IpAddr, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        let prefix = ClientPrefix::of(address);
        if self.windows.len() >= MAX_SOURCES && !self.windows.contains_key(&prefix) {
            self.evict_oldest(now);
        }
        let window = self.windows.entry(prefix);
        window
            .or_insert_with(|| SlidingWindow::new(self.limit))
            .try_acquire(self.limit, now)
    }

    /// Counts a request whose outcome is open like a failure. Returns what [`Self::release`] needs to take it
    /// back.
    ///
    /// # Errors
    /// [`Exhausted`]: too many requests of this address have failed or are open.
    pub fn reserve(&mut self, address: IpAddr, now: Duration) -> Result<Reservation, Exhausted> {
        self.record(address, now)?;
        let prefix = ClientPrefix::of(address);
        let at_ns = self
            .windows
            .get(&prefix)
            .map_or(0, SlidingWindow::last_request_ns);
        Ok(Reservation { prefix, at_ns })
    }

    /// Takes a request back whose outcome is known.
    pub fn release(&mut self, reservation: Reservation) {
        if let Some(window) = self.windows.get_mut(&reservation.prefix) {
            window.uncount(reservation.at_ns);
        }
    }

    /// Evicts addresses without a failure within the limit's window.
    pub fn evict_idle(&mut self, now: Duration) {
        self.windows.retain(|_, window| !window.is_idle(now));
    }

    #[must_use]
    pub fn source_count(&self) -> usize {
        self.windows.len()
    }

    fn evict_oldest(&mut self, now: Duration) {
        self.evict_idle(now);
        let excess = (self.windows.len() + MAX_SOURCES / EVICTION_DIVISOR).saturating_sub(MAX_SOURCES);
        let mut by_age: Vec<(u64, ClientPrefix)> = self
            .windows
            .iter()
            .map(|(prefix, window)| (window.last_request_ns(), *prefix))
            .collect();
        by_age.sort_unstable_by_key(|(last_ns, _)| *last_ns);
        for (_, prefix) in by_age.into_iter().take(excess) {
            self.windows.remove(&prefix);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit {
        quota: 5,
        window_s: 60,
    };
    const SECOND: Duration = Duration::from_secs(1);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn failure_over_quota_is_exhausted_until_the_first_expires() {
        let mut failures = AuthFailures::new(LIMIT);
        let (address_a, address_b) = (address("203.0.113.7"), address("203.0.113.8"));
        for n in 1..=5 {
            assert!(failures.record(address_a, n * SECOND).is_ok(), "{n}");
        }
        let Err(Exhausted(status)) = failures.record(address_a, 6 * SECOND) else {
            panic!("the sixth failure is within the limit")
        };
        assert_eq!(status.next_slot_in, 55 * SECOND);
        assert!(failures.record(address_b, 6 * SECOND).is_ok(), "another address");
        assert!(failures.record(address_a, 61 * SECOND).is_ok());
    }

    #[test]
    fn open_requests_and_failures_share_the_quota() {
        let mut failures = AuthFailures::new(LIMIT);
        let (address_a, now) = (address("203.0.113.7"), SECOND);
        failures.record(address_a, now).unwrap();
        let open: Vec<_> = (0..4)
            .map(|n| failures.reserve(address_a, now + n * SECOND))
            .collect();
        assert!(failures.reserve(address_a, 5 * SECOND).is_err());
        for reservation in open {
            failures.release(reservation.unwrap());
        }
        for n in 6..10 {
            assert!(failures.record(address_a, n * SECOND).is_ok(), "{n}");
        }
        assert!(failures.record(address_a, 10 * SECOND).is_err());
        // After its expiry there is nothing to take back.
        let late = failures.reserve(address_a, 62 * SECOND).unwrap();
        for n in 0..5 {
            failures.record(address_a, (130 + n) * SECOND).unwrap();
        }
        failures.release(late);
        assert!(failures.record(address_a, 136 * SECOND).is_err());
    }

    #[test]
    fn client_prefix_is_the_ipv4_address_or_the_ipv6_64() {
        for (first, second, same) in [
            ("203.0.113.7", "::ffff:203.0.113.7", true),
            ("203.0.113.7", "203.0.113.8", false),
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
            ("::ffff:203.0.113.7", "::ffff:203.0.113.8", false),
            ("::1", "0.0.0.1", false),
        ] {
            assert_eq!(
                ClientPrefix::of(address(first)) == ClientPrefix::of(address(second)),
                same,
                "{first} {second}"
            );
        }
    }

    #[test]
    fn client_prefix_is_shown_as_address_or_network() {
        let shown = |text| ClientPrefix::of(address(text)).to_string();
        assert_eq!(shown("::ffff:203.0.113.7"), "203.0.113.7");
        assert_eq!(shown("2001:db8:1:2:3::4"), "2001:db8:1:2::/64");
    }

    #[test]
    fn million_addresses_stay_in_bounded_memory() {
        let mut failures = AuthFailures::new(LIMIT);
        let mut max_count = 0;
        for n in 0..1_000_000_u32 {
            let address = Ipv6Addr::from(u128::from(n) << 64);
            let now = SECOND + n * Duration::from_micros(1);
            assert!(failures.record(address.into(), now).is_ok());
            max_count = max_count.max(failures.source_count());
        }
        assert_eq!(max_count, MAX_SOURCES);
        assert!(failures.source_count() > MAX_SOURCES / 2);
        failures.evict_idle(63 * SECOND);
        assert_eq!(failures.source_count(), 0);
    }

    #[test]
    fn oldest_failures_are_evicted_first() {
        let mut failures = AuthFailures::new(LIMIT);
        let early = address("203.0.113.7");
        let fill = |failures: &mut AuthFailures, from: u32, to: u32| {
            for n in from..to {
                let address = Ipv4Addr::from(n);
                assert!(
                    failures
                        .record(address.into(), SECOND + n * Duration::from_nanos(1))
                        .is_ok()
                );
            }
        };
        for n in 0..5 {
            assert!(failures.record(early, n * Duration::from_nanos(1)).is_ok());
        }
        let capacity = u32::try_from(MAX_SOURCES).unwrap() - 1;
        fill(&mut failures, 1, capacity + 1);
        assert_eq!(failures.source_count(), MAX_SOURCES);
        assert!(
            failures.record(early, 2 * SECOND).is_err(),
            "nothing was evicted yet"
        );
        fill(&mut failures, capacity + 1, capacity + 2);
        assert_eq!(
            failures.source_count(),
            MAX_SOURCES - MAX_SOURCES / EVICTION_DIVISOR + 1,
            "a quarter was evicted"
        );
        assert!(
            failures.record(early, 3 * SECOND).is_ok(),
            "the oldest was evicted first"
        );
        let last = Ipv4Addr::from(capacity);
        for _ in 0..4 {
            assert!(failures.record(last.into(), 3 * SECOND).is_ok());
        }
        assert!(
            failures.record(last.into(), 3 * SECOND).is_err(),
            "the newest was kept"
        );
    }
}
