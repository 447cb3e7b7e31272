//! Vouchers as the engine sees them: a stock row and an expiry, never a code.

use std::fmt;

use time::{Date, OffsetDateTime};

use super::ids::{ChunkId, StockId, VoucherId};
use super::product::Sku;

/// The last day (UTC) on which a voucher is valid, or never; sorts by what expires first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expiry(i32);

impl Expiry {
    /// Never expires; sorts after every date.
    pub const NEVER: Self = Self(i32::MAX);

    /// Sorts before every date.
    pub const PAST: Self = Self(i32::MIN);

    /// Valid up to and including `day`.
    #[must_use]
    pub const fn on(day: Date) -> Self {
        Self(day.to_julian_day())
    }

    /// Converts an optional date; `None` means that the voucher never expires.
    #[must_use]
    pub fn from_date(day: Option<Date>) -> Self {
        day.map_or(Self::NEVER, Self::on)
    }

    /// The last valid day; `None` if the voucher never expires.
    #[must_use]
    pub fn date(self) -> Option<Date> {
        if self == Self::NEVER {
            None
        } else {
            Date::from_julian_day(self.0).ok()
        }
    }

    /// The earliest expiry that leaves at least `min_days` full days after `today`. On the last valid day
    /// none remain.
    #[must_use]
    pub const fn with_remaining_days(today: Date, min_days: u16) -> Self {
        Self(today.to_julian_day().saturating_add(min_days as i32))
    }
}

impl fmt::Debug for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.date() {
            Some(day) => fmt::Display::fmt(&day, f),
            None => f.write_str("never"),
        }
    }
}

/// A voucher in stock. The field order is the order in which an order shows its vouchers: earliest expiry
/// first, then oldest stock row. (Within a day, the shelf sells chunk by chunk.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StockVoucher {
    pub expiry: Expiry,
    pub stock_id: StockId,
    /// The chunk that it was claimed with.
    pub chunk_id: ChunkId,
}

/// A voucher allocated to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The public id, new for each allocation.
    pub voucher_id: VoucherId,
    /// Index of the order line, from 0.
    pub line: u16,
    pub sku: Sku,
    /// The stock row and its expiry.
    pub voucher: StockVoucher,
    /// When its code was first retrieved, as of the read of the order.
    pub first_retrieved_at: Option<OffsetDateTime>,
}

impl Allocation {
    /// Allocates a voucher whose code was not retrieved.
    #[must_use]
    pub const fn new(voucher_id: VoucherId, line: u16, sku: Sku, voucher: StockVoucher) -> Self {
        Self {
            voucher_id,
            line,
            sku,
            voucher,
            first_retrieved_at: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;

    #[test]
    fn expiry_is_the_last_valid_day() {
        let expiry = Expiry::on(date!(2026 - 02 - 28));
        assert!(expiry >= Expiry::with_remaining_days(date!(2026 - 02 - 28), 0));
        assert!(expiry < Expiry::with_remaining_days(date!(2026 - 03 - 01), 0));
        assert!(expiry >= Expiry::with_remaining_days(date!(2026 - 02 - 18), 10));
        assert!(expiry < Expiry::with_remaining_days(date!(2026 - 02 - 19), 10));
        assert!(Expiry::NEVER > Expiry::with_remaining_days(date!(9999 - 12 - 31), u16::MAX));
    }

    #[test]
    fn never_expiring_voucher_sorts_last() {
        assert!(Expiry::on(date!(9999 - 12 - 31)) < Expiry::NEVER);
        assert_eq!(Expiry::from_date(None).date(), None);
        assert_eq!(
            Expiry::on(date!(2024 - 02 - 29)).date(),
            Some(date!(2024 - 02 - 29))
        );
    }
}
