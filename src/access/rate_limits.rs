//! Is there room for one more request of this kind by this key?
//!
//! The windows of one process, in memory. The rules: a window is made by an authenticated request alone, so that there
//! are no more of them than live credentials times classes; what has gone idle is cleared by house keeping; failures are
//! counted apart, by address, and a right request is not asked how often its address failed.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dashmap::DashMap;

use super::credential::ApiKeyHash;
use super::failures::Failures;
use super::limits::{Class, DefaultLimits, Limits};
use super::window::{Exhausted, Reading, Window};

/// Whose requests of which class are counted, under which limits of the partner.
#[derive(Debug, Clone, Copy)]
pub struct Drawer<'a> {
    /// The key that was proven.
    pub key_hash: ApiKeyHash,
    /// What it asks for.
    pub class: Class,
    /// The partner's limits, as of this request.
    pub limits: &'a Limits,
}

/// What was drawn of late. All methods take `&self`; none waits.
#[derive(Debug)]
pub struct RateLimits {
    defaults: DefaultLimits,
    windows: DashMap<(ApiKeyHash, Class), Window>,
    failures: Mutex<Failures>,
}

impl RateLimits {
    /// Nothing is drawn yet.
    #[must_use]
    pub fn new(defaults: DefaultLimits) -> Self {
        Self {
            defaults,
            windows: DashMap::new(),
            failures: Mutex::new(Failures::new(defaults.auth)),
        }
    }

    /// Counts an authenticated request, if there is room for it.
    ///
    /// # Errors
    /// [`Exhausted`] without room; then it is not counted.
    pub fn draw(&self, drawer: Drawer<'_>, now: Duration) -> Result<Reading, Exhausted> {
        let limit = self.defaults.with(drawer.limits, drawer.class);
        let window = self.windows.entry((drawer.key_hash, drawer.class));
        window.or_insert_with(|| Window::new(limit)).draw(limit, now)
    }

    /// Says how the window stands, and counts nothing.
    ///
    /// # Errors
    /// [`Exhausted`] when a request would not be let through.
    pub fn look(&self, drawer: Drawer<'_>, now: Duration) -> Result<Reading, Exhausted> {
        let limit = self.defaults.with(drawer.limits, drawer.class);
        match self.windows.get_mut(&(drawer.key_hash, drawer.class)) {
            Some(mut window) => window.look(limit, now),
            None => Window::new(limit).look(limit, now),
        }
    }

    /// Counts a request that failed to authenticate.
    ///
    /// # Errors
    /// [`Exhausted`] when too many from its address have failed before.
    pub fn fail(&self, address: IpAddr, now: Duration) -> Result<Reading, Exhausted> {
        self.failures().count(address, now)
    }

    /// Forgets what has come back. For house keeping.
    pub fn clear_idle(&self, now: Duration) {
        self.windows.retain(|_, window| !window.is_idle(now));
        self.failures().clear_idle(now);
    }

    /// How many windows there are: of keys, and of addresses that failed.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.windows.len(), self.failures().sources())
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::limits::Limit;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits() -> RateLimits {
        let limit = |quota| Limit { quota, window_s: 60 };
        RateLimits::new(DefaultLimits {
            orders: limit(2),
            general: limit(3),
            auth: limit(1),
            vouchers: limit(4),
        })
    }

    fn key(byte: u8) -> ApiKeyHash {
        ApiKeyHash::from_bytes([byte; 32])
    }

    const NONE: Limits = Limits {
        orders: None,
        general: None,
        auth: None,
        vouchers: None,
    };

    fn drawer(byte: u8, class: Class, limits: &Limits) -> Drawer<'_> {
        Drawer {
            key_hash: key(byte),
            class,
            limits,
        }
    }

    #[test]
    fn each_key_and_class_has_a_quota_of_its_own() {
        let limits = limits();
        for byte in [1, 2] {
            for (class, quota) in [
                (Class::Orders, 2),
                (Class::General, 3),
                (Class::Auth, 1),
                (Class::Vouchers, 4),
            ] {
                for n in 0..quota {
                    assert!(limits.look(drawer(byte, class, &NONE), SECOND).is_ok());
                    let reading = limits.draw(drawer(byte, class, &NONE), SECOND).unwrap();
                    assert_eq!(reading.remaining, quota - n - 1, "{class:?}");
                }
                assert!(limits.look(drawer(byte, class, &NONE), SECOND).is_err());
                assert!(limits.draw(drawer(byte, class, &NONE), SECOND).is_err());
            }
        }
    }

    #[test]
    fn the_limit_of_the_partner_is_that_of_the_request() {
        let limits = limits();
        let own = |quota| Limits {
            orders: Some(Limit { quota, window_s: 60 }),
            ..NONE
        };
        let (five, one) = (own(5), own(1));
        for n in 0..5 {
            let reading = limits.draw(drawer(1, Class::Orders, &five), SECOND).unwrap();
            assert_eq!(reading.remaining, 4 - n);
        }
        assert!(limits.draw(drawer(1, Class::Orders, &five), SECOND).is_err());
        assert!(
            limits.draw(drawer(1, Class::Orders, &one), 60 * SECOND).is_err(),
            "lowered, with five held"
        );
        assert!(limits.draw(drawer(1, Class::Orders, &one), 61 * SECOND).is_ok());
    }

    #[test]
    fn looking_and_failing_make_no_window_of_a_key_and_idle_ones_are_cleared() {
        let limits = limits();
        for n in 0..1_000_000_u32 {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&n.to_be_bytes());
            let stranger = Drawer {
                key_hash: ApiKeyHash::from_bytes(bytes),
                class: Class::General,
                limits: &NONE,
            };
            assert!(limits.look(stranger, SECOND).is_ok());
            let _ = limits.fail("203.0.113.7".parse().unwrap(), SECOND);
        }
        assert_eq!(limits.counts(), (0, 1));
        assert!(limits.draw(drawer(1, Class::Orders, &NONE), 2 * SECOND).is_ok());
        limits.clear_idle(61 * SECOND);
        assert_eq!(limits.counts(), (1, 0));
        limits.clear_idle(62 * SECOND);
        assert_eq!(limits.counts(), (0, 0));
    }
}
