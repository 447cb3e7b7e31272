//! CSV parser for stock imports: a header line, then one voucher per line.
//!
//! A record is a line, so an unclosed quote invalidates its line only, not the rest of the file.

use csv_core::{ReadRecordResult, Reader};
use zeroize::Zeroizing;

use super::blocks::MAX_LINE_BYTES;
use super::rows::{ExpiryDefaults, LineError, VoucherFields, VoucherRow};
use crate::api::error::ApiError;
use vouchsafe_security::vault::code::CodeParts;

/// All columns; only the first one is required.
const COLUMN_NAMES: [&str; 5] = ["code", "pin", "serial", "url", "expiry"];

/// One more than there are columns, to detect lines with too many fields.
const MAX_FIELDS: usize = COLUMN_NAMES.len() + 1;

/// Error in the header; nothing was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderError {
    #[error("the first line must name the columns: code, and optionally pin, serial, url, expiry")]
    Missing,
    #[error("column {0} of the first line is not one of code, pin, serial, url, expiry")]
    Unknown(usize),
    #[error("the first line names {0} more than once")]
    Repeated(&'static str),
    #[error("the first line lacks the column code")]
    MissingCode,
}

impl From<HeaderError> for ApiError {
    fn from(error: HeaderError) -> Self {
        Self::invalid_field("header", error.to_string())
    }
}

pub(super) struct Columns {
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

/// Splits lines into at most `MAX` fields, one more than a line may have. Reuses its buffer, which is zeroized on drop.
pub(in crate::api::operator) struct FieldSplitter<const MAX: usize> {
    reader: Reader,
    text: Zeroizing<Vec<u8>>,
    ends: [usize; MAX],
}

impl<const MAX: usize> Default for FieldSplitter<MAX> {
    fn default() -> Self {
        let text = Zeroizing::new(vec![0; MAX_LINE_BYTES + 1]);
        Self {
            reader: Reader::new(),
            text,
            ends: [0; MAX],
        }
    }
}

pub(in crate::api::operator) struct SplitLine<'a> {
    text: &'a str,
    ends: &'a [usize],
    pub(in crate::api::operator) count: usize,
}

impl SplitLine<'_> {
    pub(in crate::api::operator) fn get(&self, position: usize) -> &str {
        let begin = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(begin..self.ends[position]).unwrap_or_default()
    }
}

impl<const MAX: usize> FieldSplitter<MAX> {
    pub(in crate::api::operator) fn split(&mut self, line: &str) -> Result<SplitLine<'_>, LineError> {
        self.reader.reset();
        let (result, _, written, ended) =
            self.reader
                .read_record(line.as_bytes(), &mut self.text, &mut self.ends);
        let too_many = LineError::Fields {
            expected: MAX - 1,
            found: MAX,
        };
        match result {
            ReadRecordResult::InputEmpty => {}
            ReadRecordResult::OutputEndsFull => return Err(too_many),
            // A bare carriage return ends a record in the middle of the line.
            _ => return Err(LineError::OpenQuote),
        }
        let (text, ends) = (&mut self.text[written..], &mut self.ends[ended..]);
        let (result, _, final_written, final_ended) = self.reader.read_record(b"\n", text, ends);
        match result {
            ReadRecordResult::Record => {}
            ReadRecordResult::OutputEndsFull => return Err(too_many),
            _ => return Err(LineError::OpenQuote),
        }
        let count = ended + final_ended;
        // The ends of both calls are counted from the beginning of the record.
        let text =
            std::str::from_utf8(&self.text[..written + final_written]).map_err(|_| LineError::NotUtf8)?;
        Ok(SplitLine {
            text,
            ends: &self.ends[..count],
            count,
        })
    }
}
