//! Store port of one incarnation of a node, over the in-memory database.
//!
//! Reads see only committed rows; each of them may be slow or fail.

use uuid::Uuid;
use vouchsafe_actors::ports::store::{LaneStore, RecoverError, Store, StoreFuture};
use vouchsafe_domain::cap::CapCheck;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};
use vouchsafe_domain::ids::{ChunkId, OrderId, PartnerId, PayoutId, StockId};
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::Currency;
use vouchsafe_domain::order::StoredOrder;
use vouchsafe_domain::payout::Payout;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{ClaimedStock, StockDemand, StockRequest};
use vouchsafe_domain::store_error::Unavailable;
use vouchsafe_domain::voucher::StockVoucher;

use super::MemoryDatabase;
use super::fault::FaultKind;
use super::lane::MemoryLane;
use super::state::State;
use super::tables::Owner;
use crate::build::NOW;

/// Store of one incarnation of a node. The next incarnation supersedes it.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    pub(super) db: MemoryDatabase,
    pub(super) owner: Owner,
}

impl MemoryStore {
    pub(super) fn new(db: &MemoryDatabase, owner: Owner) -> Self {
        Self {
            db: db.clone(),
            owner,
        }
    }

    /// Incarnation of the node.
    #[must_use]
    pub fn incarnation(&self) -> i64 {
        self.owner.incarnation
    }

    /// Whether this incarnation of the node owns a chunk.
    #[must_use]
    pub fn owns(&self, chunk_id: ChunkId) -> bool {
        let owner = |state: &mut State| state.tables.chunks.get(&chunk_id)?.owner.clone();
        self.db.with(owner).is_some_and(|owner| owner == self.owner)
    }

    async fn claim(&self, request: StockRequest) -> Result<ClaimedStock, Unavailable> {
        self.db.simulate_read(&self.owner.node).await?;
        let claimed = self.db.claim(&self.owner, &request);
        if self
            .db
            .faults()
            .should_fail(&self.owner.node, FaultKind::ClaimResponseLost)
        {
            return Err(Unavailable(
                "the connection was closed before the response".to_owned(),
            ));
        }
        Ok(claimed)
    }
}

impl MemoryDatabase {
    /// Applies the faults of a read: delay or error.
    pub(super) async fn simulate_read(&self, node: &str) -> Result<(), Unavailable> {
        let delay = self.faults().read_delay();
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
        }
        if self.faults().should_fail(node, FaultKind::ReadError) {
            return Err(Unavailable("the connection was refused".to_owned()));
        }
        Ok(())
    }

    /// The response stored under a key, unless it has expired.
    fn find_response(&self, key: KeyHash) -> Option<StoredResponse> {
        let now = self.now();
        let unexpired = |row: &&super::tables::KeyRow| row.expires_at.is_none_or(|at| at > now);
        self.with(|state| {
            state
                .tables
                .keys
                .get(&key)
                .filter(unexpired)
                .map(|row| row.known.clone())
        })
    }

    fn stored_order(&self, order_id: OrderId) -> Option<StoredOrder> {
        self.with(|state| {
            let row = state.tables.orders.get(&order_id)?;
            let mut order = row.order.clone();
            for held in &mut order.vouchers {
                let is_retrieved = state.tables.retrieved.contains(&held.voucher_id);
                held.first_retrieved_at = is_retrieved.then_some(NOW);
            }
            Some(StoredOrder {
                order,
                last_sequence: row.last_sequence,
            })
        })
    }

    fn count_orders(&self, partner_id: PartnerId, limit: u32) -> u64 {
        self.with(|state| {
            let orders = state.tables.orders.values();
            let own = orders.filter(|row| row.order.partner_id == partner_id);
            own.take(limit as usize).count() as u64
        })
    }

    fn wallets_of(&self, partner_id: PartnerId) -> Vec<(Currency, WalletState)> {
        self.with(|state| {
            let own = state
                .tables
                .wallets
                .iter()
                .filter(|(wallet, _)| wallet.partner_id == partner_id);
            own.map(|(wallet, row)| (wallet.currency, row.newest)).collect()
        })
    }
}

