//! Stock as CSV: a header that names the columns, then a voucher a line.
//!
//! Rule: a record is a line. A quote that is left open costs its own line and not the rest of the file.

use csv_core::{ReadRecordResult, Reader};
use zeroize::Zeroizing;

use super::blocks::MAX_LINE_BYTES;
use super::rows::{Calendar, Reason, Row, Texts};
use crate::errors::ApiError;
use crate::vault::code::CodeParts;

/// The columns that there are, `code` first: it alone must be there.
const NAMES: [&str; 5] = ["code", "pin", "serial", "url", "expiry"];

/// Fields of a line that are told apart: as many as there can be columns, and one too many.
const MAX_FIELDS: usize = NAMES.len() + 1;

/// Why the first line is no header. Nothing was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderFault {
    /// There is none.
    #[error("the first line must name the columns: code, and at will pin, serial, url, expiry")]
    Missing,
    /// It names something else.
    #[error("column {0} of the first line is none of code, pin, serial, url, expiry")]
    Unknown(usize),
    /// It names a column twice.
    #[error("the first line names {0} more than once")]
    Repeated(&'static str),
    /// It does not name the code.
    #[error("the first line does not name the column code")]
    NoCode,
}

impl From<HeaderFault> for ApiError {
    fn from(fault: HeaderFault) -> Self {
        Self::invalid("header", fault.to_string())
    }
}

/// Where each column is.
pub(super) struct Columns {
    /// The position of each of [`NAMES`].
    positions: [Option<usize>; NAMES.len()],
    width: usize,
    fields: Fields<MAX_FIELDS>,
}

impl Columns {
    /// Reads the header.
    pub(super) fn read(line: &[u8]) -> Result<Self, HeaderFault> {
        let text = std::str::from_utf8(line)
            .ok()
            .filter(|line| line.len() <= MAX_LINE_BYTES);
        let mut fields = Fields::<MAX_FIELDS>::default();
        let found = text
            .and_then(|line| fields.split(line).ok())
            .ok_or(HeaderFault::Missing)?;
        let mut positions = [None; NAMES.len()];
        for position in 0..found.count {
            let name = found.get(position).trim().to_ascii_lowercase();
            let column = NAMES
                .iter()
                .position(|known| *known == name)
                .ok_or(HeaderFault::Unknown(position + 1))?;
            if positions[column].replace(position).is_some() {
                return Err(HeaderFault::Repeated(NAMES[column]));
            }
        }
        let width = found.count;
        if positions[0].is_none() {
            return Err(HeaderFault::NoCode);
        }
        Ok(Self {
            positions,
            width,
            fields,
        })
    }

    /// The voucher of a line.
    pub(super) fn row(&mut self, line: &str, calendar: Calendar) -> Result<Row, Reason> {
        let split = self.fields.split(line)?;
        if split.count != self.width {
            return Err(Reason::Fields {
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
        calendar.row(&Texts { parts, expiry })
    }
}

/// Splits lines into fields, of which it tells `MAX` apart: one more than a line may have. Its room is used again for each
/// line, and wiped.
pub(in crate::admin) struct Fields<const MAX: usize> {
    reader: Reader,
    text: Zeroizing<Vec<u8>>,
    ends: [usize; MAX],
}

impl<const MAX: usize> Default for Fields<MAX> {
    fn default() -> Self {
        let text = Zeroizing::new(vec![0; MAX_LINE_BYTES + 1]);
        Self {
            reader: Reader::new(),
            text,
            ends: [0; MAX],
        }
    }
}

/// The fields of one line.
pub(in crate::admin) struct Split<'a> {
    text: &'a str,
    ends: &'a [usize],
    /// How many there are.
    pub(in crate::admin) count: usize,
}

impl Split<'_> {
    /// The field at a position, from 0.
    pub(in crate::admin) fn get(&self, position: usize) -> &str {
        let begin = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(begin..self.ends[position]).unwrap_or_default()
    }
}

impl<const MAX: usize> Fields<MAX> {
    /// The fields of a line.
    pub(in crate::admin) fn split(&mut self, line: &str) -> Result<Split<'_>, Reason> {
        self.reader.reset();
        let (result, _, written, ended) =
            self.reader
                .read_record(line.as_bytes(), &mut self.text, &mut self.ends);
        let too_many = Reason::Fields {
            expected: MAX - 1,
            found: MAX,
        };
        match result {
            ReadRecordResult::InputEmpty => {}
            ReadRecordResult::OutputEndsFull => return Err(too_many),
            // A bare carriage return ends a record in the middle of the line.
            _ => return Err(Reason::OpenQuote),
        }
        let (text, ends) = (&mut self.text[written..], &mut self.ends[ended..]);
        let (result, _, more, last) = self.reader.read_record(b"\n", text, ends);
        match result {
            ReadRecordResult::Record => {}
            ReadRecordResult::OutputEndsFull => return Err(too_many),
            _ => return Err(Reason::OpenQuote),
        }
        let count = ended + last;
        // The ends of both calls are counted from the beginning of the record.
        let text = std::str::from_utf8(&self.text[..written + more]).map_err(|_| Reason::NotText)?;
        Ok(Split {
            text,
            ends: &self.ends[..count],
            count,
        })
    }
}
