//! What a test reads back: committed rows, as facts.

use super::MemoryDatabase;
use super::tables::{EventRow, KeyRow};
use crate::domain::answer::KeyHash;
use crate::domain::ids::{OrderId, PartnerId, PayoutId, StockId};
use crate::domain::ledger::{Receipt, WalletKey};
use crate::domain::money::Amount;
use crate::domain::order::Order;
use crate::domain::payout::Payout;
use crate::domain::product::Sku;
use crate::domain::voucher::Shelved;
use crate::testing::facts::{Entry, Holder, Kept, Told};

impl MemoryDatabase {
    /// The newest state of a wallet, if there is one.
    #[must_use]
    pub fn wallet(&self, wallet: WalletKey) -> Option<Receipt> {
        self.with(|state| state.tables.wallets.get(&wallet).map(|row| row.newest))
    }

    /// What was debited for orders that are not delivered yet.
    #[must_use]
    pub fn pending_orders(&self, wallet: WalletKey) -> Amount {
        self.with(|state| {
            state
                .tables
                .wallets
                .get(&wallet)
                .map_or(Amount::ZERO, |row| row.pending_orders)
        })
    }

    /// What left for payouts that are not paid yet.
    #[must_use]
    pub fn pending_payouts(&self, wallet: WalletKey) -> Amount {
        self.with(|state| {
            let row = state.tables.wallets.get(&wallet);
            row.map_or(Amount::ZERO, |row| row.pending_payouts)
        })
    }

    /// A payout.
    #[must_use]
    pub fn payout(&self, payout_id: PayoutId) -> Option<Payout> {
        self.with(|state| state.tables.payouts.get(&payout_id).cloned())
    }

    /// All payouts.
    #[must_use]
    pub fn payouts(&self) -> Vec<Payout> {
        self.with(|state| state.tables.payouts.values().cloned().collect())
    }

    /// The ledger of a wallet, oldest first.
    #[must_use]
    pub fn ledger(&self, wallet: WalletKey) -> Vec<Entry> {
        self.with(|state| state.tables.ledger.get(&wallet).cloned().unwrap_or_default())
    }

    /// An order.
    #[must_use]
    pub fn order(&self, order_id: OrderId) -> Option<Order> {
        self.with(|state| state.tables.orders.get(&order_id).map(|row| row.order.clone()))
    }

    /// All orders, by id.
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

    /// Who has which voucher, by stock row.
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

    /// The vouchers of a SKU that nobody has, first to expire first.
    #[must_use]
    pub fn free(&self, sku: &Sku) -> Vec<Shelved> {
        self.with(|state| {
            let chunks = state.tables.chunks.iter().filter(|(_, chunk)| chunk.sku == *sku);
            let free = chunks.flat_map(|(chunk_id, chunk)| {
                let shelve = |(stock_id, expiry)| Shelved {
                    expiry,
                    stock_id,
                    chunk_id: *chunk_id,
                };
                state.tables.free(chunk).into_iter().map(shelve)
            });
            let mut free: Vec<_> = free.collect();
            free.sort();
            free
        })
    }

    /// The row of a key, expired or not.
    #[must_use]
    pub fn kept(&self, key: KeyHash) -> Option<Kept> {
        let fact = |row: &KeyRow| Kept {
            known: row.known.clone(),
            for_ever: row.expires_at.is_none(),
        };
        self.with(|state| state.tables.keys.get(&key).map(fact))
    }

    /// What a partner was told, in the order of its numbers.
    #[must_use]
    pub fn events(&self, partner_id: PartnerId) -> Vec<Told> {
        let fact = |row: &EventRow| Told {
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
