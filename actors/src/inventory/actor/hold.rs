//! Stock hold: vouchers reserved for one record, until they are settled, invalidated or released.

use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::StockVoucher;

use super::InventoryActor;
use super::message::{ResolveVouchers, VouchersResolution};
use crate::journal::Hold;
use crate::ports::record::StaleReason;
use crate::supervisor::{ActorRef, OpenHold};

/// Held vouchers. Dropping the hold returns them to the shelf.
#[derive(Debug)]
pub struct StockHold {
    shelf: ActorRef<InventoryActor>,
    sku: Sku,
    vouchers: Vec<StockVoucher>,
    resolved: bool,
    _open: OpenHold,
}

impl StockHold {
    pub(super) fn new(shelf: ActorRef<InventoryActor>, sku: Sku, vouchers: Vec<StockVoucher>) -> Self {
        let open = shelf.lineage.holds.open_hold();
        Self {
            shelf,
            sku,
            vouchers,
            resolved: false,
            _open: open,
        }
    }

    /// The SKU of the vouchers.
    #[must_use]
    pub const fn sku(&self) -> &Sku {
        &self.sku
    }

    /// The vouchers, earliest expiry first.
    #[must_use]
    pub fn vouchers(&self) -> &[StockVoucher] {
        &self.vouchers
    }

    /// Notifies the shelf, once. A message to a dead actor is lost, which is harmless: the next incarnation
    /// claims from the store.
    #[allow(clippy::disallowed_methods)] // no reply is needed, and a dead actor has no state to settle
    fn resolve(&mut self, resolution: VouchersResolution) {
        if std::mem::replace(&mut self.resolved, true) {
            return;
        }
        let queued = self.shelf.lineage.metrics.enqueue();
        let vouchers = std::mem::take(&mut self.vouchers);
        self.shelf.addr.do_send(ResolveVouchers {
            vouchers,
            resolution,
            slot: queued,
        });
    }
}

impl Hold for StockHold {
    fn settle(mut self: Box<Self>, _: Option<WalletState>) {
        self.resolve(VouchersResolution::Settled);
    }

    fn invalidate(mut self: Box<Self>, stale: StaleReason) {
        self.resolve(if stale.is_stock_suspect() {
            VouchersResolution::Invalidated
        } else {
            VouchersResolution::Released
        });
    }
}

impl Drop for StockHold {
    fn drop(&mut self) {
        self.resolve(VouchersResolution::Released);
    }
}
