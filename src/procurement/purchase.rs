//! What is asked of a vendor, what it sells, and what its books say of it?
//!
//! Rule: a code is in a [`VoucherCode`] and nowhere else; a reference is the vendor's name for a voucher and may be shown.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::{Date, OffsetDateTime};
use uuid::Uuid;
use vouchsafe_actors::domain::money::{Currency, Money};
use vouchsafe_actors::domain::product::{ExpiryPolicy, ProductId};

use super::expiry;
use crate::vault::code::VoucherCode;

/// Most vouchers of one purchase: as many as one order may have.
pub const MAX_QUANTITY: u32 = 1_000;

/// Longest reference of a vendor, in bytes: several times what an id takes, and short in every row and report.
pub const MAX_REFERENCE: usize = 128;

/// Names a purchase. It is the vendor's idempotency key: what was sold under it is never sold again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PurchaseKey(pub Uuid);

impl fmt::Display for PurchaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What is to be bought. The same at each asking, so the caller keeps it with the purchase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuyRequest {
    pub key: PurchaseKey,
    pub product_id: ProductId,
    /// At which face value.
    pub denomination: Money,
    /// How many, 1 to [`MAX_QUANTITY`].
    pub quantity: u32,
    /// When the purchase was made durable; vouchers count as issued on this day.
    pub requested_at: OffsetDateTime,
    /// Until when a voucher is good whose vendor does not say so.
    pub expiry_policy: ExpiryPolicy,
}

impl BuyRequest {
    /// The last valid day of a voucher whose vendor names none; `None` if it never expires.
    #[must_use]
    pub fn last_valid_day(&self) -> Option<Date> {
        expiry::last_valid_day(&self.expiry_policy, self.requested_at.date())
    }
}

/// The vendor's own name of a voucher: not secret, so it may be shown and reconciled.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VendorReference(String);

/// A text that is no reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 1 to {MAX_REFERENCE} visible ASCII characters")]
pub struct InvalidReference;

impl VendorReference {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for VendorReference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let fits = (1..=MAX_REFERENCE).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| Self(text.to_owned())).ok_or(InvalidReference)
    }
}

impl fmt::Display for VendorReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A voucher as a vendor sold it: checked against what was asked for.
#[derive(Debug)]
pub struct VendorVoucher {
    /// The vendor's own name of it: the same at each asking, and unique within an answer.
    pub reference: VendorReference,
    /// What is redeemed: code, PIN, serial and URL.
    pub code: VoucherCode,
    /// Its last valid day, of the vendor's or by the product's policy; `None` if it never expires.
    pub expiry: Option<Date>,
    pub product_id: ProductId,
    /// At which face value.
    pub denomination: Money,
    /// What the vendor charges for it; never negative.
    pub price: Money,
}

/// What becomes of those that were asked for and not sold yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortfall {
    /// There are none: all were sold.
    None,
    /// They may come: poll, and no sooner than after this, where the vendor says so.
    Pending(Option<Duration>),
    Final,
}

/// What was sold under a key so far, all of it, in the vendor's order.
#[derive(Debug)]
pub struct PurchaseResult {
    /// The vouchers; those of earlier answers among them, under the same references.
    pub vouchers: Vec<VendorVoucher>,
    /// What becomes of the others.
    pub shortfall: Shortfall,
}

/// A sale as the vendor's books have it, for reconciliation. No code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorRecord {
    /// The vendor's name of the voucher.
    pub reference: VendorReference,
    /// Under which key it was sold.
    pub key: PurchaseKey,
    pub product_id: ProductId,
    /// At which face value.
    pub denomination: Money,
    pub sold_at: OffsetDateTime,
}

impl VendorRecord {
    /// What the face value is counted in.
    #[must_use]
    pub const fn currency(&self) -> Currency {
        self.denomination.currency
    }
}
