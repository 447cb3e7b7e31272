//! Allocations of a day: the vouchers of the orders that were settled on it, by vendor and batch.

use time::OffsetDateTime;

use crate::labels::labels;

labels! {
    /// Where allocated vouchers came from.
    pub enum VoucherSource: "lowercase",
        "Where allocated vouchers came from: `purchase` (bought from the vendor for an order) or `import` (imported stock)." {
        Purchase,
        Import,
    }
}

labels! {
    /// Whether the vendor's records can be compared with allocated vouchers.
    pub enum RecordsAvailability: "lowercase",
        "Whether vendor records exist for the vouchers: `compared`, `pending` (the vendor lists its sales, and not all \
         vouchers were compared yet) or `none` (no books: the vendor lists no sales, or the vouchers were imported)." {
        Compared,
        Pending,
        None,
    }
}

/// Allocated vouchers of one vendor and batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchAllocations {
    pub vendor: String,
    pub source: VoucherSource,
    /// The import's name; `None` for purchases.
    pub batch: Option<String>,
    /// Orders with at least one of the vouchers.
    pub orders: i64,
    pub vouchers: i64,
    /// Comparison with the vendor's records, as far as it has taken place.
    pub matched: i64,
    pub drifted: i64,
    pub unmatched: i64,
    pub records: RecordsAvailability,
}

/// All vouchers of the orders that were settled on a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayAllocations {
    pub orders_total: i64,
    pub vouchers_allocated: i64,
    pub batches: Vec<BatchAllocations>,
    pub generated_at: OffsetDateTime,
}

impl BatchAllocations {
    /// Derives `records` from the counts. `has_records`: the vendor lists its sales, or its records of the
    /// day were uploaded.
    #[must_use]
    pub fn with_records(self, has_records: bool) -> Self {
        let compared = self.matched + self.drifted + self.unmatched;
        let records = match self.source {
            VoucherSource::Purchase if compared == self.vouchers => RecordsAvailability::Compared,
            VoucherSource::Purchase if has_records => RecordsAvailability::Pending,
            VoucherSource::Purchase | VoucherSource::Import => RecordsAvailability::None,
        };
        Self { records, ..self }
    }
}
