//! CSV parser for stock imports: a header line, then one voucher per line.

use vouchsafe_security::vault::code::CodeParts;

use super::blocks::MAX_LINE_BYTES;
use super::columns::{ColumnError, Columns};
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

/// Columns of the file.
pub struct VoucherColumns(Columns<{ COLUMN_NAMES.len() }, MAX_FIELDS>);

impl VoucherColumns {
    pub(super) fn parse_header(line: &[u8]) -> Result<Self, HeaderError> {
        let text = std::str::from_utf8(line)
            .ok()
            .filter(|line| line.len() <= MAX_LINE_BYTES);
        let columns = Columns::parse_header(&COLUMN_NAMES, text.ok_or(HeaderError::Missing)?);
        let columns = columns.map_err(|error| match error {
            ColumnError::Line(_) => HeaderError::Missing,
            ColumnError::Unknown(position) => HeaderError::Unknown(position),
            ColumnError::Repeated(column) => HeaderError::Repeated(COLUMN_NAMES[column]),
        })?;
        columns
            .has_first(1)
            .then_some(Self(columns))
            .ok_or(HeaderError::MissingCode)
    }

    pub(super) fn parse_row(
        &mut self,
        line: &str,
        expiry_defaults: ExpiryDefaults,
    ) -> Result<VoucherRow, LineError> {
        let [code, pin, serial, url, expiry] = self.0.split(line)?;
        let parts = CodeParts {
            code: code.unwrap_or_default(),
            pin,
            serial,
            url,
        };
        expiry_defaults.parse_row(&VoucherFields { parts, expiry })
    }
}
