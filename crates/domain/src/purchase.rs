//! Purchase requests to vendors.
//!
//! A reference is the vendor's id of a voucher; it is no secret and may be shown.

pub mod view;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use crate::expiry_policy;
use crate::expiry_policy::ExpiryPolicy;
use crate::money::Money;
use crate::product::ProductId;

/// Most vouchers of a purchase: as many as an order may have.
pub const MAX_QUANTITY: u32 = 1_000;

/// Longest vendor reference in bytes: several times the length of an id, and short in every row and report.
pub const MAX_REFERENCE: usize = 128;

/// The vendor's idempotency key: what was sold under it is never sold again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
#[serde(transparent)]
pub struct PurchaseKey(pub Uuid);

impl fmt::Display for PurchaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A purchase request. It is identical in each call, so the caller stores it with the purchase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuyRequest {
    pub key: PurchaseKey,
    pub product_id: ProductId,
    /// Face value.
    pub denomination: Money,
    /// 1 to [`MAX_QUANTITY`].
    pub quantity: u32,
    /// When the purchase was stored; vouchers count as issued on this day.
    pub requested_at: OffsetDateTime,
    /// Applies if the vendor states no expiry.
    pub expiry_policy: ExpiryPolicy,
}

impl BuyRequest {
    /// The last valid day if the vendor states none; `None` if the voucher never expires.
    #[must_use]
    pub fn last_valid_day(&self) -> Option<Date> {
        expiry_policy::last_valid_day(&self.expiry_policy, self.requested_at.date())
    }
}

/// The vendor's id of a voucher: not secret, used in reconciliation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VendorReference(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 1 to {MAX_REFERENCE} visible ASCII characters")]
pub struct InvalidReference;

impl VendorReference {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for VendorReference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let text = text.trim();
        let fits = (1..=MAX_REFERENCE).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| Self(text.to_owned())).ok_or(InvalidReference)
    }
}

impl fmt::Display for VendorReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
