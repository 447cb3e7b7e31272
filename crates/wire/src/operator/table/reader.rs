//! Reader of the records of a table, block by block.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::error::Category;
use zeroize::Zeroizing;

use super::blocks::Block;
use super::columns::{Columns, Schema};
use super::line_error::{LineError, MAX_LINE_BYTES};
use super::notice::{FileError, Notice};

/// Lines after a quote that is not closed, which are kept to read them again. Bounds the memory.
const MAX_OPEN_LINES: usize = 1_000;

/// Format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Csv,
    /// One JSON object per line, with the names of the columns as fields.
    Ndjson,
}

/// The fields of a record by the index of their names; `None` for a column that the record does not have.
pub type Values<'a, const N: usize> = [Option<&'a str>; N];

/// A record whose quote is not closed on its first line.
struct OpenRecord {
    first_line: u64,
    last_line: u64,
    /// The lines after the first one; none in a table of one column, where every line would be a record.
    lines: Vec<(u64, Zeroizing<String>)>,
}

/// Reads a table with the columns of a schema.
pub struct TableReader<const N: usize> {
    schema: Schema<N>,
    format: Format,
    /// Columns of CSV, once its first line is read.
    columns: Option<Columns<N>>,
    is_empty: bool,
    notices: Vec<Notice>,
    open: Option<OpenRecord>,
}

impl<const N: usize> TableReader<N> {
    #[must_use]
    pub const fn new(schema: Schema<N>, format: Format) -> Self {
        Self {
            schema,
            format,
            columns: None,
            is_empty: true,
            notices: Vec::new(),
            open: None,
        }
    }

    /// What was found out about the table so far.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Whether a CSV file has the column with this index; `None` if its first line is not read, and for
    /// NDJSON.
    #[must_use]
    pub fn has(&self, index: usize) -> Option<bool> {
        self.columns.as_ref().map(|columns| columns.has(index))
    }

