//! Parses lines of CSV or NDJSON into vouchers.
//!
//! An invalid line is rejected with its number and a reason; the others are imported. A reason never quotes the line, which
//! may contain a code.

use serde::Serialize;
use time::Date;
use utoipa::ToSchema;

use super::blocks::{Block, MAX_LINE_BYTES};
use super::csv::{Columns, HeaderError};
use super::ndjson;
use vouchsafe_domain::iso_date;
use vouchsafe_security::vault::code::{CodeParts, InvalidCode, VoucherCode};

/// Some editors prepend it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug)]
pub(in crate::api::operator) struct VoucherRow {
    pub(in crate::api::operator) code: VoucherCode,
    pub(in crate::api::operator) expiry: Option<Date>,
}

/// Unparsed fields of a line.
#[derive(Default)]
pub(in crate::api::operator) struct VoucherFields<'a> {
    pub(in crate::api::operator) parts: CodeParts<'a>,
    pub(in crate::api::operator) expiry: Option<&'a str>,
}

/// Reason for rejecting a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::api::operator) enum LineError {
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
}

/// A rejected line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Rejection {
    /// Line number from 1, including the header.
    pub(super) line: u64,
    /// Reason. Never quotes the line.
    pub(super) reason: String,
}

#[derive(Debug, Default)]
pub(super) struct ParsedBlock {
    pub(super) rows: Vec<VoucherRow>,
    pub(super) rejected: Vec<(u64, LineError)>,
}

/// Format of the lines. CSV reads its columns from the first line.
#[allow(clippy::large_enum_variant, reason = "one value per import")]
pub(super) enum Format {
    Csv(Option<Columns>),
    Ndjson,
}

/// Context for parsing a voucher.
#[derive(Debug, Clone, Copy)]
pub(in crate::api::operator) struct ExpiryDefaults {
    /// Vouchers last valid before this day are rejected.
    pub(in crate::api::operator) today: Date,
    /// Default expiry of lines without an expiry.
    pub(in crate::api::operator) default_expiry: Option<Date>,
}

impl Format {
    /// Parses a block. Call it with the blocks in order.
    pub(super) fn read(
        &mut self,
        block: &Block,
        expiry_defaults: ExpiryDefaults,
    ) -> Result<ParsedBlock, HeaderError> {
        let mut parsed = ParsedBlock::default();
        for (number, line) in block.lines() {
            let line = strip_byte_order_mark(number, line);
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let row = match self {
                Self::Csv(None) => {
                    *self = Self::Csv(Some(Columns::parse_header(line)?));
                    continue;
                }
                Self::Csv(Some(columns)) => {
                    decode_line(line).and_then(|line| columns.parse_row(line, expiry_defaults))
                }
                Self::Ndjson => decode_line(line).and_then(|line| ndjson::parse_row(line, expiry_defaults)),
            };
            match row {
                Ok(row) => parsed.rows.push(row),
                Err(reason) => parsed.rejected.push((number, reason)),
            }
        }
        Ok(parsed)
    }

    /// Fails if the body had no header.
    pub(super) fn finish(&self) -> Result<(), HeaderError> {
        match self {
            Self::Csv(None) => Err(HeaderError::Missing),
            Self::Csv(Some(_)) | Self::Ndjson => Ok(()),
        }
    }
}

/// The first line without its byte order mark.
pub(in crate::api::operator) fn strip_byte_order_mark(number: u64, line: &[u8]) -> &[u8] {
    match line.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) if number == 1 => rest,
        _ => line,
    }
}

pub(in crate::api::operator) fn decode_line(line: &[u8]) -> Result<&str, LineError> {
    if line.len() > MAX_LINE_BYTES {
        return Err(LineError::TooLong);
    }
    std::str::from_utf8(line).map_err(|_| LineError::NotUtf8)
}

impl ExpiryDefaults {
    pub(in crate::api::operator) fn parse_row(self, fields: &VoucherFields<'_>) -> Result<VoucherRow, LineError> {
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

#[cfg(test)]
mod tests;
