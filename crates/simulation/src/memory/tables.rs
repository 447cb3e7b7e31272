//! Committed rows, as plain data. Transactions control access to them.
//!
//! A row has the columns of the row in Postgres, plus fields that only the invariants use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use vouchsafe_domain::audit::AuditEntry;
use vouchsafe_domain::cap::{CapCheck, CapCounter};
use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};
use vouchsafe_domain::ids::{
    ChunkId, OrderId, PartnerId, PayoutId, StockId, TransactionId, VoucherId, WebhookId,
};
use vouchsafe_domain::ledger::{Movement, PendingDelta, WalletKey, WalletState};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::payout::Payout;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::Expiry;

pub(super) use super::clock::DbTime;
use super::endpoint::Endpoint;
use super::feed::{EventRow, Feed};
pub(super) use super::owner::{LaneId, Owner};
use crate::rows::{Holder, LedgerEntry, StoredWallet};

#[derive(Debug, Clone)]
pub(super) struct NodeRow {
    pub(super) incarnation: i64,
    pub(super) renewed_at: DbTime,
    pub(super) lease_until: DbTime,
}

/// A node's demand for a SKU.
#[derive(Debug, Clone)]
pub(super) struct DemandRow {
    pub(super) quantity: usize,
    pub(super) demanded_at: DbTime,
    pub(super) renewed_at: DbTime,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LaneRow {
    pub(super) generation: i64,
    pub(super) batch: i64,
}

#[derive(Debug, Clone)]
pub(super) struct KeyRow {
    pub(super) known: StoredResponse,
    pub(super) expires_at: Option<DbTime>,
    /// The order of the response; for the invariant that each order has one key.
    pub(super) order_id: Option<OrderId>,
}

#[derive(Debug, Clone)]
pub(super) struct OrderRow {
    pub(super) order: Order,
    pub(super) last_sequence: u32,
    pub(super) committed_at: DbTime,
}

#[derive(Debug, Clone)]
pub(super) struct AllocationRow {
    pub(super) holder: Holder,
    /// The writer; `None` for a void.
    pub(super) committed_by: Option<Owner>,
    /// Owner of the chunk at the time of the commit.
    pub(super) chunk_owner: Option<Owner>,
    /// The voucher returned to stock, under another row.
    pub(super) returned: bool,
}

#[derive(Debug, Clone)]
pub(super) struct StockRow {
    pub(super) sku: Sku,
    pub(super) chunk_id: ChunkId,
    pub(super) expiry: Expiry,
    /// The first stock id of the code, the same for all its rows.
    pub(super) code: StockId,
}

#[derive(Debug, Clone)]
pub(super) struct ChunkRow {
    pub(super) sku: Sku,
    pub(super) owner: Option<Owner>,
    pub(super) emptied: bool,
    /// The purchase for which the chunk is reserved.
    pub(super) purchase: Option<Uuid>,
    pub(super) stock: Vec<StockId>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Tables {
    pub(super) nodes: BTreeMap<Arc<str>, NodeRow>,
    pub(super) lanes: BTreeMap<LaneId, LaneRow>,
    pub(super) keys: BTreeMap<KeyHash, KeyRow>,
    pub(super) expired_keys: Vec<(KeyHash, KeyRow)>,
    pub(super) wallets: BTreeMap<WalletKey, StoredWallet>,
    pub(super) ledger: BTreeMap<WalletKey, Vec<LedgerEntry>>,
    pub(super) transactions: BTreeSet<TransactionId>,
    pub(super) orders: BTreeMap<OrderId, OrderRow>,
    pub(super) payouts: BTreeMap<PayoutId, Payout>,
    /// Vouchers whose codes were retrieved.
    pub(super) retrieved: BTreeSet<VoucherId>,
    /// A list although the key is unique: with that guard removed, a voucher that is sold twice must show up
    /// twice.
    pub(super) allocations: BTreeMap<StockId, Vec<AllocationRow>>,
    pub(super) stock: BTreeMap<StockId, StockRow>,
    pub(super) chunks: BTreeMap<ChunkId, ChunkRow>,
    /// Keyed by SKU and node.
    pub(super) stock_demands: BTreeMap<(Sku, Arc<str>), DemandRow>,
    /// Last assigned stock id.
    pub(super) stock_ids: i64,
    pub(super) events: BTreeMap<PartnerId, Vec<EventRow>>,
    pub(super) endpoints: BTreeMap<WebhookId, Endpoint>,
    /// Counters of daily caps.
    pub(super) usage: Vec<(PartnerId, CapCounter, i64)>,
    /// Operators' decisions, oldest first.
    pub(super) audit_log: Vec<AuditEntry>,
}

impl Tables {
    /// Whether this incarnation of the node is the newest.
    pub(super) fn is_current(&self, owner: &Owner) -> bool {
        self.nodes
            .get(&owner.node)
            .is_some_and(|row| row.incarnation == owner.incarnation)
    }

    /// Newest state of a wallet; [`WalletState::EMPTY`] if it does not exist.
    pub(super) fn newest(&self, wallet: &WalletKey) -> WalletState {
        self.wallets
            .get(wallet)
            .map_or(WalletState::EMPTY, |row| row.newest)
    }