    /// Reads the records of a block, each with the number of its first line. Call it with the blocks in
    /// order.
    ///
    /// # Errors
    /// [`FileError`] for a first line that is no header and no record.
    pub fn read(
        &mut self,
        block: &Block,
        mut on_record: impl FnMut(u64, Result<Values<'_, N>, LineError>),
    ) -> Result<(), FileError> {
        for (number, line) in block.lines() {
            if line.iter().all(u8::is_ascii_whitespace) && self.open.is_none() {
                continue;
            }
            let decoded = decode_line(line);
            if std::mem::take(&mut self.is_empty) && self.read_first_line(decoded)? {
                continue;
            }
            match (decoded, self.open.is_some()) {
                (Err(error), false) => on_record(number, Err(error)),
                (Ok(text), false) => self.read_line(number, text, &mut on_record),
                (decoded, true) => self.continue_record(number, decoded.ok(), &mut on_record),
            }
        }
        Ok(())
    }

    /// Ends the table.
    ///
    /// # Errors
    /// [`FileError::Empty`] for a CSV file without a line.
    pub fn finish(
        &mut self,
        mut on_record: impl FnMut(u64, Result<Values<'_, N>, LineError>),
    ) -> Result<(), FileError> {
        self.end_open_record(&mut on_record);
        if self.is_empty && self.format == Format::Csv {
            return Err(FileError::Empty(self.schema.list()));
        }
        Ok(())
    }

    /// Whether the first line is a header.
    fn read_first_line(&mut self, decoded: Result<&str, LineError>) -> Result<bool, FileError> {
        if self.format == Format::Ndjson {
            return Ok(false);
        }
        let text = decoded.map_err(|error| match error {
            LineError::NotUtf8 => FileError::HeaderNotUtf8,
            error => FileError::NoHeader {
                reason: error.to_string(),
                names: self.schema.list(),
            },
        })?;
        if text.trim_start().starts_with('{') {
            self.format = Format::Ndjson;
            self.notices.push(Notice::Ndjson);
            return Ok(false);
        }
        let first = Columns::read(&self.schema, text)?;
        self.columns = Some(first.columns);
        self.notices.extend(first.notices);
        Ok(!first.is_record)
    }

    fn read_line(
        &mut self,
        number: u64,
        text: &str,
        on_record: &mut impl FnMut(u64, Result<Values<'_, N>, LineError>),
    ) {
        let Some(columns) = &self.columns else {
            return match parse_object(&self.schema, text) {
                Ok(fields) => on_record(number, Ok(fields.each_ref().map(Option::as_deref))),
                Err(error) => on_record(number, Err(error)),
            };
        };
        match columns.split(text) {
            Ok(None) => {}
            Ok(Some(split)) => on_record(number, Ok(columns.pick(&split))),
            Err(LineError::OpenQuote) => {
                self.open = Some(OpenRecord {
                    first_line: number,
                    last_line: number,
                    lines: Vec::new(),
                });
            }
            Err(error) => on_record(number, Err(error)),
        }
    }

    /// Looks for the end of a quoted field. A value of several lines is no code: the whole record is
    /// rejected.
    fn continue_record(
        &mut self,
        number: u64,
        text: Option<&str>,
        on_record: &mut impl FnMut(u64, Result<Values<'_, N>, LineError>),
    ) {
        let has_one_column = self
            .columns
            .as_ref()
            .is_none_or(|columns| columns.min_width() < 2);
        let Some(open) = &mut self.open else { return };
        open.last_line = number;
        let closes = text.is_some_and(|text| text.matches('"').count() % 2 == 1);
        if closes {
            let error = LineError::SeveralLines { last_line: number };
            on_record(open.first_line, Err(error));
            self.open = None;
            return;
        }
        // Where a record has one field, no line after the quote can be told from a part of the quoted value.
        if !has_one_column {
            open.lines
                .push((number, Zeroizing::new(text.unwrap_or_default().to_owned())));
            if open.lines.len() == MAX_OPEN_LINES {
                self.end_open_record(on_record);
            }
        }
    }

    /// A quote that nothing closes is a mistake in its line. The lines after it count if they have all the
    /// fields of a record.
    fn end_open_record(&mut self, on_record: &mut impl FnMut(u64, Result<Values<'_, N>, LineError>)) {
        let Some(open) = self.open.take() else { return };
        on_record(open.first_line, Err(LineError::OpenQuote));
        if open.lines.is_empty() {
            (open.first_line + 1..=open.last_line)
                .for_each(|line| on_record(line, Err(LineError::InOpenQuote)));
        }
        for (number, text) in &open.lines {
            if !text.trim().is_empty() {
                self.read_line(*number, text, on_record);
            }
        }
    }
}

/// The text of a line.
fn decode_line(line: &[u8]) -> Result<&str, LineError> {
    if line.len() > MAX_LINE_BYTES {
        return Err(LineError::TooLong);
    }
    std::str::from_utf8(line).map_err(|_| LineError::NotUtf8)
}

/// Parses a line of NDJSON. Drops the parser's error message, which may quote a code.
fn parse_object<'l, const N: usize>(
    schema: &Schema<N>,
    line: &'l str,
) -> Result<[Option<Cow<'l, str>>; N], LineError> {
    let JsonFields(fields) = serde_json::from_str(line).map_err(|error| match error.classify() {
        Category::Data => LineError::NotAnObject,
        Category::Syntax | Category::Eof | Category::Io => LineError::NotJson,
    })?;
    let mut values = [const { None }; N];
    let mut seen = [false; N];
    for (name, value) in fields {
        let index = schema.index_of(&name).ok_or(LineError::NotAnObject)?;
        if std::mem::replace(&mut seen[index], true) {
            return Err(LineError::NotAnObject);
        }
        values[index] = match value {
            JsonField::Null => None,
            JsonField::Text(text) => Some(text),
            JsonField::Number(number) if schema.numbers.contains(&schema.names[index]) => Some(number.into()),
            // A number loses leading zeros and digits.
            JsonField::Number(_) => return Err(LineError::NotAnObject),
        };
    }
    Ok(values)
}

/// The fields of an object in their order, also repeated ones.
struct JsonFields<'a>(Vec<(Cow<'a, str>, JsonField<'a>)>);

enum JsonField<'a> {
    Null,
    Text(Cow<'a, str>),
    Number(String),
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = JsonFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(JsonFields(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonField<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Field;

        impl<'de> Visitor<'de> for Field {
            type Value = JsonField<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(JsonField::Null)
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(JsonField::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(JsonField::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(JsonField::Number(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(JsonField::Number(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                Ok(JsonField::Number(number.to_string()))
            }
        }

        deserializer.deserialize_any(Field)
    }
}
