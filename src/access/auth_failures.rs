//! Who fails to authenticate, and how often?
//!
//! The rule: failures are counted by the client's address, since their keys may be anybody's; an IPv6 client is its /64,
//! which is what one subscriber has. Past the limit a failure is told apart from the first ones, and a right request is
//! not: who guesses from an address locks nobody out. Memory is bounded, however many addresses fail: where there is no
//! room, those that have failed longest ago are forgotten.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::limits::Limit;
use super::sliding_window::{Exhausted, RateLimitStatus, SlidingWindow};

/// Most addresses whose failures are remembered: some 8 MB at the default limit, and more than fail by mistake.
pub const MAX_SOURCES: usize = 32_768;

/// What part of them makes room at once, so that each new one costs little: a quarter.
const EVICTION_DIVISOR: usize = 4;

/// Where failures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ClientPrefix {
    V4(Ipv4Addr),
    /// The first 64 bits.
    V6([u16; 4]),
}

impl ClientPrefix {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

/// The failures of late, by where they came from.
#[derive(Debug)]
pub struct AuthFailures {
    limit: Limit,
    windows: HashMap<ClientPrefix, SlidingWindow>,
}

impl AuthFailures {
    /// Nobody has failed yet.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            windows: HashMap::new(),
        }
    }

    /// A request from this address failed.
    ///
    /// # Errors
    /// [`Exhausted`] when so many have failed before it that it is not to be told why, and is not counted.
    pub fn record(&mut self, address: IpAddr, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        let source = ClientPrefix::of(address);
        if self.windows.len() >= MAX_SOURCES && !self.windows.contains_key(&source) {
            self.evict_oldest(now);
        }
        let window = self.windows.entry(source);
        window
            .or_insert_with(|| SlidingWindow::new(self.limit))
            .try_acquire(self.limit, now)
    }

    /// Forgets who has not failed within the limit's window.
    pub fn evict_idle(&mut self, now: Duration) {
        self.windows.retain(|_, window| !window.is_idle(now));
    }

    /// How many addresses are remembered.
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
            .map(|(source, window)| (window.last_request_ns(), *source))
            .collect();
        by_age.sort_unstable_by_key(|(last_ns, _)| *last_ns);
        for (_, source) in by_age.into_iter().take(excess) {
            self.windows.remove(&source);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

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
    fn the_sixth_failure_of_an_address_is_too_many_until_the_first_is_a_minute_old() {
        let mut failures = AuthFailures::new(LIMIT);
        let (here, there) = (address("203.0.113.7"), address("203.0.113.8"));
        for n in 1..=5 {
            assert!(failures.record(here, n * SECOND).is_ok(), "{n}");
        }
        let Err(Exhausted(reading)) = failures.record(here, 6 * SECOND) else {
            panic!("a sixth")
        };
        assert_eq!(reading.next_slot_in, 55 * SECOND);
        assert!(failures.record(there, 6 * SECOND).is_ok(), "another address");
        assert!(failures.record(here, 61 * SECOND).is_ok());
    }

    #[test]
    fn an_address_is_ipv4_itself_or_the_64_of_ipv6() {
        for (one, other, same) in [
            ("203.0.113.7", "::ffff:203.0.113.7", true),
            ("203.0.113.7", "203.0.113.8", false),
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
            ("::ffff:203.0.113.7", "::ffff:203.0.113.8", false),
            ("::1", "0.0.0.1", false),
        ] {
            assert_eq!(
                ClientPrefix::of(address(one)) == ClientPrefix::of(address(other)),
                same,
                "{one} {other}"
            );
        }
    }

    #[test]
    fn a_million_addresses_take_the_room_of_the_last_of_them() {
        let mut failures = AuthFailures::new(LIMIT);
        let mut most = 0;
        for n in 0..1_000_000_u32 {
            let address = Ipv6Addr::from(u128::from(n) << 64);
            let now = SECOND + n * Duration::from_micros(1);
            assert!(failures.record(address.into(), now).is_ok());
            most = most.max(failures.source_count());
        }
        assert_eq!(most, MAX_SOURCES);
        assert!(failures.source_count() > MAX_SOURCES / 2);
        failures.evict_idle(63 * SECOND);
        assert_eq!(failures.source_count(), 0);
    }

    #[test]
    fn who_failed_last_is_remembered_longest() {
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
        let room = u32::try_from(MAX_SOURCES).unwrap() - 1;
        fill(&mut failures, 1, room + 1);
        assert_eq!(failures.source_count(), MAX_SOURCES);
        assert!(failures.record(early, 2 * SECOND).is_err(), "nobody had to go yet");
        fill(&mut failures, room + 1, room + 2);
        assert_eq!(
            failures.source_count(),
            MAX_SOURCES - MAX_SOURCES / EVICTION_DIVISOR + 1,
            "a quarter made room"
        );
        assert!(
            failures.record(early, 3 * SECOND).is_ok(),
            "it was the first to go"
        );
        let last = Ipv4Addr::from(room);
        for _ in 0..4 {
            assert!(failures.record(last.into(), 3 * SECOND).is_ok());
        }
        assert!(failures.record(last.into(), 3 * SECOND).is_err(), "it was kept");
    }
}
