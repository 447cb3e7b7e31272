//! Reasons for rejecting a record of a table.

/// Enough for the longest parts of a voucher, quoted and escaped.
pub const MAX_LINE_BYTES: usize = 16 * 1024;

/// Reason for rejecting a record. Never quotes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("the line has more than {MAX_LINE_BYTES} bytes")]
    TooLong,
    #[error("the line is not UTF-8; it is probably Windows-1252 (Latin-1): save the file as UTF-8")]
    NotUtf8,
    #[error("a quote is not closed on its line")]
    OpenQuote,
    #[error("a quote that was opened before is not closed in the file")]
    InOpenQuote,
    #[error("a quoted field goes on to line {last_line}; the whole record is rejected")]
    SeveralLines { last_line: u64 },
    #[error(
        "a quote stands within a field; quote the whole field, directly after the separator, and double the quotes in it"
    )]
    MisplacedQuote,
    #[error("expected {expected} fields, found {found}")]
    Fields { expected: usize, found: usize },
    #[error("field {0} has a value, but its column has no name")]
    UnnamedColumn(usize),
    #[error("the line is not valid JSON")]
    NotJson,
    #[error(
        "expected an object with the names of a header, each once and each a text; a number loses its zeros"
    )]
    NotAnObject,
}
