//! Vouchers set aside for one record: a token that is settled, refuted, or gives itself back.

use super::actor::InventoryActor;
use super::actor::message::{VouchersFate, VouchersResolved};
use crate::domain::ledger::Receipt;
use crate::domain::product::Sku;
use crate::domain::voucher::Shelved;
use crate::journal::{Hold, Stale};
use crate::supervisor::{Found, OpenHold};

/// Vouchers set aside. Dropping it puts them back on the shelf.
#[derive(Debug)]
pub struct StockHold {
    shelf: Found<InventoryActor>,
    sku: Sku,
    vouchers: Vec<Shelved>,
    resolved: bool,
    _open: OpenHold,
}

impl StockHold {
    pub(super) fn new(shelf: Found<InventoryActor>, sku: Sku, vouchers: Vec<Shelved>) -> Self {
        let open = shelf.lineage.holds.begin();
        Self {
            shelf,
            sku,
            vouchers,
            resolved: false,
            _open: open,
        }
    }

    /// What they are.
    #[must_use]
    pub const fn sku(&self) -> &Sku {
        &self.sku
    }

    /// The vouchers, first to expire first.
    #[must_use]
    pub fn vouchers(&self) -> &[Shelved] {
        &self.vouchers
    }

    /// Tells the shelf, once. To a shelf that has died it says nothing: the next incarnation claims from the store.
    #[allow(clippy::disallowed_methods)] // no answer is needed, and a dead incarnation has nothing to settle
    fn resolve(&mut self, fate: VouchersFate) {
        if std::mem::replace(&mut self.resolved, true) {
            return;
        }
        let queued = self.shelf.lineage.meter.queue();
        let vouchers = std::mem::take(&mut self.vouchers);
        self.shelf.addr.do_send(VouchersResolved {
            vouchers,
            fate,
            queued,
        });
    }
}

impl Hold for StockHold {
    fn settle(mut self: Box<Self>, _: Option<Receipt>) {
        self.resolve(VouchersFate::Settled);
    }

    fn refute(mut self: Box<Self>, stale: Stale) {
        self.resolve(if stale.doubts_stock() {
            VouchersFate::Refuted
        } else {
            VouchersFate::Released
        });
    }
}

impl Drop for StockHold {
    fn drop(&mut self) {
        self.resolve(VouchersFate::Released);
    }
}
