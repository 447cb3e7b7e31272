//! Columns of a CSV file: its separator, and which of its fields has which known name.

use super::field_splitter::SplitLine;
use super::line_error::LineError;
use super::notice::{FileError, Notice, QuotedName};
use super::separator::Separator;

/// Which columns a file may have.
#[derive(Debug, Clone, Copy)]
pub struct Schema<const N: usize> {
    pub names: [&'static str; N],
    /// Names of the fields of a file without a header line, by their number; none: a header is required.
    pub without_header: &'static [&'static str],
    /// Whether records of a file without a header line may lack all fields but the first.
    pub is_ragged: bool,
    /// Names whose values may be numbers in NDJSON.
    pub numbers: &'static [&'static str],
}

impl<const N: usize> Schema<N> {
    /// The index of a name, in any case.
    pub(super) fn index_of(&self, name: &str) -> Option<usize> {
        let name = name.trim().to_ascii_lowercase();
        self.names.iter().position(|known| *known == name)
    }

    pub(super) fn list(&self) -> String {
        self.names.join(", ")
    }
}

/// The columns of a file.
pub(super) struct Columns<const N: usize> {
    separator: Separator,
    positions: [Option<usize>; N],
    /// Fewest fields of a record.
    min_width: usize,
    /// Most fields of a record. Further ones must be empty.
    width: usize,
    /// Positions of columns without a name, whose fields must be empty.
    unnamed: Vec<usize>,
}

/// What the first line of a file says.
pub(super) struct FirstLine<const N: usize> {
    pub(super) columns: Columns<N>,
    pub(super) notices: Vec<Notice>,
    /// Whether it is a record, because the file has no header.
    pub(super) is_record: bool,
}

impl<const N: usize> Columns<N> {
    /// Reads the first line: a header, without regard to case and spaces, or a record.
    ///
    /// # Errors
    /// [`FileError`] for a line that can be neither.
    pub(super) fn read(schema: &Schema<N>, line: &str) -> Result<FirstLine<N>, FileError> {
        // The separator under which the line has most known names.
        let known = |separator: Separator| {
            let split = SplitLine::parse(line, separator).ok()?;
            let known = split
                .iter()
                .filter(|name| schema.index_of(name).is_some())
                .count();
            Some((split, known, separator))
        };
        let best = Separator::ALL.into_iter().filter_map(known);
        // The first of equals: a comma.
        let best = best.reduce(|best, next| if next.1 > best.1 { next } else { best });
        match best {
            Some((split, known, separator)) if known > 0 => Self::header(schema, &split, separator),
            Some(_) => Self::without_header(schema, line),
            None => Err(no_header(schema, "its quotes do not match")),
        }
    }

    fn header(
        schema: &Schema<N>,
        split: &SplitLine,
        separator: Separator,
    ) -> Result<FirstLine<N>, FileError> {
        let (mut positions, mut unnamed) = ([None; N], Vec::new());
        for (position, name) in split.iter().enumerate() {
            let Some(index) = schema.index_of(name) else {
                if name.trim().is_empty() {
                    unnamed.push(position);
                    continue;
                }
                return Err(FileError::UnknownColumn {
                    position: position + 1,
                    name: QuotedName::new(name),
                    names: schema.list(),
                });
            };
            if positions[index].replace(position).is_some() {
                return Err(FileError::RepeatedColumn(schema.names[index]));
            }
        }
        let mut notices = Vec::new();
        if separator != Separator::Comma {
            notices.push(Notice::Separator(separator));
        }
        if !unnamed.is_empty() {
            notices.push(Notice::UnnamedColumns(unnamed.len()));
        }
        let columns = Self {
            separator,
            positions,
            min_width: split.len(),
            width: split.len(),
            unnamed,
        };
        Ok(FirstLine {
            columns,
            notices,
            is_record: false,
        })
    }

    /// A record as first line. Without names, only a comma or a tab is certainly a separator.
    fn without_header(schema: &Schema<N>, line: &str) -> Result<FirstLine<N>, FileError> {
        let separator = if line.contains('\t') {
            Separator::Tab
        } else {
            Separator::Comma
        };
        let split =
            SplitLine::parse(line, separator).map_err(|error| no_header(schema, &error.to_string()))?;
        let names = schema.without_header;
        if names.is_empty() || split.len() > names.len() {
            return Err(no_header(schema, "column 1 has none of the known names"));
        }
        if separator == Separator::Comma && line.contains(';') {
            return Err(no_header(
                schema,
                "it has semicolons, which may be separators or belong to a code",
            ));
        }
        // A title such as "card number" must not become a code.
        if !split.get(0).contains(|c: char| c.is_ascii_digit()) {
            return Err(no_header(
                schema,
                "column 1 has none of the known names, and no digit as a code has",
            ));
        }
        let (min_width, width) = if schema.is_ragged {
            (1, names.len())
        } else {
            (split.len(), split.len())
        };
        let mut positions = [None; N];
        for (position, name) in names.iter().take(width).enumerate() {
            if let Some(index) = schema.index_of(name) {
                positions[index] = Some(position);
            }
        }
        let mut notices = vec![Notice::NoHeader(names[..width].join(", "))];
        if separator != Separator::Comma {
            notices.push(Notice::Separator(separator));
        }
        let columns = Self {
            separator,
            positions,
            min_width,
            width,
            unnamed: Vec::new(),
        };
        Ok(FirstLine {
            columns,
            notices,
            is_record: true,
        })
    }

    pub(super) const fn min_width(&self) -> usize {
        self.min_width
    }

    /// Whether the file has the column with this index.
    pub(super) fn has(&self, index: usize) -> bool {
        self.positions[index].is_some()
    }

    /// Splits a record; `None` for one that is empty.
    ///
    /// # Errors
    /// [`LineError`] for a line that does not match the header.
    pub(super) fn split(&self, line: &str) -> Result<Option<SplitLine>, LineError> {
        let split = SplitLine::parse(line, self.separator)?;
        if split.iter().all(|field| field.trim().is_empty()) {
            return Ok(None);
        }
        let is_empty = |position: usize| split.get(position).trim().is_empty();
        if split.len() < self.min_width || !(self.width..split.len()).all(is_empty) {
            return Err(LineError::Fields {
                expected: self.width,
                found: split.len(),
            });
        }
        match self.unnamed.iter().find(|position| !is_empty(**position)) {
            Some(position) => Err(LineError::UnnamedColumn(position + 1)),
            None => Ok(Some(split)),
        }
    }

    /// The fields of a record by the index of their names.
    pub(super) fn pick<'s>(&self, split: &'s SplitLine) -> [Option<&'s str>; N] {
        self.positions
            .map(|position| position.filter(|at| *at < split.len()).map(|at| split.get(at)))
    }
}

fn no_header<const N: usize>(schema: &Schema<N>, reason: &str) -> FileError {
    FileError::NoHeader {
        reason: reason.to_owned(),
        names: schema.list(),
    }
}
