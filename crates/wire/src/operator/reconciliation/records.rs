//! CSV parser for vendor records: a header line, then one voucher per line.
//!
//! An invalid line rejects the whole file. An error never quotes the line, which may contain codes.

use time::format_description::well_known::Rfc3339;
use time::{Date, OffsetDateTime, UtcOffset};
use uuid::Uuid;
use vouchsafe_domain::money::{AmountText, Currency};
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_domain::reconciliation::{RecordLine, VoucherTerms};

use crate::error_body::InvalidRequest;
use crate::operator::stock::blocks::Block;
use crate::operator::stock::columns::{ColumnError, Columns};
use crate::operator::stock::row::{LineError, decode_line, strip_byte_order_mark};

/// All columns; the last one is optional.
const COLUMN_NAMES: [&str; 6] = [
    "reference",
    "product_id",
    "denomination",
    "currency",
    "sold_at",
    "purchase_id",
];

const REQUIRED_COLUMNS: usize = 5;

/// One more than there are columns, to detect lines with too many fields.
const MAX_FIELDS: usize = COLUMN_NAMES.len() + 1;

/// Error in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error(
        "expected the columns reference, product_id, denomination, currency, sold_at and optionally purchase_id, each once"
    )]
    Header,
    #[error(transparent)]
    Line(#[from] LineError),
    #[error("{0} is invalid; see the vendor protocol")]
    Field(&'static str),
    #[error("sold_at is on another day in UTC")]
    OtherDay,
}

/// An invalid line and its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectedLine {
    line: u64,
    error: RecordError,
}

impl From<RejectedLine> for InvalidRequest {
    fn from(RejectedLine { line, error }: RejectedLine) -> Self {
        Self::field(
            format!("line {line}"),
            format!("{error}; the whole file was rejected"),
        )
    }
}

/// Parses the blocks of a file, in order.
pub struct RecordReader {
    day: Date,
    columns: Option<Columns<{ COLUMN_NAMES.len() }, MAX_FIELDS>>,
}

impl RecordReader {
    /// For records of this day.
    #[must_use]
    pub const fn new(day: Date) -> Self {
        Self { day, columns: None }
    }

    /// Parses a block. Call it with the blocks in order.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn read(&mut self, block: &Block) -> Result<Vec<RecordLine>, RejectedLine> {
        let mut lines = Vec::new();
        for (number, line) in block.lines() {
            let line = strip_byte_order_mark(number, line);
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let read = decode_line(line)
                .map_err(RecordError::from)
                .and_then(|text| self.parse_line(text));
            lines.extend(read.map_err(|error| RejectedLine { line: number, error })?);
        }
        Ok(lines)
    }

    /// Fails if the file had no header.
    ///
    /// # Errors
    /// [`RecordError::Header`] for the first line.
    pub fn finish(&self) -> Result<(), RejectedLine> {
        self.columns.is_some().then_some(()).ok_or(RejectedLine {
            line: 1,
            error: RecordError::Header,
        })
    }

    /// Parses the header (first line) or a record.
    fn parse_line(&mut self, text: &str) -> Result<Option<RecordLine>, RecordError> {
        match &mut self.columns {
            Some(columns) => parse_record(columns.split(text)?, self.day).map(Some),
            None => {
                let columns = Columns::parse_header(&COLUMN_NAMES, text).map_err(|error| match error {
                    ColumnError::Line(error) => error.into(),
                    ColumnError::Unknown(_) | ColumnError::Repeated(_) => RecordError::Header,
                })?;
                if !columns.has_first(REQUIRED_COLUMNS) {
                    return Err(RecordError::Header);
                }
                self.columns = Some(columns);
                Ok(None)
            }
        }
    }
}

fn parse_record(texts: [Option<&str>; COLUMN_NAMES.len()], day: Date) -> Result<RecordLine, RecordError> {
    let [
        reference,
        product_id,
        denomination,
        currency,
        sold_at,
        purchase_id,
    ] = texts.map(|text| text.unwrap_or_default().trim());
    let sold_at = OffsetDateTime::parse(sold_at, &Rfc3339).map_err(|_| RecordError::Field("sold_at"))?;
    if sold_at.to_offset(UtcOffset::UTC).date() != day {
        return Err(RecordError::OtherDay);
    }
    let currency: Currency = currency.parse().map_err(|_| RecordError::Field("currency"))?;
    let denomination = AmountText::from(denomination)
        .parse(currency)
        .map_err(|_| RecordError::Field("denomination"))?;
    Ok(RecordLine {
        reference: reference.parse().map_err(|_| RecordError::Field("reference"))?,
        terms: VoucherTerms {
            purchase: parse_purchase_key(purchase_id)?,
            product_id: product_id.parse().map_err(|_| RecordError::Field("product_id"))?,
            denomination: denomination.of(currency),
        },
        sold_at,
    })
}

/// An empty field means no purchase.
fn parse_purchase_key(text: &str) -> Result<Option<PurchaseKey>, RecordError> {
    if text.is_empty() {
        return Ok(None);
    }
    let key = Uuid::try_parse(text).map_err(|_| RecordError::Field("purchase_id"))?;
    Ok(Some(PurchaseKey(key)))
}

#[cfg(test)]
mod tests;
