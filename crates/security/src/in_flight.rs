//! Limit of concurrent requests per API key and those that came from it by rotation: a family.
//!
//! A request is in flight until its response has been written: a client that reads slowly occupies its permits. A long poll gives its
//! permit back while it waits, and takes one again for its response.

use std::sync::Arc;

use dashmap::DashMap;

use vouchsafe_domain::ids::CredentialId;

/// The requests in flight of every family.
#[derive(Debug)]
pub struct InFlightLimit {
    max: usize,
    /// A request in flight holds a clone, so the reference count is the number of requests plus one.
    families: DashMap<CredentialId, Arc<()>>,
}

/// A request in flight; dropping it frees its permit.
#[derive(Debug)]
pub struct InFlightRequest {
    _permit: Arc<()>,
}

/// The family has as many requests in flight as are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyInFlight {
    pub max: usize,
}

impl InFlightLimit {
    #[must_use]
    pub fn new(max: u16) -> Self {
        Self {
            max: usize::from(max),
            families: DashMap::new(),
        }
    }

    /// Takes a permit for an authenticated request.
    ///
    /// # Errors
    /// [`TooManyInFlight`].
    pub fn try_enter(&self, family_id: CredentialId) -> Result<InFlightRequest, TooManyInFlight> {
        // The entry is locked: no other request can take a permit between the count and the clone.
        let permits = self.families.entry(family_id).or_default();
        if Arc::strong_count(&permits) > self.max {
            return Err(TooManyInFlight { max: self.max });
        }
        Ok(InFlightRequest {
            _permit: Arc::clone(&permits),
        })
    }

    /// Takes a permit for a request that was admitted and has waited without one, also above the limit: to refuse it now would waste its wait.
    /// The caller bounds the number of such requests.
    #[must_use]
    pub fn enter_after_wait(&self, family_id: CredentialId) -> InFlightRequest {
        InFlightRequest {
            _permit: Arc::clone(&self.families.entry(family_id).or_default()),
        }
    }

    /// Forgets families without requests. Called by housekeeping.
    pub fn evict_idle(&self) {
        self.families.retain(|_, permits| Arc::strong_count(permits) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(number: u128) -> CredentialId {
        CredentialId::from_uuid(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn family_has_its_permits_until_its_requests_are_dropped() {
        let limit = InFlightLimit::new(2);
        let first = limit.try_enter(family(1)).unwrap();
        let _second = limit.try_enter(family(1)).unwrap();
        assert_eq!(
            limit.try_enter(family(1)).unwrap_err(),
            TooManyInFlight { max: 2 }
        );
        assert!(
            limit.try_enter(family(2)).is_ok(),
            "another family has permits of its own"
        );
        limit.evict_idle();
        assert!(
            limit.try_enter(family(1)).is_err(),
            "permits in use are not forgotten"
        );
        drop(first);
        assert!(limit.try_enter(family(1)).is_ok());
    }

    #[test]
    fn request_after_its_wait_enters_above_the_limit_and_counts() {
        let limit = InFlightLimit::new(1);
        let first = limit.try_enter(family(1)).unwrap();
        let waited = limit.enter_after_wait(family(1));
        drop(first);
        assert!(limit.try_enter(family(1)).is_err());
        drop(waited);
        assert!(limit.try_enter(family(1)).is_ok());
    }

    #[test]
    fn families_without_requests_are_forgotten() {
        let limit = InFlightLimit::new(1);
        drop(limit.try_enter(family(1)).unwrap());
        let _held = limit.try_enter(family(2)).unwrap();
        limit.evict_idle();
        assert_eq!(limit.families.len(), 1);
    }

    #[test]
    fn concurrent_requests_never_exceed_the_limit() {
        let limit = InFlightLimit::new(5);
        let held = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        if let Ok(request) = limit.try_enter(family(1)) {
                            held.lock().unwrap().push(request);
                        }
                        limit.evict_idle();
                    }
                });
            }
        });
        assert_eq!(held.into_inner().unwrap().len(), 5);
    }
}
