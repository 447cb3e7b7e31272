//! The engine's procurement port, implemented on Postgres and the vendor adapters.
//!
//! | File | Content |
//! |---|---|
//! | `mod` | the port, method by method |
//! | `adapter_cache` | adapters by vendor configuration |
//! | `response_mapping` | vendor responses to purchase updates |
//! | `intake` | import of purchased vouchers into stock |
//!
//! A code goes from the adapter into the vault and nowhere else. Each write runs in a task of its own, so
//! that a cancelled caller does not interrupt it.

mod adapter_cache;
mod intake;
mod response_mapping;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tracing::{error, warn};
use uuid::Uuid;
use vouchsafe_actors::ports::store::StoreFuture;
use vouchsafe_actors::ports::vendors::{
    ClaimedPurchase, DuePurchase, ForcedResponse, PurchaseRemainder, ReservedStock, SkuLocks, VendorCapacity,
    VendorId, Vendors, WaitingOrder,
};
use vouchsafe_domain::catalogue::current::CurrentCatalogue;
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::order::{Order, OrderLine};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::purchase::view::LastResponse;
use vouchsafe_domain::purchase::{BuyRequest, PurchaseKey};
use vouchsafe_domain::sandbox_fault::{FaultKind, SandboxFaults};
use vouchsafe_domain::store_error::Unavailable;
use vouchsafe_domain::vendor::{AdapterKind, Vendor, VendorNetwork};
use vouchsafe_store::StoreError;
use vouchsafe_store::keyring::Keyring;
use vouchsafe_store::{NewPurchase, PgStore, PurchaseUpdate, PurchaseWrites};

use self::adapter_cache::AdapterCache;
use self::intake::IntakeError;
use crate::metrics::VendorMetrics;
use crate::mock::MockVendor;
use crate::{PurchaseResult, VendorAdapter, VendorFailure};

/// How long a SKU counts as out of stock at a vendor: as long as an order would wait in vain at worst, and
/// short enough that a restocked vendor is used again soon.
const OUT_OF_STOCK_TTL: Duration = Duration::from_secs(300);

pub struct ProcurementService {
    store: PgStore,
    writes: PurchaseWrites,
    /// This node's name, stored with its claims.
    node: String,
    keyring: Arc<Keyring>,
    /// Maps products to vendors.
    catalogue: Arc<CurrentCatalogue>,
    clock: Arc<dyn Clock>,
    metrics: VendorMetrics,
    faults: Arc<SandboxFaults>,
    adapters: AdapterCache,
    /// Adapters by vendor, as of the last poll.
    kinds: Mutex<HashMap<String, AdapterKind>>,
    network: VendorNetwork,
}

impl ProcurementService {
    pub fn new(
        store: PgStore,
        node: String,
        keyring: Arc<Keyring>,
        catalogue: Arc<CurrentCatalogue>,
        clock: Arc<dyn Clock>,
        metrics: VendorMetrics,
        network: VendorNetwork,
    ) -> Self {
        Self {
            writes: store.purchases.start_writes(node.clone()),
            store,
            node,
            keyring,
            catalogue,
            clock,
            metrics,
            faults: Arc::default(),
            adapters: AdapterCache::default(),
            kinds: Mutex::default(),
            network,
        }
    }

    /// The faults that partners of the sandbox request.
    #[must_use]
    pub fn sandbox_faults(&self) -> Arc<SandboxFaults> {
        Arc::clone(&self.faults)
    }

    /// The purchases for each order line with a shortfall.
    fn purchases_for(&self, order: &Order) -> Vec<NewPurchase> {
        let catalogue = self.catalogue.current();
        let requested_at = self.clock.now();
        let lines = (0_u16..).zip(&order.lines);
        let missing = lines.filter(|(_, line)| line.pending() > 0 && !line.stock_only && !order.closed);
        let purchase = |(number, line): (u16, &OrderLine)| {
            let product = catalogue.get(&line.product_id)?;
            Some(NewPurchase {
                line: number,
                vendor: product.vendor.clone(),
                request: BuyRequest {
                    key: PurchaseKey(Uuid::now_v7()),
                    product_id: line.product_id.clone(),
                    denomination: line.denomination.of(order.total.currency),
                    quantity: line.pending(),
                    requested_at,
                    expiry_policy: product.expiry_policy.clone(),
                },
            })
        };
        missing.filter_map(purchase).collect()
    }

