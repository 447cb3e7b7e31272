//! Rate limiter: in-memory sliding windows per API key and request class.
//!
//! Only authenticated requests create windows, so their number is bounded by live credentials times classes;
//! housekeeping evicts idle ones. Failed authentications are counted separately, per client address, and do not affect
//! valid requests.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use vouchsafe_domain::limits::{DefaultLimits, Limits, RequestClass};

use super::auth_failures::AuthFailures;
use super::credential::ApiKeyHash;
use super::sliding_window::{Exhausted, RateLimitStatus, SlidingWindow};

/// The window that a request counts against, with the partner's own limits.
#[derive(Debug, Clone, Copy)]
pub struct RateLimitKey<'a> {
    /// The authenticated key.
    pub key_hash: ApiKeyHash,
    pub class: RequestClass,
    /// The partner's limits at the time of this request.
    pub limits: &'a Limits,
}

#[derive(Debug)]
pub struct RateLimiter {
    defaults: DefaultLimits,
    windows: DashMap<(ApiKeyHash, RequestClass), SlidingWindow>,
    failures: Mutex<AuthFailures>,
}

impl RateLimiter {
    #[must_use]
    pub fn new(defaults: DefaultLimits) -> Self {
        Self {
            defaults,
            windows: DashMap::new(),
            failures: Mutex::new(AuthFailures::new(defaults.auth)),
        }
    }

    /// Counts an authenticated request unless its window is exhausted.
    ///
    /// # Errors
    /// [`Exhausted`]: the request is over the limit and was not counted.
    pub fn try_acquire(
        &self,
        limit_key: RateLimitKey<'_>,
        now: Duration,
    ) -> Result<RateLimitStatus, Exhausted> {
        let limit = self.defaults.effective_limit(limit_key.limits, limit_key.class);
        let window = self.windows.entry((limit_key.key_hash, limit_key.class));
        window
            .or_insert_with(|| SlidingWindow::new(limit))
            .try_acquire(limit, now)
    }

    /// Returns the status of a window without counting a request.
    ///
    /// # Errors
    /// [`Exhausted`] if a request would be refused.
    pub fn peek(&self, limit_key: RateLimitKey<'_>, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        let limit = self.defaults.effective_limit(limit_key.limits, limit_key.class);
        match self.windows.get_mut(&(limit_key.key_hash, limit_key.class)) {
            Some(mut window) => window.peek(limit, now),
            None => SlidingWindow::new(limit).peek(limit, now),
        }
    }

    /// Counts a failed authentication.
    ///
    /// # Errors
    /// [`Exhausted`] if too many requests of this address failed before.
    pub fn record_auth_failure(&self, address: IpAddr, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        self.lock_failures().record(address, now)
    }

    /// Evicts windows without recent requests. Called by housekeeping.
    pub fn evict_idle(&self, now: Duration) {
        self.windows.retain(|_, window| !window.is_idle(now));
        self.lock_failures().evict_idle(now);
    }

    /// The number of windows of keys, and of client addresses with failures.
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
    use vouchsafe_domain::limits::Limit;

    use super::*;

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

    fn limit_key(byte: u8, class: RequestClass, limits: &Limits) -> RateLimitKey<'_> {
        RateLimitKey {
            key_hash: key(byte),
            class,
            limits,
        }
    }

    #[test]
    fn quota_is_counted_per_key_and_class() {
        let limits = limits();
        for byte in [1, 2] {
            for (class, quota) in [
                (RequestClass::Orders, 2),
                (RequestClass::General, 3),
                (RequestClass::Auth, 1),
                (RequestClass::Vouchers, 4),
            ] {
                for n in 0..quota {
                    assert!(limits.peek(limit_key(byte, class, &NONE), SECOND).is_ok());
                    let status = limits.try_acquire(limit_key(byte, class, &NONE), SECOND).unwrap();
                    assert_eq!(status.remaining, quota - n - 1, "{class:?}");
                }
                assert!(limits.peek(limit_key(byte, class, &NONE), SECOND).is_err());
                assert!(limits.try_acquire(limit_key(byte, class, &NONE), SECOND).is_err());
            }
        }
    }

    #[test]
    fn limit_of_the_partner_overrides_the_default() {
        let limits = limits();
        let own = |quota| Limits {
            orders: Some(Limit { quota, window_s: 60 }),
            ..NONE
        };
        let (five, one) = (own(5), own(1));
        for n in 0..5 {
            let status = limits
                .try_acquire(limit_key(1, RequestClass::Orders, &five), SECOND)
                .unwrap();
            assert_eq!(status.remaining, 4 - n);
        }
        assert!(
            limits
                .try_acquire(limit_key(1, RequestClass::Orders, &five), SECOND)
                .is_err()
        );
        assert!(
            limits
                .try_acquire(limit_key(1, RequestClass::Orders, &one), 60 * SECOND)
                .is_err(),
            "the lowered quota is exceeded by five"
        );
        assert!(
            limits
                .try_acquire(limit_key(1, RequestClass::Orders, &one), 61 * SECOND)
                .is_ok()
        );
    }

    #[test]
    fn peek_and_failures_create_no_key_window() {
        let limits = limits();
        for n in 0..1_000_000_u32 {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&n.to_be_bytes());
            let unknown = RateLimitKey {
                key_hash: ApiKeyHash::from_bytes(bytes),
                class: RequestClass::General,
                limits: &NONE,
            };
            assert!(limits.peek(unknown, SECOND).is_ok());
            let _ = limits.record_auth_failure("203.0.113.7".parse().unwrap(), SECOND);
        }
        assert_eq!(limits.window_counts(), (0, 1));
        assert!(
            limits
                .try_acquire(limit_key(1, RequestClass::Orders, &NONE), 2 * SECOND)
                .is_ok()
        );
        limits.evict_idle(61 * SECOND);
        assert_eq!(limits.window_counts(), (1, 0));
        limits.evict_idle(62 * SECOND);
        assert_eq!(limits.window_counts(), (0, 0));
    }
}
