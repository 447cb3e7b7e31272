//! From lines to vouchers: CSV with a header, or a JSON object a line.
//!
//! Rule: a line that will not do is rejected with its number and a reason, and the others go on. A reason never quotes
//! the line: it may hold a code.

use serde::Serialize;
use time::Date;
use utoipa::ToSchema;

use super::blocks::{Block, MAX_LINE_BYTES};
use super::csv::{Columns, HeaderFault};
use super::ndjson;
use crate::day;
use crate::vault::code::{CodeParts, InvalidCode, VoucherCode};

/// What some editors put before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A voucher as a line gives it.
#[derive(Debug)]
pub(in crate::admin) struct Row {
    pub(in crate::admin) code: VoucherCode,
    pub(in crate::admin) expiry: Option<Date>,
}

/// The texts of a line, before they are looked at.
#[derive(Default)]
pub(in crate::admin) struct Texts<'a> {
    pub(in crate::admin) parts: CodeParts<'a>,
    pub(in crate::admin) expiry: Option<&'a str>,
}

/// Why a line is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::admin) enum Reason {
    /// It is too long to be a voucher.
    #[error("the line has more than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// It is no text.
    #[error("the line is not UTF-8")]
    NotText,
    /// A quoted field does not end on the line.
    #[error("a quote is not closed on its line")]
    OpenQuote,
    /// It has more or fewer fields than the header.
    #[error("expected {expected} fields, found {found}")]
    Fields {
        /// As in the header.
        expected: usize,
        /// On the line; one too many stands for all that are.
        found: usize,
    },
    /// It is no JSON.
    #[error("the line is not valid JSON")]
    NotJson,
    /// It is JSON and not what was asked for.
    #[error(
        "expected an object with code, and at will pin, serial, url and expiry, each once and each a string"
    )]
    NotAVoucher,
    /// Its code will not do.
    #[error(transparent)]
    Code(#[from] InvalidCode),
    /// Its expiry is no date.
    #[error("expiry is not a date as YYYY-MM-DD")]
    NotADate,
    /// It can no longer be redeemed.
    #[error("expired on {0}")]
    Expired(Date),
}

/// A line that was rejected, as the answer shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Rejection {
    /// Which line, counted from 1, the header among them.
    pub(super) line: u64,
    /// Why. It never quotes the line, which may hold a code.
    pub(super) reason: String,
}

/// What a block holds.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) rows: Vec<Row>,
    pub(super) rejected: Vec<(u64, Reason)>,
}

/// What the lines look like. CSV learns its columns from its first line.
#[allow(
    clippy::large_enum_variant,
    reason = "an import has one of them, from its beginning to its end"
)]
pub(super) enum Format {
    Csv(Option<Columns>),
    Ndjson,
}

/// What a voucher is, beyond what its line says.
#[derive(Debug, Clone, Copy)]
pub(in crate::admin) struct Calendar {
    /// Today; what was last valid before is expired.
    pub(in crate::admin) today: Date,
    /// When a voucher expires whose line does not say so.
    pub(in crate::admin) otherwise: Option<Date>,
}

impl Format {
    /// Reads a block. The blocks of a body come in their order.
    pub(super) fn read(&mut self, block: &Block, calendar: Calendar) -> Result<Parsed, HeaderFault> {
        let mut parsed = Parsed::default();
        for (number, line) in block.lines() {
            let line = bare(number, line);
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let row = match self {
                Self::Csv(None) => {
                    *self = Self::Csv(Some(Columns::read(line)?));
                    continue;
                }
                Self::Csv(Some(columns)) => check(line).and_then(|line| columns.row(line, calendar)),
                Self::Ndjson => check(line).and_then(|line| ndjson::row(line, calendar)),
            };
            match row {
                Ok(row) => parsed.rows.push(row),
                Err(reason) => parsed.rejected.push((number, reason)),
            }
        }
        Ok(parsed)
    }

    /// What is missing at the end of the body.
    pub(super) fn finish(&self) -> Result<(), HeaderFault> {
        match self {
            Self::Csv(None) => Err(HeaderFault::Missing),
            Self::Csv(Some(_)) | Self::Ndjson => Ok(()),
        }
    }
}

/// A line without the mark that stands before the first one.
pub(in crate::admin) fn bare(number: u64, line: &[u8]) -> &[u8] {
    match line.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) if number == 1 => rest,
        _ => line,
    }
}

/// A line as text.
pub(in crate::admin) fn check(line: &[u8]) -> Result<&str, Reason> {
    if line.len() > MAX_LINE_BYTES {
        return Err(Reason::TooLong);
    }
    std::str::from_utf8(line).map_err(|_| Reason::NotText)
}

impl Calendar {
    /// The voucher of these texts.
    pub(in crate::admin) fn row(self, texts: &Texts<'_>) -> Result<Row, Reason> {
        let code = VoucherCode::parse(texts.parts)?;
        let expiry = match texts.expiry.map(str::trim).filter(|text| !text.is_empty()) {
            Some(text) => Some(day::parse(text).ok_or(Reason::NotADate)?),
            None => self.otherwise,
        };
        match expiry {
            Some(day) if day < self.today => Err(Reason::Expired(day)),
            expiry => Ok(Row { code, expiry }),
        }
    }
}

#[cfg(test)]
mod tests;
