//! Is what the actors of a node have in memory what the database says? Asked when nothing is under way.

use std::collections::BTreeSet;

use super::node::Node;
use crate::domain::ids::{PartnerId, StockId};
use crate::domain::product::Sku;
use crate::domain::voucher::Shelved;
use crate::testing::build;

impl Node {
    /// What the node still holds though nothing is under way, or knows wrong though nobody else wrote.
    pub async fn leaks(&self) -> Vec<String> {
        let mut leaks = Vec::new();
        let (under_way, keys) = (self.engine.under_way(), self.keys_running());
        if (under_way, keys) != (0, 0) {
            leaks.push(format!("{under_way} admitted, {keys} keys running"));
        }
        for (partner_id, reading) in self.engine.wallets.readings() {
            leaks.extend(self.wallet_leak(partner_id).await);
            if reading.mailbox_depth > 0 {
                leaks.push(format!("{partner_id}: {reading:?}"));
            }
        }
        for (sku, reading) in self.engine.inventory.readings() {
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
        let held = purse.aside() != build::minor(0);
        held.then(|| format!("{partner_id} holds {purse:?}"))
    }

    /// Whether the purse of a partner is what the database says: so if this node alone wrote, and it has read all else.
    pub async fn knows_balance(&self, partner_id: PartnerId) -> bool {
        let purse = self.engine.wallets.purse(partner_id, build::usd()).await;
        let known = purse.map(|purse| purse.newest());
        known.is_none() || known == self.world.db.wallet(build::usd_of(partner_id))
    }

    /// Vouchers that are set aside for nobody, that are free and cannot be sold, or that are another's and can.
    async fn shelf_leak(&self, sku: &Sku) -> Option<String> {
        let shelf = self.engine.inventory.shelf(sku).await?;
        let loaded: BTreeSet<_> = shelf.loaded().into_iter().collect();
        let mine = |voucher: &&Shelved| {
            loaded.contains(&voucher.chunk_id)
                && self.store.owns(voucher.chunk_id)
                && voucher.expiry >= shelf.floor()
        };
        let free = self.world.db.free(sku);
        let free: BTreeSet<_> = free.iter().filter(mine).copied().collect();
        let void = self.void();
        let on_sale = shelf.on_sale().filter(|voucher| mine(&voucher));
        let on_sale: BTreeSet<_> = on_sale.filter(|v| !void.contains(&v.stock_id)).collect();
        let sound = shelf.aside() == 0 && on_sale == free;
        sound.then_some(()).map_or_else(
            || {
                let differ: Vec<_> = on_sale.symmetric_difference(&free).collect();
                Some(format!("{sku} holds {}, {differ:?} differ", shelf.aside()))
            },
            |()| None,
        )
    }

    /// What an operator took out: a shelf learns of it only when it tries to sell it.
    fn void(&self) -> BTreeSet<StockId> {
        let rows = self.world.db.allocations().into_iter();
        rows.filter(|(_, holder)| *holder == crate::testing::Holder::Void)
            .map(|(stock_id, _)| stock_id)
            .collect()
    }
}