    async fn needs_vendor(&self, order: &Order) -> Result<bool, StoreError> {
        let purchases = self.purchases_for(order);
        // A vendor that is not known may have been added since the last poll.
        if !purchases
            .iter()
            .all(|purchase| self.kinds().contains_key(&purchase.vendor))
        {
            self.list_vendors().await?;
        }
        let kinds = self.kinds();
        let needs_call = |purchase: &NewPurchase| {
            let kind = kinds.get(&purchase.vendor);
            kind.is_some_and(|kind| *kind != AdapterKind::Manual)
        };
        Ok(purchases.iter().any(needs_call))
    }

    /// Lists the vendors, and remembers their adapters.
    async fn list_vendors(&self) -> Result<Vec<Vendor>, StoreError> {
        let vendors = self.store.vendors.list().await?;
        let kinds = vendors
            .iter()
            .map(|vendor| (vendor.vendor_id.clone(), vendor.adapter));
        *self.kinds() = kinds.collect();
        Ok(vendors)
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<String, AdapterKind>> {
        self.kinds.lock()
    }

    async fn ask_vendor(
        &self,
        claimed: ClaimedPurchase,
        forced: Option<ForcedResponse>,
    ) -> Result<PurchaseRemainder, Unavailable> {
        let key = PurchaseKey(claimed.delivery.reservation_id);
        let purchase = self.store.purchases.find(key.0).await?;
        let adapter = match self.adapter_for(&purchase.vendor).await {
            Ok(adapter) => adapter,
            Err(reason) => return self.record_blocked(key, &reason).await,
        };
        let response = match &*adapter {
            VendorAdapter::Manual => return Ok(PurchaseRemainder::Manual),
            VendorAdapter::Mock(_)
                if let Some(forced) = forced.or_else(|| self.take_fault(claimed.delivery.partner_id)) =>
            {
                let sold = self.store.purchases.list_bought_references(key).await?.len();
                MockVendor::respond(&purchase.request, u32::try_from(sold).unwrap_or(u32::MAX), forced)
            }
            adapter => poll_or_buy(adapter, &purchase.request, claimed.was_requested).await,
        };
        if let VendorAdapter::Http(http) = &*adapter {
            self.metrics.set_circuit(&purchase.vendor, http.is_circuit_open());
        }
        if let Err(VendorFailure::InvalidResponse(invalid)) = &response {
            self.metrics.record_rejected_response(&purchase.vendor);
            error!(purchase.id = %key, vendor.id = purchase.vendor, %invalid,
                "vendor response rejected; operator action required");
        }
        let imported = match &response {
            Ok(bought) => self.import_vouchers(&purchase.request, &bought.vouchers).await,
            Err(_) => Ok(Vec::new()),
        };
        match imported {
            Ok(quarantined) => {
                let (update, remainder) = response_mapping::map_response(key, response, quarantined);
                self.writes.record(update).await?;
                Ok(remainder)
            }
            Err(IntakeError::Database(error)) => Err(error.into()),
            Err(blocked) => self.record_blocked(key, &blocked.to_string()).await,
        }
    }

    /// The response to a purchase of this partner, if it has requested a fault of the mock vendor.
    fn take_fault(&self, partner_id: PartnerId) -> Option<ForcedResponse> {
        let now = self.clock.now();
        let take = |kind| self.faults.take(partner_id, kind, now);
        let timeout = take(FaultKind::VendorTimeout).map(|_| ForcedResponse::TimeOut);
        timeout.or_else(|| take(FaultKind::VendorOutOfStock).map(|_| ForcedResponse::Refuse))
    }

    /// Records an internal reason, which operators see.
    async fn record_blocked(&self, key: PurchaseKey, reason: &str) -> Result<PurchaseRemainder, Unavailable> {
        warn!(purchase.id = %key, reason, "purchase blocked");
        let update = PurchaseUpdate {
            key,
            last_response: LastResponse::Stuck,
            last_message: Some(reason.to_owned()),
            sold: None,
            quarantined: Vec::new(),
        };
        self.writes.record(update).await?;
        Ok(PurchaseRemainder::Pending(None))
    }
}

/// Polls a vendor that may know the purchase; buys if it was never called or does not know it.
async fn poll_or_buy(
    adapter: &VendorAdapter,
    request: &BuyRequest,
    was_requested: bool,
) -> Result<PurchaseResult, VendorFailure> {
    if was_requested {
        match adapter.poll(request).await {
            Err(VendorFailure::PurchaseNotFound) => {}
            response => return response,
        }
    }
    adapter.buy(request).await
}

impl Vendors for ProcurementService {
    fn list_capacities(&self) -> StoreFuture<'_, Result<Vec<VendorCapacity>, Unavailable>> {
        Box::pin(async move {
            let vendors = self.list_vendors().await.map_err(Unavailable::from)?;
            let capacity = |vendor: Vendor| VendorCapacity {
                vendor_id: VendorId(vendor.vendor_id.into()),
                concurrency: usize::from(vendor.concurrency),
            };
            Ok(vendors.into_iter().map(capacity).collect())
        })
    }

