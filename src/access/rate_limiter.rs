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
use super::auth_failures::AuthFailures;
use super::limits::{RequestClass, DefaultLimits, Limits};
use super::sliding_window::{Exhausted, RateLimitStatus, SlidingWindow};

/// Whose requests of which class are counted, under which limits of the partner.
#[derive(Debug, Clone, Copy)]
pub struct RateLimitKey<'a> {
    /// The key that was proven.
    pub key_hash: ApiKeyHash,
    /// What it asks for.
    pub class: RequestClass,
    /// The partner's limits, as of this request.
    pub limits: &'a Limits,
}

/// What was drawn of late. All methods take `&self`; none waits.
#[derive(Debug)]
pub struct RateLimiter {
    defaults: DefaultLimits,
    windows: DashMap<(ApiKeyHash, RequestClass), SlidingWindow>,
    failures: Mutex<AuthFailures>,
}

impl RateLimiter {
    /// Nothing is drawn yet.
    #[must_use]
    pub fn new(defaults: DefaultLimits) -> Self {
        Self {
            defaults,
            windows: DashMap::new(),
            failures: Mutex::new(AuthFailures::new(defaults.auth)),
        }
    }

    /// Counts an authenticated request, if there is room for it.
    ///
    /// # Errors
    /// [`Exhausted`] without room; then it is not counted.
    pub fn try_acquire(&self, drawer: RateLimitKey<'_>, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        let limit = self.defaults.effective_limit(drawer.limits, drawer.class);
        let window = self.windows.entry((drawer.key_hash, drawer.class));
        window.or_insert_with(|| SlidingWindow::new(limit)).try_acquire(limit, now)
    }

    /// Says how the window stands, and counts nothing.
    ///
    /// # Errors
    /// [`Exhausted`] when a request would not be let through.
    pub fn peek(&self, drawer: RateLimitKey<'_>, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        let limit = self.defaults.effective_limit(drawer.limits, drawer.class);
        match self.windows.get_mut(&(drawer.key_hash, drawer.class)) {
            Some(mut window) => window.peek(limit, now),
            None => SlidingWindow::new(limit).peek(limit, now),
        }
    }

    /// Counts a request that failed to authenticate.
    ///
    /// # Errors
    /// [`Exhausted`] when too many from its address have failed before.
    pub fn record_auth_failure(&self, address: IpAddr, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        self.lock_failures().record(address, now)
    }

    /// Forgets what has come back. For house keeping.
    pub fn evict_idle(&self, now: Duration) {
        self.windows.retain(|_, window| !window.is_idle(now));
        self.lock_failures().evict_idle(now);
    }

    /// How many windows there are: of keys, and of addresses that failed.
    #[must_use]
    pub fn window_counts(&self) -> (usize, usize) {
        (self.windows.len(), self.lock_failures().source_count())
    }

    fn lock_failures(&self) -> MutexGuard<'_, AuthFailures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::limits::Limit;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits() -> RateLimiter {
        let limit = |quota| Limit { quota, window_s: 60 };
        RateLimiter::new(DefaultLimits {
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

    fn drawer(byte: u8, class: RequestClass, limits: &Limits) -> RateLimitKey<'_> {
        RateLimitKey {
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
                (RequestClass::Orders, 2),
                (RequestClass::General, 3),
                (RequestClass::Auth, 1),
                (RequestClass::Vouchers, 4),
            ] {
                for n in 0..quota {
                    assert!(limits.peek(drawer(byte, class, &NONE), SECOND).is_ok());
                    let reading = limits.try_acquire(drawer(byte, class, &NONE), SECOND).unwrap();
                    assert_eq!(reading.remaining, quota - n - 1, "{class:?}");
                }
                assert!(limits.peek(drawer(byte, class, &NONE), SECOND).is_err());
                assert!(limits.try_acquire(drawer(byte, class, &NONE), SECOND).is_err());
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
            let reading = limits.try_acquire(drawer(1, RequestClass::Orders, &five), SECOND).unwrap();
            assert_eq!(reading.remaining, 4 - n);
        }
        assert!(limits.try_acquire(drawer(1, RequestClass::Orders, &five), SECOND).is_err());
        assert!(
            limits.try_acquire(drawer(1, RequestClass::Orders, &one), 60 * SECOND).is_err(),
            "lowered, with five held"
        );
        assert!(limits.try_acquire(drawer(1, RequestClass::Orders, &one), 61 * SECOND).is_ok());
    }

    #[test]
    fn looking_and_failing_make_no_window_of_a_key_and_idle_ones_are_cleared() {
        let limits = limits();
        for n in 0..1_000_000_u32 {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&n.to_be_bytes());
            let stranger = RateLimitKey {
                key_hash: ApiKeyHash::from_bytes(bytes),
                class: RequestClass::General,
                limits: &NONE,
            };
            assert!(limits.peek(stranger, SECOND).is_ok());
            let _ = limits.record_auth_failure("203.0.113.7".parse().unwrap(), SECOND);
        }
        assert_eq!(limits.window_counts(), (0, 1));
        assert!(limits.try_acquire(drawer(1, RequestClass::Orders, &NONE), 2 * SECOND).is_ok());
        limits.evict_idle(61 * SECOND);
        assert_eq!(limits.window_counts(), (1, 0));
        limits.evict_idle(62 * SECOND);
        assert_eq!(limits.window_counts(), (0, 0));
    }
}
