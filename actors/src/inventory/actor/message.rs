//! Messages of the inventory actor.

use actix::Message;
use vouchsafe_domain::voucher::{Expiry, StockVoucher};

use super::Supply;
use crate::supervisor::{MailboxSlot, Reply};

/// A request for vouchers of a SKU.
#[derive(Debug, Clone, Copy)]
pub(in crate::inventory) struct VoucherRequest {
    pub(in crate::inventory) quantity: usize,
    pub(in crate::inventory) not_before: Expiry,
}

#[derive(Debug, Message)]
#[rtype(result = "Reply<Supply>")]
pub(in crate::inventory) struct HoldVouchers {
    pub(in crate::inventory) request: VoucherRequest,
    pub(in crate::inventory) slot: MailboxSlot,
}

#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::inventory) struct ResolveVouchers {
    pub(in crate::inventory) vouchers: Vec<StockVoucher>,
    pub(in crate::inventory) resolution: VouchersResolution,
    pub(in crate::inventory) slot: MailboxSlot,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::inventory) enum VouchersResolution {
    Settled,
    Released,
    /// A commit rejected one of them.
    Invalidated,
}

/// The stock was changed by others.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::inventory) struct NotifyStockChange {
    pub(in crate::inventory) change: StockChange,
    pub(in crate::inventory) slot: MailboxSlot,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::inventory) enum StockChange {
    /// New stock can be claimed; with its earliest expiry.
    Restocked(Expiry),
    /// Vouchers may have been taken out.
    Invalidated,
    /// Another node needs this number of vouchers.
    Demanded(usize),
}