impl Store for MemoryStore {
    fn open_lane(&self, lane: u16) -> StoreFuture<'_, Result<Box<dyn LaneStore>, RecoverError>> {
        Box::pin(async move {
            let lane = MemoryLane::open(&self.db, &self.owner, lane).await?;
            Ok(Box::new(lane) as Box<dyn LaneStore>)
        })
    }

    fn discontinuities(&self) -> u64 {
        self.db.with(|state| state.discontinuities)
    }

    fn claim_stock(&self, request: StockRequest) -> StoreFuture<'_, Result<ClaimedStock, Unavailable>> {
        Box::pin(self.claim(request))
    }

    fn list_stock_demands(&self) -> StoreFuture<'_, Result<Vec<StockDemand>, Unavailable>> {
        Box::pin(async move {
            self.db.simulate_read(&self.owner.node).await?;
            Ok(self.db.list_stock_demands(&self.owner))
        })
    }

    fn release_stock(&self, sku: Sku, kept: Vec<ChunkId>) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(async move {
            self.db.simulate_read(&self.owner.node).await?;
            self.db.release_stock(&self.owner, &sku, &kept);
            Ok(())
        })
    }

    fn load_wallets(
        &self,
        partner_id: PartnerId,
    ) -> StoreFuture<'_, Result<Vec<(Currency, WalletState)>, Unavailable>> {
        Box::pin(async move {
            self.db.simulate_read(&self.owner.node).await?;
            Ok(self.db.wallets_of(partner_id))
        })
    }

    fn load_order(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> StoreFuture<'_, Result<Option<StoredOrder>, Unavailable>> {
        Box::pin(async move {
            self.db.simulate_read(&self.owner.node).await?;
            Ok(self
                .db
                .stored_order(order_id)
                .filter(|stored| stored.order.partner_id == partner_id))
        })
    }

    fn count_orders(&self, partner_id: PartnerId, limit: u32) -> StoreFuture<'_, Result<u64, Unavailable>> {
        self.db.faults().order_counts += 1;
        Box::pin(async move {
            self.db.simulate_read(&self.owner.node).await?;
            Ok(self.db.count_orders(partner_id, limit))
        })
    }

    fn cap_usage(
        &self,
        partner_id: PartnerId,
        checks: Vec<CapCheck>,
    ) -> StoreFuture<'_, Result<Vec<i64>, Unavailable>> {
        self.db.faults().cap_reads += 1;
        Box::pin(async move {
            self.db.simulate_read(&self.owner.node).await?;
            let failing = self.db.faults().failing_cap_reads;
            if failing > 0 {
                self.db.faults().failing_cap_reads = failing - 1;
                return Err(Unavailable("the counters of caps cannot be read".to_owned()));
            }
            let now = self.db.now();
            let usage = |state: &mut State| {
                let used = checks
                    .iter()
                    .map(|check| state.tables.cap_usage(partner_id, check, now));
                used.collect()
            };
            Ok(self.db.with(usage))
        })
    }

    fn load_payout(
        &self,
        partner_id: PartnerId,
        payout_id: PayoutId,
    ) -> StoreFuture<'_, Result<Option<Payout>, Unavailable>> {
        Box::pin(async move {
            self.db.simulate_read(&self.owner.node).await?;
            Ok(self
                .db
                .payout(payout_id)
                .filter(|payout| payout.partner_id == partner_id))
        })
    }

    fn claim_reserved(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Vec<StockVoucher>, Unavailable>> {
        Box::pin(async move {
            self.db.simulate_read(&self.owner.node).await?;
            Ok(self.db.claim_reserved(&self.owner, purchase_id))
        })
    }

    fn allocate_stock_ids(&self, count: usize) -> StoreFuture<'_, Result<Vec<StockId>, Unavailable>> {
        Box::pin(async move {
            self.db.simulate_read(&self.owner.node).await?;
            Ok(self.db.with(|state| state.tables.allocate_stock_ids(count)))
        })
    }

    fn find_response(&self, key: KeyHash) -> StoreFuture<'_, Result<Option<StoredResponse>, Unavailable>> {
        Box::pin(async move {
            self.db.simulate_read(&self.owner.node).await?;
            Ok(self.db.find_response(key))
        })
    }
}
