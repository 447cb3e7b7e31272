//! Formats of a stock import: CSV and NDJSON.
//!
//! An invalid line is rejected with its number and a reason; the others are imported.

use super::blocks::Block;
use super::csv::{HeaderError, VoucherColumns};
use super::ndjson;
use super::row::{ExpiryDefaults, LineError, VoucherRow, decode_line, strip_byte_order_mark};

/// Format of the lines. CSV reads its columns from the first line.
#[allow(clippy::large_enum_variant, reason = "one value per import")]
pub enum Format {
    Csv(Option<VoucherColumns>),
    Ndjson,
}

#[derive(Debug, Default)]
pub struct ParsedBlock {
    pub rows: Vec<VoucherRow>,
    /// Line number of each row.
    pub lines: Vec<u64>,
    pub rejected: Vec<(u64, LineError)>,
}

impl Format {
    /// Parses a block. Call it with the blocks in order.
    ///
    /// # Errors
    /// [`HeaderError`] for an invalid first line of CSV.
    pub fn read(
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
                    *self = Self::Csv(Some(VoucherColumns::parse_header(line)?));
                    continue;
                }
                Self::Csv(Some(columns)) => {
                    decode_line(line).and_then(|line| columns.parse_row(line, expiry_defaults))
                }
                Self::Ndjson => decode_line(line).and_then(|line| ndjson::parse_row(line, expiry_defaults)),
            };
            match row {
                Ok(row) => {
                    parsed.rows.push(row);
                    parsed.lines.push(number);
                }
                Err(reason) => parsed.rejected.push((number, reason)),
            }
        }
        Ok(parsed)
    }

    /// Fails if the body had no header.
    ///
    /// # Errors
    /// [`HeaderError::Missing`].
    pub fn finish(&self) -> Result<(), HeaderError> {
        match self {
            Self::Csv(None) => Err(HeaderError::Missing),
            Self::Csv(Some(_)) | Self::Ndjson => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
