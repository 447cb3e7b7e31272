//! The rows that are committed. Plain data: who may change them, and when, is the transaction's business.
//!
//! Rule: a row has what the row in Postgres has, and beside it only what an invariant needs to be checked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::domain::answer::{KeyHash, KnownAnswer};
use crate::domain::deed::Deed;
use crate::domain::event::EventBundle;
use crate::domain::ids::{ChunkId, OrderId, PartnerId, PayoutId, StockId, TransactionId, VoucherId};
use crate::domain::ledger::{Movement, PendingShift, Receipt, WalletKey};
use crate::domain::money::Amount;
use crate::domain::order::Order;
use crate::domain::payout::Payout;
use crate::domain::product::Sku;
use crate::domain::voucher::Expiry;
use crate::testing::facts::{Entry, Holder};

/// The database's clock: time since long before it was made, so that a key can be made older than the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DbTime(pub(super) Duration);

impl DbTime {
    pub(super) fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    pub(super) fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}

/// One start of one node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) node: Arc<str>,
    pub(super) incarnation: i64,
}

/// A lane of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaneId {
    pub(super) node: Arc<str>,
    pub(super) lane: u16,
}

#[derive(Debug, Clone)]
pub(super) struct NodeRow {
    pub(super) incarnation: i64,
    pub(super) lease_until: DbTime,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LaneRow {
    pub(super) generation: i64,
    pub(super) batch: i64,
}

#[derive(Debug, Clone)]
pub(super) struct KeyRow {
    pub(super) known: KnownAnswer,
    pub(super) expires_at: Option<DbTime>,
    /// What it answers for, to check that each order has one key.
    pub(super) order_id: Option<OrderId>,
}

#[derive(Debug, Clone)]
pub(super) struct WalletRow {
    pub(super) newest: Receipt,
    pub(super) pending_orders: Amount,
    pub(super) pending_payouts: Amount,
}

impl Default for WalletRow {
    fn default() -> Self {
        Self {
            newest: Receipt::EMPTY,
            pending_orders: Amount::ZERO,
            pending_payouts: Amount::ZERO,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct OrderRow {
    pub(super) order: Order,
    /// The number of its last event.
    pub(super) last_sequence: u32,
}

#[derive(Debug, Clone)]
pub(super) struct AllocationRow {
    pub(super) holder: Holder,
    /// Who committed it; nobody for a void.
    pub(super) by: Option<Owner>,
    /// Whom the chunk belonged to at that moment.
    pub(super) owner: Option<Owner>,
    /// It went back to stock, under another row.
    pub(super) returned: bool,
}

#[derive(Debug, Clone)]
pub(super) struct StockRow {
    pub(super) sku: Sku,
    pub(super) chunk_id: ChunkId,
    pub(super) expiry: Expiry,
    /// The row that the code came in with: the same for all rows of a code.
    pub(super) code: StockId,
}

#[derive(Debug, Clone)]
pub(super) struct ChunkRow {
    pub(super) sku: Sku,
    pub(super) owner: Option<Owner>,
    pub(super) emptied: bool,
    /// Under which purchase it was bought, if it is kept for an order.
    pub(super) purchase: Option<Uuid>,
    pub(super) stock: Vec<StockId>,
}

#[derive(Debug, Clone)]
pub(super) struct EventRow {
    pub(super) number: i64,
    pub(super) bundle: EventBundle,
}

/// All tables.
#[derive(Debug, Clone, Default)]
pub(super) struct Tables {
    pub(super) nodes: BTreeMap<Arc<str>, NodeRow>,
    pub(super) lanes: BTreeMap<LaneId, LaneRow>,
    pub(super) keys: BTreeMap<KeyHash, KeyRow>,
    /// Keys that expired and were claimed again.
    pub(super) retired: Vec<(KeyHash, KeyRow)>,
    pub(super) wallets: BTreeMap<WalletKey, WalletRow>,
    pub(super) ledger: BTreeMap<WalletKey, Vec<Entry>>,
    /// The ledger's primary key.
    pub(super) transactions: BTreeSet<TransactionId>,
    pub(super) orders: BTreeMap<OrderId, OrderRow>,
    pub(super) payouts: BTreeMap<PayoutId, Payout>,
    /// Vouchers whose codes were read.
    pub(super) retrieved: BTreeSet<VoucherId>,
    /// A list, though the key is unique: with that guard off, a voucher that is sold twice must be seen twice.
    pub(super) allocations: BTreeMap<StockId, Vec<AllocationRow>>,
    pub(super) stock: BTreeMap<StockId, StockRow>,
    pub(super) chunks: BTreeMap<ChunkId, ChunkRow>,
    /// How many rows of stock were ever numbered.
    pub(super) stock_ids: i64,
    pub(super) events: BTreeMap<PartnerId, Vec<EventRow>>,
    /// The number of each partner's next event.
    pub(super) next_event: BTreeMap<PartnerId, i64>,
    /// What operators decided, oldest first.
    pub(super) trail: Vec<Deed>,
}

impl Tables {
    /// Whether this start of the node is still the newest.
    pub(super) fn is_current(&self, owner: &Owner) -> bool {
        self.nodes
            .get(&owner.node)
            .is_some_and(|row| row.incarnation == owner.incarnation)
    }

    /// The newest state of a wallet; empty where there is none.
    pub(super) fn newest(&self, wallet: &WalletKey) -> Receipt {
        self.wallets.get(wallet).map_or(Receipt::EMPTY, |row| row.newest)
    }

    /// The free vouchers of a chunk, first to expire first.
    pub(super) fn free(&self, chunk: &ChunkRow) -> Vec<(StockId, Expiry)> {
        let free = chunk.stock.iter().filter(|id| !self.allocations.contains_key(id));
        let mut free: Vec<_> = free.map(|id| (*id, self.stock[id].expiry)).collect();
        free.sort_by_key(|(id, expiry)| (*expiry, *id));
        free
    }

    /// Books a movement: the wallet's next number, its balance, its row in the ledger.
    pub(super) fn book(&mut self, wallet: WalletKey, movement: &Movement) -> Receipt {
        let row = self.wallets.entry(wallet).or_default();
        let balance = row
            .newest
            .balance
            .checked_add(movement.amount)
            .expect("checked when the balance was read");
        row.newest = Receipt {
            sequence: row.newest.sequence + 1,
            balance,
        };
        self.transactions.insert(movement.transaction_id);
        let after = row.newest;
        let movement = movement.clone();
        self.ledger
            .entry(wallet)
            .or_default()
            .push(Entry { after, movement });
        after
    }

    /// Shifts what waits for something in a wallet.
    pub(super) fn shift(&mut self, wallet: WalletKey, shift: &PendingShift) {
        let row = self.wallets.entry(wallet).or_default();
        let sum = |held: Amount, by: Amount| held.checked_add(by).expect("parts of what was debited");
        row.pending_orders = sum(row.pending_orders, shift.orders);
        row.pending_payouts = sum(row.pending_payouts, shift.payouts);
    }

    /// Numbers rows of stock.
    pub(super) fn number_stock(&mut self, count: usize) -> Vec<StockId> {
        let first = self.stock_ids + 1;
        self.stock_ids += i64::try_from(count).expect("few");
        (first..=self.stock_ids).map(StockId).collect()
    }

    /// Writes events under the partner's next numbers.
    pub(super) fn tell(&mut self, partner_id: PartnerId, bundle: &EventBundle) {
        let next = self.next_event.entry(partner_id).or_insert(1);
        let number = *next;
        *next += i64::from(bundle.count());
        self.events.entry(partner_id).or_default().push(EventRow {
            number,
            bundle: bundle.clone(),
        });
    }
}
