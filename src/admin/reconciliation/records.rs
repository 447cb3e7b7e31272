//! A vendor's books as CSV: a header that names the columns, then a voucher a line.
//!
//! Rule: a line that will not do refuses the whole file: books are compared whole or not at all. A reason never quotes the
//! line, which may hold what was meant for another file.

use time::format_description::well_known::Rfc3339;
use time::{Date, OffsetDateTime, UtcOffset};
use uuid::Uuid;
use vouchsafe_actors::domain::money::{AmountText, Currency};

use crate::admin::stock::{Block, Fields, LineFault, bare, check};
use crate::errors::ApiError;
use crate::reconciliation::{Line, Said};
use crate::vendor::PurchaseKey;

/// The columns that there are; all but the last must be there.
const NAMES: [&str; 6] = [
    "reference",
    "product_id",
    "denomination",
    "currency",
    "sold_at",
    "purchase_id",
];

/// How many must be there.
const REQUIRED: usize = 5;

/// Fields of a line that are told apart: as many as there can be columns, and one too many.
const MAX_FIELDS: usize = NAMES.len() + 1;

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// It names no columns.
    #[error(
        "expected the columns reference, product_id, denomination, currency, sold_at, and at will purchase_id, each once"
    )]
    Header,
    /// It cannot be split into fields.
    #[error(transparent)]
    Line(#[from] LineFault),
    /// A field is not what it should be.
    #[error("{0} is not as in the vendor protocol")]
    Field(&'static str),
    /// It was sold on another day.
    #[error("sold_at lies on another day, in UTC")]
    OtherDay,
}

/// What is wrong, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    line: u64,
    fault: Fault,
}

impl From<Refused> for ApiError {
    fn from(Refused { line, fault }: Refused) -> Self {
        Self::invalid(
            format!("line {line}"),
            format!("{fault}; nothing of the file was taken"),
        )
    }
}

/// Reads books, block by block in their order.
pub(super) struct Reader {
    day: Date,
    columns: Option<Columns>,
}

/// Where each column is.
struct Columns {
    positions: [Option<usize>; NAMES.len()],
    width: usize,
    fields: Fields<MAX_FIELDS>,
}

impl Reader {
    /// Of the books of this day.
    pub(super) const fn new(day: Date) -> Self {
        Self { day, columns: None }
    }

    /// The lines of a block.
    pub(super) fn read(&mut self, block: &Block) -> Result<Vec<Line>, Refused> {
        let mut lines = Vec::new();
        for (number, line) in block.lines() {
            let line = bare(number, line);
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let read = check(line).map_err(Fault::from).and_then(|text| self.line(text));
            lines.extend(read.map_err(|fault| Refused { line: number, fault })?);
        }
        Ok(lines)
    }

    /// What is missing at the end of the file.
    pub(super) fn finish(&self) -> Result<(), Refused> {
        self.columns.is_some().then_some(()).ok_or(Refused {
            line: 1,
            fault: Fault::Header,
        })
    }

    /// A line; the first one names the columns.
    fn line(&mut self, text: &str) -> Result<Option<Line>, Fault> {
        match &mut self.columns {
            Some(columns) => columns.line(text, self.day).map(Some),
            None => {
                self.columns = Some(Columns::read(text)?);
                Ok(None)
            }
        }
    }
}

impl Columns {
    fn read(text: &str) -> Result<Self, Fault> {
        let mut fields = Fields::default();
        let mut positions = [None; NAMES.len()];
        let found = fields.split(text)?;
        for position in 0..found.count {
            let name = found.get(position).trim().to_ascii_lowercase();
            let column = NAMES.iter().position(|known| *known == name);
            let column = column.ok_or(Fault::Header)?;
            if positions[column].replace(position).is_some() {
                return Err(Fault::Header);
            }
        }
        let width = found.count;
        if positions[..REQUIRED].iter().any(Option::is_none) {
            return Err(Fault::Header);
        }
        Ok(Self {
            positions,
            width,
            fields,
        })
    }

    fn line(&mut self, text: &str, day: Date) -> Result<Line, Fault> {
        let split = self.fields.split(text)?;
        if split.count != self.width {
            return Err(Fault::Line(LineFault::Fields {
                expected: self.width,
                found: split.count,
            }));
        }
        let texts = self
            .positions
            .map(|position| position.map_or("", |at| split.get(at).trim()));
        let [
            reference,
            product_id,
            denomination,
            currency,
            sold_at,
            purchase_id,
        ] = texts;
        let sold_at = OffsetDateTime::parse(sold_at, &Rfc3339).map_err(|_| Fault::Field("sold_at"))?;
        if sold_at.to_offset(UtcOffset::UTC).date() != day {
            return Err(Fault::OtherDay);
        }
        let currency: Currency = currency.parse().map_err(|_| Fault::Field("currency"))?;
        let denomination = AmountText::from(denomination)
            .parse(currency)
            .map_err(|_| Fault::Field("denomination"))?;
        Ok(Line {
            reference: reference.parse().map_err(|_| Fault::Field("reference"))?,
            said: Said {
                purchase: purchase(purchase_id)?,
                product_id: product_id.parse().map_err(|_| Fault::Field("product_id"))?,
                denomination: denomination.of(currency),
            },
            sold_at,
        })
    }
}

/// The key of a purchase, where there is one.
fn purchase(text: &str) -> Result<Option<PurchaseKey>, Fault> {
    if text.is_empty() {
        return Ok(None);
    }
    let key = Uuid::try_parse(text).map_err(|_| Fault::Field("purchase_id"))?;
    Ok(Some(PurchaseKey(key)))
}

#[cfg(test)]
mod tests;