    /// Free vouchers of a chunk, sorted by expiry.
    pub(super) fn free_vouchers(&self, chunk: &ChunkRow) -> Vec<(StockId, Expiry)> {
        let free = chunk.stock.iter().filter(|id| !self.allocations.contains_key(id));
        let mut free: Vec<_> = free.map(|id| (*id, self.stock[id].expiry)).collect();
        free.sort_by_key(|(id, expiry)| (*expiry, *id));
        free
    }

    /// Posts a movement: updates the wallet and appends to the ledger.
    pub(super) fn post(&mut self, wallet: WalletKey, movement: &Movement) -> WalletState {
        let row = self.wallets.entry(wallet).or_default();
        let balance = row
            .newest
            .balance
            .checked_add(movement.amount)
            .expect("verified before the batch is written");
        row.newest = WalletState {
            sequence: row.newest.sequence + 1,
            balance,
        };
        self.transactions.insert(movement.transaction_id);
        let receipt = row.newest;
        let movement = movement.clone();
        self.ledger
            .entry(wallet)
            .or_default()
            .push(LedgerEntry { receipt, movement });
        receipt
    }

    /// What a partner has used of a cap; pending orders are counted up to one more than the cap.
    pub(super) fn cap_usage(&self, partner_id: PartnerId, check: &CapCheck, now: DbTime) -> i64 {
        let orders = || {
            self.orders
                .values()
                .filter(|row| row.order.partner_id == partner_id)
        };
        let recent = |within_s: u32| {
            let since = now.before(Duration::from_secs(within_s.into()));
            orders().filter(move |row| row.committed_at >= since)
        };
        let count = |orders: usize| i64::try_from(orders).expect("fewer orders than bits");
        match &check.counter {
            CapCounter::PendingOrders => {
                let pending = count(orders().filter(|row| !row.order.closed).count());
                check.cap.map_or(pending, |cap| pending.min(cap + 1))
            }
            CapCounter::PendingAmount(currency) => {
                let wallet = WalletKey {
                    partner_id,
                    currency: *currency,
                };
                self.wallets
                    .get(&wallet)
                    .map_or(0, |row| row.pending_orders.minor())
            }
            CapCounter::RecentOrders(within_s) => count(recent(*within_s).count()),
            CapCounter::RecentAmount(within_s, currency) => recent(*within_s)
                .map(|row| row.order.total)
                .filter(|total| total.currency == *currency)
                .map(|total| total.amount.minor())
                .sum(),
            CapCounter::Cancellations(_) | CapCounter::Spend(..) => {
                let own = self
                    .usage
                    .iter()
                    .filter(|(of, name, _)| *of == partner_id && *name == check.counter);
                own.map(|(_, _, added)| added).sum()
            }
        }
    }

    /// Counts what a committed record adds.
    pub(super) fn count_usage(&mut self, partner_id: PartnerId, check: &CapCheck) {
        if check.counter.is_stored() {
            self.usage.push((partner_id, check.counter.clone(), check.added));
        }
    }

    /// Adds to the pending amounts of a wallet.
    pub(super) fn add_pending(&mut self, wallet: WalletKey, shift: &PendingDelta) {
        let row = self.wallets.entry(wallet).or_default();
        let sum = |held: Amount, by: Amount| {
            held.checked_add(by)
                .expect("pending amounts are parts of a debit")
        };
        row.pending_orders = sum(row.pending_orders, shift.orders);
        row.pending_payouts = sum(row.pending_payouts, shift.payouts);
    }

    pub(super) fn allocate_stock_ids(&mut self, count: usize) -> Vec<StockId> {
        let first = self.stock_ids + 1;
        self.stock_ids += i64::try_from(count).expect("few");
        (first..=self.stock_ids).map(StockId).collect()
    }

    pub(super) fn append_events(&mut self, partner_id: PartnerId, bundle: &EventBundle, at: DbTime) {
        let number = self.feed(partner_id).newest() + 1;
        self.events.entry(partner_id).or_default().push(EventRow {
            number,
            bundle: bundle.clone(),
            at,
        });
    }

    /// Removes the events with later numbers.
    pub(super) fn lose_events(&mut self, after: i64) {
        for rows in self.events.values_mut() {
            rows.retain(|row| row.last_number() <= after);
        }
    }

    /// Events of a partner.
    pub(super) fn feed(&self, partner_id: PartnerId) -> Feed<'_> {
        let rows = self.events.get(&partner_id);
        Feed {
            partner_id,
            rows: rows.map(Vec::as_slice).unwrap_or_default(),
        }
    }

    /// An endpoint, if it exists, and its partner's events.
    pub(super) fn endpoint_with_feed(&mut self, webhook_id: WebhookId) -> Option<(&mut Endpoint, Feed<'_>)> {
        let endpoint = self.endpoints.get_mut(&webhook_id)?;
        let rows = self.events.get(&endpoint.partner_id);
        let feed = Feed {
            partner_id: endpoint.partner_id,
            rows: rows.map(Vec::as_slice).unwrap_or_default(),
        };
        Some((endpoint, feed))
    }
}
