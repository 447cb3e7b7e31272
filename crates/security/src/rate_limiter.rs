//! Rate limiter: sliding windows per family of credentials and request class, in memory.
//!
//! A credential and those that came from it by rotation share their windows, so a rotation grants no further
//! requests. Several nodes share the quota: see [`super::shared_window`]. A partner with a ceiling has
//! windows of all its credentials together.
//!
//! Only authenticated requests create windows, so their number is bounded by live credentials and partners,
//! times classes; housekeeping evicts idle ones. Failed authentications are counted separately, per client
//! address and node, and do not affect valid requests.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use parking_lot::{Mutex, MutexGuard};
use uuid::Uuid;
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_domain::limits::{DefaultLimits, Limit, Limits, MAX_WINDOW_S, RequestClass};

use super::auth_failures::{AuthFailures, Reservation};
use super::registry::Caller;
use super::shared_window::{Admission, Publication, SharedWindow, Sharing, UsageView};
use super::sliding_window::{Exhausted, RateLimitStatus};

/// Added to the process's clock: requests that other nodes counted may be older than the process.
const CLOCK_OFFSET: Duration = Duration::from_secs(2 * MAX_WINDOW_S as u64);

/// The owner and the class whose requests share a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WindowKey {
    /// A family of credentials, by its first one, or a partner with all its credentials.
    pub owner_id: Uuid,
    pub class: RequestClass,
}

/// A window that a request counts against, with its limit at the time of this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitKey {
    pub window: WindowKey,
    pub limit: Limit,
}

/// The windows that a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitKeys {
    /// Key of the credential's family.
    pub own: RateLimitKey,
    /// Key of all credentials of the partner, if it has a ceiling.
    pub ceiling: Option<RateLimitKey>,
}

/// Requests of this node for the database.
#[derive(Debug)]
#[must_use = "a publication is confirmed or restored"]
pub struct WindowPublication {
    pub window: WindowKey,
    pub limit: Limit,
    requests: Publication,
    /// Ages at the time of the publication.
    ages_us: UsageView,
}

impl WindowPublication {
    /// Age in microseconds and number of the requests.
    #[must_use]
    pub fn ages_us(&self) -> &[(i64, u32)] {
        &self.ages_us
    }
}

#[derive(Debug)]
pub struct RateLimiter {
    defaults: DefaultLimits,
    windows: DashMap<WindowKey, SharedWindow>,
    failures: Mutex<AuthFailures>,
    nodes: AtomicU32,
    is_degraded: AtomicBool,
}

impl RateLimiter {
    /// Creates the limiter of a node that is alone.
    #[must_use]
    pub fn new(defaults: DefaultLimits) -> Self {
        Self {
            defaults,
            windows: DashMap::new(),
            failures: Mutex::new(AuthFailures::new(defaults.auth)),
            nodes: AtomicU32::new(1),
            is_degraded: AtomicBool::new(false),
        }
    }

    /// Counts an authenticated request unless its window is exhausted or the database decides.
    ///
    /// # Errors
    /// [`Exhausted`]: the request is over the limit and was not counted.
    pub fn try_acquire(&self, limit_key: RateLimitKey, now: Duration) -> Result<Admission, Exhausted> {
        let RateLimitKey { window, limit } = limit_key;
        let window = self.windows.entry(window);
        window.or_insert_with(|| SharedWindow::new(limit)).try_acquire(
            limit,
            self.sharing(),
            now + CLOCK_OFFSET,
        )
    }

    /// Decides on a request for which the database was asked and did not answer.
    ///
    /// # Errors
    /// [`Exhausted`]: the request is over this node's part of the limit and was not counted.
    pub fn try_acquire_alone(
        &self,
        limit_key: RateLimitKey,
        now: Duration,
    ) -> Result<RateLimitStatus, Exhausted> {
        let RateLimitKey { window, limit } = limit_key;
        let window = self.windows.entry(window);
        window
            .or_insert_with(|| SharedWindow::new(limit))
            .try_acquire_alone(limit, self.sharing().nodes, now + CLOCK_OFFSET)
    }

    /// Returns the status of a window without counting a request, as far as this node knows.
    ///
    /// # Errors
    /// [`Exhausted`] if a request would be refused.
    pub fn peek(&self, limit_key: RateLimitKey, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        let (RateLimitKey { window, limit }, now) = (limit_key, now + CLOCK_OFFSET);
        match self.windows.get_mut(&window) {
            Some(mut window) => window.peek(limit, now),
            None => SharedWindow::new(limit).peek(limit, now),
        }
    }

    /// The window of a family of credentials whose partner has these limits.
    #[must_use]
    pub fn key_of_family(
        &self,
        family_id: CredentialId,
        class: RequestClass,
        limits: &Limits,
    ) -> RateLimitKey {
        RateLimitKey {
            window: WindowKey {
                owner_id: family_id.as_uuid(),
                class,
            },
            limit: self.defaults.effective_limit(limits, class),
        }
    }

    /// The windows that a request of this caller counts against. `families` counts those of its partner's
    /// live credentials; it is called for a partner with a ceiling only.
    #[must_use]
    pub fn keys_of(
        &self,
        caller: &Caller,
        class: RequestClass,
        families: impl FnOnce() -> u32,
    ) -> RateLimitKeys {
        let own = self.key_of_family(caller.family_id, class, &caller.partner.limits);
        let ceiling = caller.partner.ceilings.get(class).map(|ceiling| {
            let window = WindowKey {
                owner_id: caller.partner.partner_id.as_uuid(),
                class,
            };
            let limit = ceiling.raised_for(own.limit, families());
            RateLimitKey { window, limit }
        });
        RateLimitKeys { own, ceiling }
    }

