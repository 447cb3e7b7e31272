//! Which adapter speaks to a vendor? One that was made with its terms of this moment.
//!
//! Rule: a vendor's terms are read for each call, so that a change is in force at the next one. While they stay, so does the
//! adapter, which knows how the vendor was of late.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::ProcurementService;
use crate::store::{Vendor, VendorWithCredential};
use crate::procurement::{VendorAdapter, AdapterConfig};

/// A vendor that is spoken to.
struct CachedAdapter {
    vendor: Vendor,
    adapter: Arc<VendorAdapter>,
}

/// Those that were spoken to, by id.
#[derive(Default)]
pub(super) struct AdapterCache(Mutex<HashMap<String, CachedAdapter>>);

impl AdapterCache {
    /// The adapter for exactly these terms, if there is one.
    fn find(&self, vendor: &Vendor) -> Option<Arc<VendorAdapter>> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines
            .get(&vendor.vendor_id)
            .filter(|line| line.vendor == *vendor)?;
        Some(Arc::clone(&line.adapter))
    }

    /// In place of the one for earlier terms. Of two that were made at once the first one stays.
    fn insert(&self, vendor: Vendor, adapter: VendorAdapter) -> Arc<VendorAdapter> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(&vendor.vendor_id).filter(|line| line.vendor == vendor) {
            return Arc::clone(&line.adapter);
        }
        let adapter = Arc::new(adapter);
        let line = CachedAdapter {
            vendor: vendor.clone(),
            adapter: Arc::clone(&adapter),
        };
        lines.insert(vendor.vendor_id, line);
        adapter
    }
}

impl ProcurementService {
    /// What speaks to a vendor now, or why nobody can.
    pub(super) async fn adapter_for(&self, vendor_id: &str) -> Result<Arc<VendorAdapter>, String> {
        let access = self.store.find_vendor(vendor_id.to_owned()).await;
        let access = access
            .map_err(|error| format!("the vendor cannot be read: {error}"))?
            .ok_or("there is no such vendor; put it with `vouchsafe vendor put`")?;
        if let Some(adapter) = self.adapters.find(&access.vendor) {
            return Ok(adapter);
        }
        let adapter = self.connect(&access)?;
        Ok(self.adapters.insert(access.vendor, adapter))
    }

    fn connect(&self, access: &VendorWithCredential) -> Result<VendorAdapter, String> {
        let VendorWithCredential { vendor, credential } = access;
        let open = |sealed| self.keyring.vault().open_credential(&vendor.vendor_id, sealed);
        let credential = credential.as_ref().map(open).transpose();
        let url = vendor.url.as_deref().map(str::parse).transpose();
        let terms = AdapterConfig {
            kind: vendor.adapter,
            url: url.map_err(|_| "the vendor's url is none; put it again")?,
            credential: credential
                .map_err(|error| format!("the vendor's credential cannot be opened: {error}"))?,
        };
        VendorAdapter::connect(&terms, Arc::clone(&self.clock)).map_err(|error| error.to_string())
    }
}
