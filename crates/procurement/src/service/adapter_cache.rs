//! Cache of vendor adapters, by vendor and configuration.
//!
//! The configuration is read for every call, so a change applies to the next one. While it is unchanged the
//! adapter is reused, because it holds the vendor's circuit breaker.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use vouchsafe_domain::vendor::{Circuit, CircuitState, Vendor};

use super::ProcurementService;
use crate::VendorAdapter;

struct CachedAdapter {
    vendor: Vendor,
    adapter: Arc<VendorAdapter>,
}

/// Adapters by vendor id.
#[derive(Default)]
pub(super) struct AdapterCache(Mutex<HashMap<String, CachedAdapter>>);

impl AdapterCache {
    /// The adapter for exactly this configuration.
    fn find(&self, vendor: &Vendor) -> Option<Arc<VendorAdapter>> {
        let adapters = self.0.lock();
        let cached = adapters
            .get(&vendor.vendor_id)
            .filter(|cached| cached.vendor == *vendor)?;
        Some(Arc::clone(&cached.adapter))
    }

    /// Replaces the adapter of an earlier configuration. Of two concurrent inserts the first one stays.
    fn insert(&self, vendor: Vendor, adapter: VendorAdapter) -> Arc<VendorAdapter> {
        let mut adapters = self.0.lock();
        if let Some(cached) = adapters
            .get(&vendor.vendor_id)
            .filter(|cached| cached.vendor == vendor)
        {
            return Arc::clone(&cached.adapter);
        }
        let adapter = Arc::new(adapter);
        let cached = CachedAdapter {
            vendor: vendor.clone(),
            adapter: Arc::clone(&adapter),
        };
        adapters.insert(vendor.vendor_id, cached);
        adapter
    }
}

impl ProcurementService {
    /// The circuit of a vendor on this node; `None` if the vendor has no server, or this node has not called
    /// it since its start or the vendor's last change.
    #[must_use]
    pub fn circuit(&self, vendor: &Vendor) -> Option<Circuit> {
        let adapter = self.adapters.find(vendor)?;
        let VendorAdapter::Http(http) = &*adapter else {
            return None;
        };
        let snapshot = http.circuit();
        let (now, monotonic) = (self.clock.now(), self.clock.monotonic());
        let time_of = |at: Duration| now - monotonic.saturating_sub(at) + at.saturating_sub(monotonic);
        Some(Circuit {
            node: self.node.clone(),
            state: snapshot.state,
            since: snapshot.since.map(time_of),
            consecutive_failures: snapshot.failures,
            next_probe_at: snapshot.next_probe_at.map(time_of),
        })
    }

    /// The number of vendors whose circuit on this node is not closed.
    #[must_use]
    pub fn count_open_circuits(&self) -> usize {
        let adapters = self.adapters.0.lock();
        let is_open = |cached: &&CachedAdapter| match &*cached.adapter {
            VendorAdapter::Http(http) => http.circuit().state != CircuitState::Closed,
            _ => false,
        };
        adapters.values().filter(is_open).count()
    }

    /// The adapter of a vendor, or the reason why there is none.
    pub(super) async fn adapter_for(&self, vendor_id: &str) -> Result<Arc<VendorAdapter>, String> {
        let access = self.store.vendors.find(vendor_id.to_owned()).await;
        let access = access
            .map_err(|error| format!("cannot read the vendor: {error}"))?
            .ok_or("unknown vendor; add it with `vouchsafe vendor put`")?;
        if let Some(adapter) = self.adapters.find(&access.vendor) {
            return Ok(adapter);
        }
        let adapter =
            VendorAdapter::open(&access, &self.keyring, self.network, Arc::clone(&self.clock)).await?;
        Ok(self.adapters.insert(access.vendor, adapter))
    }
}
