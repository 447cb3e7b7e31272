//! One start of one node, as the engine has it: the store port over the database in memory.
//!
//! Rule: reads see committed rows alone, and any of them may be slow or not answered.

use uuid::Uuid;

use super::MemoryDatabase;
use super::fault::FaultKind;
use super::lane::MemoryLane;
use super::state::State;
use super::tables::Owner;
use crate::domain::answer::{KeyHash, KnownAnswer};
use crate::domain::ids::{ChunkId, OrderId, PartnerId, PayoutId, StockId};
use crate::domain::ledger::Receipt;
use crate::domain::money::Currency;
use crate::domain::order::StoredOrder;
use crate::domain::payout::Payout;
use crate::domain::stock::{ClaimedStock, StockRequest};
use crate::domain::voucher::Shelved;
use crate::store::{LaneStore, RecoverError, Store, StoreFuture, Unavailable};

/// The store of one start of a node. A later start of the same node supersedes it.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    db: MemoryDatabase,
    by: Owner,
}

impl MemoryStore {
    pub(super) fn new(db: &MemoryDatabase, by: Owner) -> Self {
        Self { db: db.clone(), by }
    }

    /// The number of this start of its node.
    #[must_use]
    pub fn incarnation(&self) -> i64 {
        self.by.incarnation
    }

    /// Whether a chunk belongs to this start of its node.
    #[must_use]
    pub fn owns(&self, chunk_id: ChunkId) -> bool {
        let owner = |state: &mut State| state.tables.chunks.get(&chunk_id)?.owner.clone();
        self.db.with(owner).is_some_and(|owner| owner == self.by)
    }

    async fn claim(&self, request: StockRequest) -> Result<ClaimedStock, Unavailable> {
        self.db.reach(&self.by.node).await?;
        let claimed = self.db.claim(&self.by, &request);
        if self.db.faults().draw(&self.by.node, FaultKind::ClaimLost) {
            return Err(Unavailable(
                "the connection was closed before the answer".to_owned(),
            ));
        }
        Ok(claimed)
    }
}

impl MemoryDatabase {
    /// A read's way to the database: at times long, at times not to be had.
    pub(super) async fn reach(&self, node: &str) -> Result<(), Unavailable> {
        let delay = self.faults().draw_delay();
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
        }
        if self.faults().draw(node, FaultKind::ReadFails) {
            return Err(Unavailable("the connection was refused".to_owned()));
        }
        Ok(())
    }

    /// The answer under a key, unless its time is over.
    fn answer_under(&self, key: KeyHash) -> Option<KnownAnswer> {
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
            let held = row.order.vouchers.iter().map(|held| held.voucher_id);
            Some(StoredOrder {
                order: row.order.clone(),
                last_sequence: row.last_sequence,
                retrieved: held.filter(|id| state.tables.retrieved.contains(id)).collect(),
            })
        })
    }

    fn wallets_of(&self, partner_id: PartnerId) -> Vec<(Currency, Receipt)> {
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
            let lane = MemoryLane::open(&self.db, &self.by, lane).await?;
            Ok(Box::new(lane) as Box<dyn LaneStore>)
        })
    }

    fn claim_stock(&self, request: StockRequest) -> StoreFuture<'_, Result<ClaimedStock, Unavailable>> {
        Box::pin(self.claim(request))
    }

    fn load_wallets(
        &self,
        partner_id: PartnerId,
    ) -> StoreFuture<'_, Result<Vec<(Currency, Receipt)>, Unavailable>> {
        Box::pin(async move {
            self.db.reach(&self.by.node).await?;
            Ok(self.db.wallets_of(partner_id))
        })
    }

    fn load_order(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> StoreFuture<'_, Result<Option<StoredOrder>, Unavailable>> {
        Box::pin(async move {
            self.db.reach(&self.by.node).await?;
            Ok(self
                .db
                .stored_order(order_id)
                .filter(|stored| stored.order.partner_id == partner_id))
        })
    }

    fn load_payout(
        &self,
        partner_id: PartnerId,
        payout_id: PayoutId,
    ) -> StoreFuture<'_, Result<Option<Payout>, Unavailable>> {
        Box::pin(async move {
            self.db.reach(&self.by.node).await?;
            Ok(self
                .db
                .payout(payout_id)
                .filter(|payout| payout.partner_id == partner_id))
        })
    }

    fn claim_bought(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Vec<Shelved>, Unavailable>> {
        Box::pin(async move {
            self.db.reach(&self.by.node).await?;
            Ok(self.db.claim_bought(&self.by, purchase_id))
        })
    }

    fn number_stock(&self, count: usize) -> StoreFuture<'_, Result<Vec<StockId>, Unavailable>> {
        Box::pin(async move {
            self.db.reach(&self.by.node).await?;
            Ok(self.db.with(|state| state.tables.number_stock(count)))
        })
    }

    fn find_answer(&self, key: KeyHash) -> StoreFuture<'_, Result<Option<KnownAnswer>, Unavailable>> {
        Box::pin(async move {
            self.db.reach(&self.by.node).await?;
            Ok(self.db.answer_under(key))
        })
    }
}
