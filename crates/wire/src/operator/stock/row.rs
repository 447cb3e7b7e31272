//! Vouchers in lines of CSV or NDJSON.
//!
//! An invalid line is rejected with its number and a reason; the others are imported. A reason never quotes the line, which
//! may contain a code.

use time::Date;
use vouchsafe_domain::iso_date;
use vouchsafe_security::vault::code::{CodeParts, InvalidCode, VoucherCode};

use super::blocks::MAX_LINE_BYTES;

/// Some editors prepend it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a code is rejected that the brand has already.
pub const CODE_CONFLICT: &str =
    "the brand has this code with another PIN, and the product's code_identity is `code`";

#[derive(Debug)]
pub struct VoucherRow {
    pub code: VoucherCode,
    pub expiry: Option<Date>,
}

/// Unparsed fields of a line.
#[derive(Default)]
pub struct VoucherFields<'a> {
    pub parts: CodeParts<'a>,
    pub expiry: Option<&'a str>,
}

/// Reason for rejecting a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("the line has more than {MAX_LINE_BYTES} bytes")]
    TooLong,
    #[error("the line is not UTF-8")]
    NotUtf8,
    #[error("a quote is not closed on its line")]
    OpenQuote,
    #[error("expected {expected} fields, found {found}")]
    Fields {
        expected: usize,
        /// At most one more than expected.
        found: usize,
    },
    #[error("the line is not valid JSON")]
    NotJson,
    #[error(
        "expected an object with code, and optionally pin, serial, url and expiry, each once and each a string"
    )]
    NotAVoucher,
    #[error(transparent)]
    Code(#[from] InvalidCode),
    #[error("expiry is not a date as YYYY-MM-DD")]
    NotADate,
    #[error("expired on {0}")]
    Expired(Date),
    #[error("{CODE_CONFLICT}")]
    Conflict,
}

/// Context for parsing a voucher.
#[derive(Debug, Clone, Copy)]
pub struct ExpiryDefaults {
    /// Vouchers last valid before this day are rejected.
    pub today: Date,
    /// Default expiry of lines without an expiry.
    pub default_expiry: Option<Date>,
}

/// The first line without its byte order mark.
pub fn strip_byte_order_mark(number: u64, line: &[u8]) -> &[u8] {
    match line.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) if number == 1 => rest,
        _ => line,
    }
}

/// The text of a line.
///
/// # Errors
/// [`LineError`] for an overlong line, and for one that is not UTF-8.
pub fn decode_line(line: &[u8]) -> Result<&str, LineError> {
    if line.len() > MAX_LINE_BYTES {
        return Err(LineError::TooLong);
    }
    std::str::from_utf8(line).map_err(|_| LineError::NotUtf8)
}

impl ExpiryDefaults {
    /// Parses the fields of a voucher.
    ///
    /// # Errors
    /// [`LineError`] for an invalid field.
    pub fn parse_row(self, fields: &VoucherFields<'_>) -> Result<VoucherRow, LineError> {
        let code = VoucherCode::parse(fields.parts)?;
        let expiry = match fields.expiry.map(str::trim).filter(|text| !text.is_empty()) {
            Some(text) => Some(iso_date::parse_date(text).ok_or(LineError::NotADate)?),
            None => self.default_expiry,
        };
        match expiry {
            Some(day) if day < self.today => Err(LineError::Expired(day)),
            expiry => Ok(VoucherRow { code, expiry }),
        }
    }
}
