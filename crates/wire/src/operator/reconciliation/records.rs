//! Reader of vendor records: a table with one voucher per line.
//!
//! An invalid line rejects the whole file. An error never quotes the line, which may contain codes.

use time::format_description::well_known::Rfc3339;
use time::{Date, OffsetDateTime, UtcOffset};
use uuid::Uuid;
use vouchsafe_domain::money::{AmountText, Currency};
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_domain::reconciliation::{RecordLine, VoucherTerms};

use crate::error_body::InvalidRequest;
use crate::operator::table::blocks::Block;
use crate::operator::table::columns::Schema;
use crate::operator::table::line_error::LineError;
use crate::operator::table::notice::FileError;
use crate::operator::table::reader::{Format, TableReader, Values};

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

const SCHEMA: Schema<{ COLUMN_NAMES.len() }> = Schema {
    names: COLUMN_NAMES,
    without_header: &[],
    is_ragged: false,
    numbers: &["denomination"],
};

/// Error in a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Line(#[from] LineError),
    #[error("{0} is invalid; see the vendor protocol")]
    Field(&'static str),
    #[error("denomination has a decimal comma; write 25.00")]
    DecimalComma,
    #[error("sold_at is on another day in UTC")]
    OtherDay,
}

/// An invalid line and its error.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    table: TableReader<{ COLUMN_NAMES.len() }>,
}

impl RecordReader {
    /// Takes records of this day.
    #[must_use]
    pub const fn new(day: Date) -> Self {
        Self {
            day,
            table: TableReader::new(SCHEMA, Format::Csv),
        }
    }

    /// Parses a block. Call it with the blocks in order.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn read(&mut self, block: &Block) -> Result<Vec<RecordLine>, RejectedLine> {
        let mut records = Records::new(self.day);
        let read = self.table.read(block, |line, values| records.add(line, values));
        self.check(read.map_err(RecordError::from), block.first_line)?;
        records.into_result()
    }

    /// Reads what is left at the end of the file.
    ///
    /// # Errors
    /// The first invalid line, or the first line of a file without a header.
    pub fn finish(&mut self) -> Result<Vec<RecordLine>, RejectedLine> {
        let mut records = Records::new(self.day);
        let read = self.table.finish(|line, values| records.add(line, values));
        self.check(read.map_err(RecordError::from), 1)?;
        records.into_result()
    }

    /// Requires the columns that a file of CSV must have.
    fn check(&self, read: Result<(), RecordError>, line: u64) -> Result<(), RejectedLine> {
        let missing = (0..REQUIRED_COLUMNS).find(|column| self.table.has(*column) == Some(false));
        let missing = missing.map(|column| FileError::MissingColumn(COLUMN_NAMES[column].to_owned()));
        let read = read.and_then(|()| missing.map_or(Ok(()), |missing| Err(missing.into())));
        read.map_err(|error| RejectedLine { line, error })
    }
}

/// The records of a block, or its first invalid line.
struct Records {
    day: Date,
    result: Result<Vec<RecordLine>, RejectedLine>,
}

impl Records {
    const fn new(day: Date) -> Self {
        Self {
            day,
            result: Ok(Vec::new()),
        }
    }

    fn add(&mut self, line: u64, values: Result<Values<'_, { COLUMN_NAMES.len() }>, LineError>) {
        let Ok(records) = &mut self.result else { return };
        let record = values
            .map_err(RecordError::from)
            .and_then(|values| parse_record(values, self.day));
        match record {
            Ok(record) => records.push(record),
            Err(error) => self.result = Err(RejectedLine { line, error }),
        }
    }

    fn into_result(self) -> Result<Vec<RecordLine>, RejectedLine> {
        self.result
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
    if denomination.contains(',') {
        return Err(RecordError::DecimalComma);
    }
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
