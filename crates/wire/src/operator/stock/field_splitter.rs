//! Splitter of a CSV line into its fields.
//!
//! A record is a line, so an unclosed quote invalidates its line only, not the rest of the file.

use csv_core::{ReadRecordResult, Reader};
use zeroize::Zeroizing;

use super::blocks::MAX_LINE_BYTES;
use super::row::LineError;

/// Splits lines into at most `MAX` fields, one more than a line may have. Reuses its buffer, which is zeroized on drop.
pub struct FieldSplitter<const MAX: usize> {
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

pub struct SplitLine<'a> {
    text: &'a str,
    ends: &'a [usize],
    pub count: usize,
}

impl<'a> SplitLine<'a> {
    #[must_use]
    pub fn get(&self, position: usize) -> &'a str {
        let begin = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(begin..self.ends[position]).unwrap_or_default()
    }
}

impl<const MAX: usize> FieldSplitter<MAX> {
    /// Splits a line.
    ///
    /// # Errors
    /// [`LineError`] for an open quote or too many fields.
    pub fn split(&mut self, line: &str) -> Result<SplitLine<'_>, LineError> {
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
