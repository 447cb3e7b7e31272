//! Limit of what each owner holds at a time: requests in flight of an API key and those that came from it by
//! rotation (a family), requests in flight and connections of a client address.
//!
//! A request is in flight until its response has been written: a client that reads slowly occupies its
//! permits. A long poll gives its permit back while it waits, and takes one again for its response.

use std::hash::Hash;
use std::sync::Arc;

use dashmap::DashMap;

/// The permits of every owner.
#[derive(Debug)]
pub struct ConcurrencyLimit<K: Eq + Hash> {
    max: usize,
    /// A permit is a clone, so the reference count is the number of permits in use plus one.
    owners: DashMap<K, Arc<()>>,
}

/// Dropping it frees it.
#[derive(Debug)]
pub struct Permit {
    _owner: Arc<()>,
}

/// The owner has as many permits as are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitReached {
    pub max: usize,
}

impl<K: Eq + Hash> ConcurrencyLimit<K> {
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            max,
            owners: DashMap::new(),
        }
    }

    /// Takes a permit.
    ///
    /// # Errors
    /// [`LimitReached`].
    pub fn try_enter(&self, owner: K) -> Result<Permit, LimitReached> {
        // The entry is locked: nothing else can take a permit between the count and the clone.
        let permits = self.owners.entry(owner).or_default();
        if Arc::strong_count(&permits) > self.max {
            return Err(LimitReached { max: self.max });
        }
        Ok(Permit {
            _owner: Arc::clone(&permits),
        })
    }

    /// Takes a permit for a request that was admitted and has waited without one, also above the limit: to
    /// refuse it now would waste its wait. The caller bounds the number of such requests.
    #[must_use]
    pub fn enter_after_wait(&self, owner: K) -> Permit {
        Permit {
            _owner: Arc::clone(&self.owners.entry(owner).or_default()),
        }
    }

    /// Forgets owners without permits in use. Called by housekeeping.
    pub fn evict_idle(&self) {
        self.owners.retain(|_, permits| Arc::strong_count(permits) > 1);
    }
}

#[cfg(test)]
mod tests {
    use vouchsafe_domain::ids::CredentialId;

    use super::*;

    fn family(number: u128) -> CredentialId {
        CredentialId::from_uuid(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn family_has_its_permits_until_its_requests_are_dropped() {
        let limit = ConcurrencyLimit::new(2);
        let first = limit.try_enter(family(1)).unwrap();
        let _second = limit.try_enter(family(1)).unwrap();
        assert_eq!(limit.try_enter(family(1)).unwrap_err(), LimitReached { max: 2 });
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
        let limit = ConcurrencyLimit::new(1);
        let first = limit.try_enter(family(1)).unwrap();
        let waited = limit.enter_after_wait(family(1));
        drop(first);
        assert!(limit.try_enter(family(1)).is_err());
        drop(waited);
        assert!(limit.try_enter(family(1)).is_ok());
    }

    #[test]
    fn families_without_requests_are_forgotten() {
        let limit = ConcurrencyLimit::new(1);
        drop(limit.try_enter(family(1)).unwrap());
        let _held = limit.try_enter(family(2)).unwrap();
        limit.evict_idle();
        assert_eq!(limit.owners.len(), 1);
    }

    #[test]
    fn concurrent_requests_never_exceed_the_limit() {
        let limit = ConcurrencyLimit::new(5);
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
