//! Lists of vouchers in files: to import, to fulfil an order, to void, or that were sold. All have the same
//! columns.

use vouchsafe_domain::money::{AmountText, Currency};
use vouchsafe_domain::product::Sku;
use vouchsafe_security::vault::code::{CodeParts, InvalidCode};

use super::row::{DamagePolicy, RowError, RowPolicy, VoucherFields, VoucherRow};
use crate::operator::table::blocks::{Block, BlockSplitter};
use crate::operator::table::columns::Schema;
use crate::operator::table::line_error::LineError;
use crate::operator::table::notice::{FileError, Notice};
use crate::operator::table::reader::{Format, TableReader, Values};

/// Columns of a list.
pub const COLUMNS: [&str; 9] = [
    "code",
    "pin",
    "serial",
    "url",
    "expiry",
    "product_id",
    "denomination",
    "code_id",
    "voucher_id",
];

const CODE: usize = 0;

const CODE_ID: usize = 7;

const VOUCHER_ID: usize = 8;

/// What a list is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListPurpose {
    /// Vouchers to store.
    Store,
    /// Codes to take out of sale.
    Void,
    /// Vouchers that were sold, by code, by the row of their code, or by their public id.
    Sold,
}

impl ListPurpose {
    const fn schema(self) -> Schema<{ COLUMNS.len() }> {
        Schema {
            names: COLUMNS,
            without_header: match self {
                Self::Store | Self::Void => &["code", "pin"],
                // A code alone names no product.
                Self::Sold => &[],
            },
            // A recall names some cards with their PIN, others without.
            is_ragged: matches!(self, Self::Void),
            numbers: &["denomination", "code_id"],
        }
    }

    const fn uses(self, column: usize) -> bool {
        match self {
            // Product and face value are compared with the request.
            Self::Store => column < CODE_ID,
            Self::Void => matches!(column, 0 | 1 | 5),
            Self::Sold => !matches!(column, 2..5),
        }
    }
}

/// Fields of a record of a list. Empty ones are absent.
#[derive(Clone, Copy, Default)]
pub struct ListedVoucher<'a> {
    pub voucher: VoucherFields<'a>,
    pub product_id: Option<&'a str>,
    pub denomination: Option<&'a str>,
    pub code_id: Option<&'a str>,
    pub voucher_id: Option<&'a str>,
}

impl<'a> ListedVoucher<'a> {
    fn of(values: Values<'a, { COLUMNS.len() }>) -> Self {
        let values = values.map(|value| value.filter(|text| !text.trim().is_empty()));
        let [
            code,
            pin,
            serial,
            url,
            expiry,
            product_id,
            denomination,
            code_id,
            voucher_id,
        ] = values;
        Self {
            voucher: VoucherFields {
                parts: CodeParts {
                    code: code.unwrap_or_default(),
                    pin,
                    serial,
                    url,
                },
                expiry,
            },
            product_id: product_id.map(str::trim),
            denomination: denomination.map(str::trim),
            code_id: code_id.map(str::trim),
            voucher_id: voucher_id.map(str::trim),
        }
    }

    /// Checks that the record names no other SKU.
    ///
    /// # Errors
    /// [`RowError::OtherSku`].
    pub fn check_sku(&self, sku: &Sku, currency: Currency) -> Result<(), RowError> {
        if self.product_id.is_some_and(|id| id != sku.product_id.as_str()) {
            return Err(RowError::OtherSku("product_id"));
        }
        let is_other = |text: &str| AmountText::from(text).parse(currency) != Ok(sku.denomination);
        if self.denomination.is_some_and(is_other) {
            return Err(RowError::OtherSku("denomination"));
        }
        Ok(())
    }
}

/// Reads a list.
pub struct VoucherList {
    table: TableReader<{ COLUMNS.len() }>,
    purpose: ListPurpose,
    damage: DamagePolicy,
    is_header_checked: bool,
    notices: Vec<Notice>,
}

impl VoucherList {
    #[must_use]
    pub const fn new(purpose: ListPurpose, format: Format, damage: DamagePolicy) -> Self {
        Self {
            table: TableReader::new(purpose.schema(), format),
            purpose,
            damage,
            is_header_checked: false,
            notices: Vec::new(),
        }
    }

    /// What was found out about the file so far.
    pub fn notices(&self) -> impl Iterator<Item = &Notice> {
        self.table.notices().iter().chain(&self.notices)
    }

