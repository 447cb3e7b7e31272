//! CSV parser for stock imports: a header line, then one voucher per line.

use vouchsafe_security::vault::code::CodeParts;

use super::blocks::MAX_LINE_BYTES;
use super::field_splitter::FieldSplitter;
use super::row::{ExpiryDefaults, LineError, VoucherFields, VoucherRow};
use crate::error_body::InvalidRequest;

/// All columns; only the first one is required.
const COLUMN_NAMES: [&str; 5] = ["code", "pin", "serial", "url", "expiry"];

/// One more than there are columns, to detect lines with too many fields.
const MAX_FIELDS: usize = COLUMN_NAMES.len() + 1;

/// Error in the header; nothing was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("the first line must name the columns: code, and optionally pin, serial, url, expiry")]
    Missing,
    #[error("column {0} of the first line is not one of code, pin, serial, url, expiry")]
    Unknown(usize),
    #[error("the first line names {0} more than once")]
    Repeated(&'static str),
    #[error("the first line lacks the column code")]
    MissingCode,
}

impl From<HeaderError> for InvalidRequest {
    fn from(error: HeaderError) -> Self {
        Self::field("header", error.to_string())
    }
}

pub struct Columns {
    positions: [Option<usize>; COLUMN_NAMES.len()],
    width: usize,
    fields: FieldSplitter<MAX_FIELDS>,
}

impl Columns {
    pub(super) fn parse_header(line: &[u8]) -> Result<Self, HeaderError> {
        let text = std::str::from_utf8(line)
            .ok()
            .filter(|line| line.len() <= MAX_LINE_BYTES);
        let mut fields = FieldSplitter::<MAX_FIELDS>::default();
        let header = text
            .and_then(|line| fields.split(line).ok())
            .ok_or(HeaderError::Missing)?;
        let mut positions = [None; COLUMN_NAMES.len()];
        for position in 0..header.count {
            let name = header.get(position).trim().to_ascii_lowercase();
            let column = COLUMN_NAMES
                .iter()
                .position(|known| *known == name)
                .ok_or(HeaderError::Unknown(position + 1))?;
            if positions[column].replace(position).is_some() {
                return Err(HeaderError::Repeated(COLUMN_NAMES[column]));
            }
        }
        let width = header.count;
        if positions[0].is_none() {
            return Err(HeaderError::MissingCode);
        }
        Ok(Self {
            positions,
            width,
            fields,
        })
    }

    pub(super) fn parse_row(
        &mut self,
        line: &str,
        expiry_defaults: ExpiryDefaults,
    ) -> Result<VoucherRow, LineError> {
        let split = self.fields.split(line)?;
        if split.count != self.width {
            return Err(LineError::Fields {
                expected: self.width,
                found: split.count,
            });
        }
        let [code, pin, serial, url, expiry] =
            self.positions.map(|position| position.map(|at| split.get(at)));
        let parts = CodeParts {
            code: code.unwrap_or_default(),
            pin,
            serial,
            url,
        };
        expiry_defaults.parse_row(&VoucherFields { parts, expiry })
    }
}
