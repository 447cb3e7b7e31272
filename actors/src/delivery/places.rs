//! How many deliveries are under way at once, over all endpoints?
//!
//! Rule: the last half of the places is kept for endpoints of which nothing is under way: endpoints that hang hold what
//! they have for as long as an attempt may last, and others still find room.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many deliveries are under way in a process at most: each is a socket, and at some 50 KiB with its buffers 100 MiB.
pub const MAX_UNDER_WAY: usize = 2_048;

/// The places of a process.
#[derive(Debug, Clone)]
pub struct Places {
    free: Arc<Semaphore>,
    kept: usize,
}

impl Places {
    /// So many.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(most)),
            kept: most / 2,
        }
    }

    /// A place for an endpoint of which so many deliveries are under way already.
    #[must_use]
    pub fn take(&self, under_way: usize) -> Option<OwnedSemaphorePermit> {
        if under_way > 0 && self.free.available_permits() <= self.kept {
            return None;
        }
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// How many are free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.available_permits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_half_is_for_endpoints_that_have_nothing_under_way() {
        let places = Places::new(4);
        let first: Vec<_> = (0..2).map_while(|n| places.take(n)).collect();
        assert_eq!((first.len(), places.free()), (2, 2));
        assert!(places.take(2).is_none(), "the rest is for others");
        let others: Vec<_> = (0..3).map_while(|_| places.take(0)).collect();
        assert_eq!((others.len(), places.free()), (2, 0));
        drop((first, others));
        assert_eq!(places.free(), 4);
    }
}
