//! Comparison of a node's in-memory state with the database, when no operation is in flight.

use std::collections::BTreeSet;

use vouchsafe_domain::ids::{PartnerId, StockId};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::StockVoucher;

use super::node::Node;
use crate::build;

impl Node {
    /// Differences: holds without an operation, and state that deviates from the database.
    pub async fn leaks(&self) -> Vec<String> {
        let mut leaks = Vec::new();
        let (in_flight, keys) = (self.engine.in_flight(), self.engine.keys_in_flight());
        if (in_flight, keys) != (0, 0) {
            leaks.push(format!("{in_flight} admitted, {keys} keys in flight"));
        }
        for (partner_id, reading) in self.engine.wallets.stats() {
            leaks.extend(self.wallet_leak(partner_id).await);
            if reading.mailbox_depth > 0 {
                leaks.push(format!("{partner_id}: {reading:?}"));
            }
        }
        for (sku, reading) in self.engine.inventory.stats() {
            leaks.extend(self.shelf_leak(&sku).await);
            if reading.mailbox_depth > 0 {
                leaks.push(format!("{sku}: {reading:?}"));
            }
        }
        leaks.sort();
        leaks
    }

    async fn wallet_leak(&self, partner_id: PartnerId) -> Option<String> {
        let purse = self.engine.wallets.purse(partner_id, build::usd()).await?;
        let held = purse.held() != build::minor(0);
        held.then(|| format!("{partner_id} holds {purse:?}"))
    }

    /// Whether the purse of a partner equals the database; true if only this node wrote or it has read
    /// everything else.
    pub async fn has_current_balance(&self, partner_id: PartnerId) -> bool {
        let purse = self.engine.wallets.purse(partner_id, build::usd()).await;
        let known = purse.map(|purse| purse.newest());
        let stored = self.simulation.db.wallet(build::usd_wallet(partner_id));
        known.is_none() || known == stored.map(|wallet| wallet.newest)
    }

    /// Vouchers held without an operation, free ones not on sale, and ones on sale that are not free.
    async fn shelf_leak(&self, sku: &Sku) -> Option<String> {
        let shelf = self.engine.inventory.shelf(sku).await?;
        let loaded: BTreeSet<_> = shelf.loaded_chunks().into_iter().collect();
        let is_sellable = |voucher: &&StockVoucher| {
            loaded.contains(&voucher.chunk_id)
                && self.store.owns(voucher.chunk_id)
                && voucher.expiry >= shelf.floor()
        };
        let free = self.simulation.db.free_vouchers(sku);
        let free: BTreeSet<_> = free.iter().filter(is_sellable).copied().collect();
        let void = self.voided_stock();
        let on_sale = shelf.free_vouchers().filter(|voucher| is_sellable(&voucher));
        let on_sale: BTreeSet<_> = on_sale.filter(|v| !void.contains(&v.stock_id)).collect();
        let matches = shelf.held() == 0 && on_sale == free;
        matches.then_some(()).map_or_else(
            || {
                let difference: Vec<_> = on_sale.symmetric_difference(&free).collect();
                Some(format!(
                    "{sku} holds {}, stock differs by {difference:?}",
                    shelf.held()
                ))
            },
            |()| None,
        )
    }

    /// Voided stock, which a shelf detects only when it tries to sell it.
    fn voided_stock(&self) -> BTreeSet<StockId> {
        let rows = self.simulation.db.allocations().into_iter();
        rows.filter(|(_, holder)| *holder == crate::Holder::Void)
            .map(|(stock_id, _)| stock_id)
            .collect()
    }
}