    fn open_sku_locks(&self) -> StoreFuture<'_, Result<Box<dyn SkuLocks>, Unavailable>> {
        let locks = self.store.waiting_orders.open_sku_locks();
        Box::pin(async move { Ok(Box::new(locks.await.map_err(Unavailable::from)?) as Box<dyn SkuLocks>) })
    }

    fn claim_waiting_orders(&self, limit: usize) -> StoreFuture<'_, Result<Vec<WaitingOrder>, Unavailable>> {
        let orders = self.store.waiting_orders.claim_due(limit);
        Box::pin(async move { orders.await.map_err(Unavailable::from) })
    }

    fn is_purchasable(&self, order: &Order) -> StoreFuture<'_, Result<bool, Unavailable>> {
        let order = order.clone();
        Box::pin(async move { self.needs_vendor(&order).await.map_err(Unavailable::from) })
    }

    fn open_purchases(&self, order: Order) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(async move {
            let (partner_id, order_id) = (order.partner_id, order.order_id);
            let purchases = self.purchases_for(&order);
            self.writes.create(partner_id, order_id, purchases).await
        })
    }

    fn list_due_purchases(
        &self,
        vendor_id: &VendorId,
        limit: usize,
    ) -> StoreFuture<'_, Result<Vec<DuePurchase>, Unavailable>> {
        let due = self.store.purchases.list_due(vendor_id.to_string(), limit);
        Box::pin(async move { due.await.map_err(Unavailable::from) })
    }

    fn claim_purchase(
        &self,
        purchase_id: Uuid,
    ) -> StoreFuture<'_, Result<Option<ClaimedPurchase>, Unavailable>> {
        Box::pin(self.writes.claim(purchase_id))
    }

    fn request_vouchers(
        &self,
        claimed: ClaimedPurchase,
        forced: Option<ForcedResponse>,
    ) -> StoreFuture<'_, Result<PurchaseRemainder, Unavailable>> {
        Box::pin(self.ask_vendor(claimed, forced))
    }

    fn release_claim(
        &self,
        purchase_id: Uuid,
        after: Option<Duration>,
    ) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(self.writes.release(purchase_id, after))
    }

    fn release_own_claims(&self, vendor_id: &VendorId) -> StoreFuture<'_, Result<(), Unavailable>> {
        let released = self
            .store
            .purchases
            .release_claims(self.node.clone(), vendor_id.to_string());
        Box::pin(async move { released.await.map_err(Unavailable::from) })
    }

    fn release_remainder(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Option<Sku>, Unavailable>> {
        let released = self.store.reservations.release_remainder(purchase_id);
        Box::pin(async move { released.await.map_err(Unavailable::from) })
    }

    fn list_reserved_stock(&self, limit: usize) -> StoreFuture<'_, Result<Vec<ReservedStock>, Unavailable>> {
        let reserved = self.store.reservations.list(limit);
        Box::pin(async move { reserved.await.map_err(Unavailable::from) })
    }

    fn list_orders_waiting_for<'a>(
        &'a self,
        sku: &'a Sku,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreFuture<'a, Result<Vec<(PartnerId, OrderId)>, Unavailable>> {
        let waiting = self.store.waiting_orders.list_for_sku(sku.clone(), after, limit);
        Box::pin(async move { waiting.await.map_err(Unavailable::from) })
    }

    fn expedite_orders_waiting_for<'a>(
        &'a self,
        sku: &'a Sku,
        after: OrderId,
    ) -> StoreFuture<'a, Result<(), Unavailable>> {
        let expedited = self.store.waiting_orders.expedite(sku.clone(), after);
        Box::pin(async move { expedited.await.map_err(Unavailable::from) })
    }

    fn release_reservations(&self, reservation_ids: Vec<Uuid>) -> StoreFuture<'_, Result<(), Unavailable>> {
        let released = self.store.reservations.release(reservation_ids);
        Box::pin(async move { released.await.map_err(Unavailable::from) })
    }

    fn list_out_of_stock(&self) -> StoreFuture<'_, Result<Vec<Sku>, Unavailable>> {
        let skus = self.store.purchases.list_out_of_stock_skus(OUT_OF_STOCK_TTL);
        Box::pin(async move { skus.await.map_err(Unavailable::from) })
    }
}
