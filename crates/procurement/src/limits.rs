//! Limits of the vendor protocol.

/// Most records of a page: a page is in memory at once.
pub const MAX_RECORDS_PAGE: usize = 1_000;

/// A hundred million records, far more than any day has: detects endless pagination.
pub const MAX_RECORD_PAGES: u32 = 100_000;

/// Longest response body: 1,000 vouchers with parts of maximum length, and a margin.
pub const MAX_RESPONSE_BYTES: usize = 4 << 20;
