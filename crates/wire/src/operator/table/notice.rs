//! What a reader found out about a file and accepted, and why it refused one.

use std::fmt;

use super::separator::Separator;
use crate::error_body::InvalidRequest;

/// Something unusual in a file that can only be meant in one way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    #[error("the file was read as {0}; save it as UTF-8 to avoid this notice")]
    Encoding(&'static str),
    #[error("the line ends are carriage returns without line feeds, as old programs write them")]
    CarriageReturns,
    #[error("the fields are separated by {0}, not by commas")]
    Separator(Separator),
    #[error("{0} columns without a name are empty and were ignored")]
    UnnamedColumns(usize),
    #[error("the file has no header line: its fields were read as {0}")]
    NoHeader(String),
    #[error("the columns {0} are not used here and were ignored")]
    UnusedColumns(String),
    #[error("the file is NDJSON, not CSV, and was read as such")]
    Ndjson,
}

/// Why a whole file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("the encoding is UTF-32; save the file as UTF-8")]
    Utf32,
    #[error("the file is a workbook or an archive (ZIP); save the sheet as CSV in UTF-8")]
    Archive,
    #[error("the file is compressed (gzip); decompress it first")]
    Compressed,
    #[error("the first line is in the encoding Windows-1252 or Latin-1; save the file as UTF-8")]
    HeaderNotUtf8,
    #[error("the file is empty: its first line must name the columns, some of {0}")]
    Empty(String),
    #[error("the first line is not a header: {reason}; it must name the columns, some of {names}")]
    NoHeader { reason: String, names: String },
    #[error("column {position} of the header{name} is unknown; expected some of {names}")]
    UnknownColumn {
        position: usize,
        name: QuotedName,
        names: String,
    },
    #[error("the header names {0} more than once")]
    RepeatedColumn(&'static str),
    #[error("the header lacks the column {0}")]
    MissingColumn(String),
    #[error(
        "the header has the column {0}: this is a list of sold vouchers, whose codes must not be imported again"
    )]
    SoldVouchers(&'static str),
}

/// The name of an unknown column, if it reads like a title: a code has digits or capital letters only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotedName(Option<String>);

/// Longest name that is quoted, in characters.
const MAX_QUOTED: usize = 40;

impl QuotedName {
    #[must_use]
    pub fn new(name: &str) -> Self {
        let name = name.trim();
        let is_title = |c: char| c.is_alphabetic() || matches!(c, ' ' | '_' | '-' | '.');
        let is_quoted = name.chars().count() <= MAX_QUOTED
            && name.chars().all(is_title)
            && name.contains(char::is_lowercase);
        Self(is_quoted.then(|| name.to_owned()))
    }
}

impl fmt::Display for QuotedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(name) => write!(f, ", `{name}`,"),
            None => Ok(()),
        }
    }
}

impl From<FileError> for InvalidRequest {
    fn from(error: FileError) -> Self {
        let field = match error {
            FileError::Utf32 | FileError::Archive | FileError::Compressed | FileError::Empty(_) => "file",
            _ => "header",
        };
        Self::field(field, error.to_string())
    }
}
