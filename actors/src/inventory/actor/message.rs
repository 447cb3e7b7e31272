//! What an inventory actor is asked and told.

use actix::Message;

use super::Supply;
use crate::domain::voucher::{Expiry, Shelved};
use crate::supervisor::{Queued, Reply};

/// What an order needs of a SKU.
#[derive(Debug, Clone, Copy)]
pub(in crate::inventory) struct Need {
    pub(in crate::inventory) quantity: usize,
    pub(in crate::inventory) not_before: Expiry,
}

/// Sets vouchers aside.
#[derive(Debug, Message)]
#[rtype(result = "Reply<Supply>")]
pub(in crate::inventory) struct HoldVouchers {
    pub(in crate::inventory) need: Need,
    pub(in crate::inventory) queued: Queued,
}

/// What became of vouchers that were set aside.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::inventory) struct VouchersResolved {
    pub(in crate::inventory) vouchers: Vec<Shelved>,
    pub(in crate::inventory) fate: VouchersFate,
    pub(in crate::inventory) queued: Queued,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::inventory) enum VouchersFate {
    Settled,
    Released,
    /// The commit refused one of them.
    Refuted,
}

/// The stock was changed past the shelf.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::inventory) struct StockChanged {
    pub(in crate::inventory) how: StockChange,
    pub(in crate::inventory) queued: Queued,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::inventory) enum StockChange {
    /// New stock can be claimed, the first of it expiring then.
    Restocked(Expiry),
    /// Vouchers may have been taken out.
    Doubted,
}
