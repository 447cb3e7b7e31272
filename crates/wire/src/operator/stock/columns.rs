//! Columns of a CSV file, in the order of its header.

use super::field_splitter::FieldSplitter;
use super::row::LineError;

/// Error in a header.
#[derive(Debug)]
pub enum ColumnError {
    Line(LineError),
    /// Position of an unknown column, from 1.
    Unknown(usize),
    /// Index of a column that occurs twice.
    Repeated(usize),
}

/// `COLUMNS` known columns. `MAX` fields are one more than a line may have, to detect lines with too many.
pub struct Columns<const COLUMNS: usize, const MAX: usize> {
    positions: [Option<usize>; COLUMNS],
    width: usize,
    fields: FieldSplitter<MAX>,
}

impl<const COLUMNS: usize, const MAX: usize> Columns<COLUMNS, MAX> {
    /// Parses a header, without regard to case and spaces.
    ///
    /// # Errors
    /// [`ColumnError`] for a line that is no header of these columns.
    pub fn parse_header(names: &[&str; COLUMNS], line: &str) -> Result<Self, ColumnError> {
        let mut fields = FieldSplitter::default();
        let mut positions = [None; COLUMNS];
        let header = fields.split(line).map_err(ColumnError::Line)?;
        let width = header.count;
        for position in 0..width {
            let name = header.get(position).trim().to_ascii_lowercase();
            let column = names
                .iter()
                .position(|known| *known == name)
                .ok_or(ColumnError::Unknown(position + 1))?;
            if positions[column].replace(position).is_some() {
                return Err(ColumnError::Repeated(column));
            }
        }
        Ok(Self {
            positions,
            width,
            fields,
        })
    }

    /// Whether the header has the first `count` columns.
    #[must_use]
    pub fn has_first(&self, count: usize) -> bool {
        self.positions.iter().take(count).all(Option::is_some)
    }

    /// Splits a line into the values of the columns.
    ///
    /// # Errors
    /// [`LineError`] for a line that does not match the header.
    pub fn split(&mut self, line: &str) -> Result<[Option<&str>; COLUMNS], LineError> {
        let split = self.fields.split(line)?;
        if split.count != self.width {
            return Err(LineError::Fields {
                expected: self.width,
                found: split.count,
            });
        }
        Ok(self.positions.map(|position| position.map(|at| split.get(at))))
    }
}
