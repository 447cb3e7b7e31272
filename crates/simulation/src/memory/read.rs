//! Reads of committed rows for tests.

use vouchsafe_domain::idempotency::KeyHash;
use vouchsafe_domain::ids::{OrderId, PartnerId, PayoutId, StockId};
use vouchsafe_domain::ledger::WalletKey;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::payout::Payout;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::StockVoucher;

use super::MemoryDatabase;
use super::feed::EventRow;
use super::tables::KeyRow;
use crate::rows::{FeedEntry, Holder, LedgerEntry, StoredKey, StoredWallet};

impl MemoryDatabase {
    /// Row of a wallet, if it exists.
    #[must_use]
    pub fn wallet(&self, wallet: WalletKey) -> Option<StoredWallet> {
        self.with(|state| state.tables.wallets.get(&wallet).copied())
    }

    #[must_use]
    pub fn payout(&self, payout_id: PayoutId) -> Option<Payout> {
        self.with(|state| state.tables.payouts.get(&payout_id).cloned())
    }

    #[must_use]
    pub fn payouts(&self) -> Vec<Payout> {
        self.with(|state| state.tables.payouts.values().cloned().collect())
    }

    /// Ledger of a wallet, oldest first.
    #[must_use]
    pub fn ledger(&self, wallet: WalletKey) -> Vec<LedgerEntry> {
        self.with(|state| state.tables.ledger.get(&wallet).cloned().unwrap_or_default())
    }

    #[must_use]
    pub fn order(&self, order_id: OrderId) -> Option<Order> {
        self.with(|state| state.tables.orders.get(&order_id).map(|row| row.order.clone()))
    }

    #[must_use]
    pub fn orders(&self) -> Vec<Order> {
        self.with(|state| {
            state
                .tables
                .orders
                .values()
                .map(|row| row.order.clone())
                .collect()
        })
    }

    /// Holder of each allocated voucher, by stock id.
    #[must_use]
    pub fn allocations(&self) -> Vec<(StockId, Holder)> {
        self.with(|state| {
            let rows = state.tables.allocations.iter();
            rows.flat_map(|(stock_id, rows)| rows.iter().map(|row| (*stock_id, row.holder, row.returned)))
                .filter(|(_, _, returned)| !returned)
                .map(|(stock_id, holder, _)| (stock_id, holder))
                .collect()
        })
    }

    /// Free vouchers of a SKU, sorted by expiry.
    #[must_use]
    pub fn free_vouchers(&self, sku: &Sku) -> Vec<StockVoucher> {
        self.with(|state| {
            let chunks = state.tables.chunks.iter().filter(|(_, chunk)| chunk.sku == *sku);
            let free = chunks.flat_map(|(chunk_id, chunk)| {
                let shelve = |(stock_id, expiry)| StockVoucher {
                    expiry,
                    stock_id,
                    chunk_id: *chunk_id,
                };
                state.tables.free_vouchers(chunk).into_iter().map(shelve)
            });
            let mut free: Vec<_> = free.collect();
            free.sort();
            free
        })
    }

    /// Row of a key, expired or not.
    #[must_use]
    pub fn stored_key(&self, key: KeyHash) -> Option<StoredKey> {
        let fact = |row: &KeyRow| StoredKey {
            known: row.known.clone(),
            never_expires: row.expires_at.is_none(),
        };
        self.with(|state| state.tables.keys.get(&key).map(fact))
    }

    /// Events of a partner, by number.
    #[must_use]
    pub fn events(&self, partner_id: PartnerId) -> Vec<FeedEntry> {
        let fact = |row: &EventRow| FeedEntry {
            number: row.number,
            bundle: row.bundle.clone(),
        };
        self.with(|state| {
            state
                .tables
                .events
                .get(&partner_id)
                .into_iter()
                .flatten()
                .map(fact)
                .collect()
        })
    }
}