    /// Reads the records of a block, each with the number of its first line. Call it with the blocks in
    /// order.
    ///
    /// # Errors
    /// [`FileError`] for a file that is no such list.
    pub fn read(
        &mut self,
        block: &Block,
        mut on_record: impl FnMut(u64, Result<ListedVoucher<'_>, RowError>),
    ) -> Result<(), FileError> {
        let (purpose, damage) = (self.purpose, self.damage);
        self.table.read(block, |line, values| {
            on_record(line, check(purpose, damage, values));
        })?;
        self.check_header()
    }

    /// Ends the list.
    ///
    /// # Errors
    /// [`FileError::Empty`] for a CSV file without a line.
    pub fn finish(
        &mut self,
        mut on_record: impl FnMut(u64, Result<ListedVoucher<'_>, RowError>),
    ) -> Result<(), FileError> {
        let (purpose, damage) = (self.purpose, self.damage);
        self.table
            .finish(|line, values| on_record(line, check(purpose, damage, values)))
    }

    /// Checks the columns of a CSV file, once.
    fn check_header(&mut self) -> Result<(), FileError> {
        let Some(has_code) = self.table.has(CODE) else {
            return Ok(());
        };
        if std::mem::replace(&mut self.is_header_checked, true) {
            return Ok(());
        }
        let has = |column| self.table.has(column) == Some(true);
        match self.purpose {
            ListPurpose::Store if has(CODE_ID) => return Err(FileError::SoldVouchers(COLUMNS[CODE_ID])),
            ListPurpose::Store if has(VOUCHER_ID) => {
                return Err(FileError::SoldVouchers(COLUMNS[VOUCHER_ID]));
            }
            ListPurpose::Sold if has(CODE_ID) || has(VOUCHER_ID) => {}
            ListPurpose::Sold if !has_code => {
                return Err(FileError::MissingColumn("code, code_id or voucher_id".to_owned()));
            }
            _ if !has_code => return Err(FileError::MissingColumn(COLUMNS[CODE].to_owned())),
            _ => {}
        }
        let unused = (0..COLUMNS.len()).filter(|column| has(*column) && !self.purpose.uses(*column));
        let unused: Vec<&str> = unused.map(|column| COLUMNS[column]).collect();
        if !unused.is_empty() {
            self.notices.push(Notice::UnusedColumns(unused.join(", ")));
        }
        Ok(())
    }
}

fn check<'v>(
    purpose: ListPurpose,
    damage: DamagePolicy,
    values: Result<Values<'v, { COLUMNS.len() }>, LineError>,
) -> Result<ListedVoucher<'v>, RowError> {
    let listed = ListedVoucher::of(values?);
    damage.check(listed.voucher.parts)?;
    let has_code = !listed.voucher.parts.code.is_empty();
    match purpose {
        ListPurpose::Store if listed.code_id.is_some() || listed.voucher_id.is_some() => {
            Err(RowError::SoldVoucher)
        }
        ListPurpose::Sold if listed.code_id.is_some() || listed.voucher_id.is_some() => Ok(listed),
        _ if !has_code => Err(InvalidCode::Missing.into()),
        _ => Ok(listed),
    }
}

/// Records of a list that is in memory as a whole: values that `convert` makes of them, and the rejected
/// lines.
pub struct WholeList<T> {
    pub values: Vec<(u64, T)>,
    pub rejected: Vec<(u64, RowError)>,
    pub notices: Vec<Notice>,
}

/// Reads a whole list.
///
/// # Errors
/// [`FileError`] for a file that is no such list.
pub fn read_whole<T>(
    mut list: VoucherList,
    bytes: &[u8],
    convert: impl Fn(&ListedVoucher<'_>) -> Result<T, RowError>,
) -> Result<WholeList<T>, FileError> {
    let (mut values, mut rejected) = (Vec::new(), Vec::new());
    let mut add = |line, listed: Result<ListedVoucher<'_>, RowError>| match listed
        .and_then(|listed| convert(&listed))
    {
        Ok(value) => values.push((line, value)),
        Err(error) => rejected.push((line, error)),
    };
    let mut blocks = BlockSplitter::default();
    blocks.push(bytes)?;
    blocks.finish()?;
    while let Some(block) = blocks.take() {
        list.read(&block, &mut add)?;
    }
    list.finish(&mut add)?;
    let notices = blocks.notices().iter().chain(list.notices()).cloned().collect();
    Ok(WholeList {
        values,
        rejected,
        notices,
    })
}

/// Vouchers of a block, parsed.
#[derive(Debug, Default)]
pub struct ParsedBlock {
    pub rows: Vec<VoucherRow>,
    /// Line number of each row.
    pub lines: Vec<u64>,
    pub rejected: Vec<(u64, RowError)>,
}

impl ParsedBlock {
    /// Adds a record of a list whose vouchers are of this SKU.
    pub fn add(
        &mut self,
        line: u64,
        listed: Result<ListedVoucher<'_>, RowError>,
        policy: RowPolicy,
        (sku, currency): (&Sku, Currency),
    ) {
        let row = listed.and_then(|listed| {
            listed.check_sku(sku, currency)?;
            policy.parse_row(&listed.voucher)
        });
        match row {
            Ok(row) => {
                self.rows.push(row);
                self.lines.push(line);
            }
            Err(reason) => self.rejected.push((line, reason)),
        }
    }
}

#[cfg(test)]
mod tests;
