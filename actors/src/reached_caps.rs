//! Partners that have reached a cap: their orders are refused before they hold money or vouchers.

use std::collections::HashSet;

use parking_lot::RwLock;
use vouchsafe_domain::ids::PartnerId;

/// The partners of which a commit on this node found a cap exceeded, until an order of theirs is within all
/// caps again.
#[derive(Debug, Default)]
pub(crate) struct ReachedCaps(RwLock<HashSet<PartnerId>>);

impl ReachedCaps {
    pub(crate) fn contains(&self, partner_id: PartnerId) -> bool {
        let known = self.0.read();
        known.contains(&partner_id)
    }

    pub(crate) fn insert(&self, partner_id: PartnerId) {
        self.0.write().insert(partner_id);
    }

    pub(crate) fn remove(&self, partner_id: PartnerId) {
        self.0.write().remove(&partner_id);
    }
}