    /// The least ceiling of a class, in windows of this length, for so many families whose partner has these
    /// limits.
    #[must_use]
    pub fn least_ceiling(&self, limits: &Limits, class: RequestClass, families: u32, window_s: u32) -> u32 {
        let each = self.defaults.effective_limit(limits, class);
        each.total_of(families, window_s)
    }

    /// Who shares the limits.
    #[must_use]
    pub fn sharing(&self) -> Sharing {
        Sharing {
            nodes: self.nodes.load(Ordering::Relaxed),
            is_degraded: self.is_degraded.load(Ordering::Relaxed),
        }
    }

    /// Sets the number of live nodes, this one included.
    pub fn set_nodes(&self, nodes: u32) {
        self.nodes.store(nodes.max(1), Ordering::Relaxed);
    }

    /// Sets whether the database answers. Returns the value before.
    pub fn set_degraded(&self, is_degraded: bool) -> bool {
        self.is_degraded.swap(is_degraded, Ordering::Relaxed)
    }

    /// Takes the requests of a window that the database does not know of.
    pub fn begin_publication(&self, limit_key: RateLimitKey, now: Duration) -> WindowPublication {
        let RateLimitKey { window, limit } = limit_key;
        let entry = self.windows.entry(window);
        let mut window = entry.or_insert_with(|| SharedWindow::new(limit));
        publish(limit_key, &mut window, now)
    }

    /// Takes the requests of all windows that the database does not know of.
    pub fn begin_publications(&self, now: Duration) -> Vec<WindowPublication> {
        let mut publications = Vec::new();
        for mut entry in self.windows.iter_mut() {
            let limit_key = RateLimitKey {
                window: *entry.key(),
                limit: entry.limit(),
            };
            if entry.has_unpublished() {
                publications.push(publish(limit_key, entry.value_mut(), now));
            }
        }
        publications
    }

    /// The database has counted the requests of a publication. A node that is alone ignores the view, which
    /// is coarser than its own counts.
    pub fn confirm(&self, publication: &WindowPublication, view: &[(i64, u32)], now: Duration) {
        if let Some(mut window) = self.windows.get_mut(&publication.window) {
            window.confirm(&publication.requests);
            if self.sharing().nodes > 1 {
                window.apply_view(view, now + CLOCK_OFFSET);
            }
        }
    }

    /// The database has probably not counted the requests of a publication.
    pub fn restore(&self, publication: WindowPublication) {
        if let Some(mut window) = self.windows.get_mut(&publication.window) {
            window.restore(publication.requests);
        }
    }

    /// Replaces what is known of a window by what the database counts, for a window of this length in
    /// seconds.
    pub fn apply_view(&self, window: WindowKey, window_s: u32, view: &[(i64, u32)], now: Duration) {
        let quota = self.defaults.get(window.class).quota;
        let entry = self.windows.entry(window);
        let mut window = entry.or_insert_with(|| SharedWindow::new(Limit { quota, window_s }));
        window.apply_view(view, now + CLOCK_OFFSET);
    }

    /// Counts a failed authentication.
    ///
    /// # Errors
    /// [`Exhausted`] if too many requests of this address failed before.
    pub fn record_auth_failure(&self, address: IpAddr, now: Duration) -> Result<RateLimitStatus, Exhausted> {
        self.lock_failures().record(address, now)
    }

    /// Begins an attempt to authenticate whose outcome another service knows. Until it ends it counts like a
    /// failure, so that an address cannot have more of them open than may fail.
    ///
    /// # Errors
    /// [`Exhausted`]: the other service must not be asked.
    pub fn begin_attempt(&self, address: IpAddr, now: Duration) -> Result<AuthAttempt<'_>, Exhausted> {
        let reservation = self.lock_failures().reserve(address, now)?;
        Ok(AuthAttempt {
            limiter: self,
            reservation,
        })
    }

    /// Evicts windows without recent requests. Called by housekeeping.
    pub fn evict_idle(&self, now: Duration) {
        self.windows
            .retain(|_, window| !window.is_idle(now + CLOCK_OFFSET));
        self.lock_failures().evict_idle(now);
    }

    /// The number of windows of credentials, and of client addresses with failures.
    #[must_use]
    pub fn window_counts(&self) -> (usize, usize) {
        (self.windows.len(), self.lock_failures().source_count())
    }

    fn lock_failures(&self) -> MutexGuard<'_, AuthFailures> {
        self.failures.lock()
    }
}

/// An attempt to authenticate; dropping it ends it. If it has failed, the caller records the failure then.
#[derive(Debug)]
#[must_use = "an attempt ends when it is dropped"]
pub struct AuthAttempt<'a> {
    limiter: &'a RateLimiter,
    reservation: Reservation,
}

impl Drop for AuthAttempt<'_> {
    fn drop(&mut self) {
        self.limiter.lock_failures().release(self.reservation);
    }
}

fn publish(limit_key: RateLimitKey, window: &mut SharedWindow, now: Duration) -> WindowPublication {
    let requests = window.begin_publication();
    WindowPublication {
        window: limit_key.window,
        limit: limit_key.limit,
        ages_us: requests.ages_us(now + CLOCK_OFFSET).collect(),
        requests,
    }
}

#[cfg(test)]
mod tests;
