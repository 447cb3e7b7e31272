//! Vouchers in records of CSV or NDJSON, and in request bodies.

use time::Date;
use vouchsafe_domain::iso_date;
use vouchsafe_security::vault::code::{CodePart, CodeParts, InvalidCode, VoucherCode};

use super::spreadsheet::Damage;
use crate::operator::table::line_error::LineError;

/// Why a code is rejected that the brand has already.
pub const CODE_CONFLICT: &str =
    "the brand has this code with another PIN, and the product's code_identity is `code`";

#[derive(Debug)]
pub struct VoucherRow {
    pub code: VoucherCode,
    pub expiry: Option<Date>,
}

/// Unparsed fields of a voucher.
#[derive(Clone, Copy, Default)]
pub struct VoucherFields<'a> {
    pub parts: CodeParts<'a>,
    pub expiry: Option<&'a str>,
}

impl VoucherFields<'_> {
    /// Checks the parts of the code.
    ///
    /// # Errors
    /// [`RowError::Code`].
    pub fn check_code(&self) -> Result<(), RowError> {
        VoucherCode::parse(self.parts)?;
        Ok(())
    }
}

/// Reason for rejecting a voucher. Never quotes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    #[error(transparent)]
    Line(#[from] LineError),
    #[error(transparent)]
    Code(#[from] InvalidCode),
    #[error(
        "{part} is {damage}, as a spreadsheet writes it; if the brand's codes look so, repeat it with accept_as_is"
    )]
    Damaged { part: CodePart, damage: Damage },
    #[error("expiry is not a date as YYYY-MM-DD")]
    NotADate,
    #[error("expired on {0}")]
    Expired(Date),
    #[error("{0} is another one than the request names")]
    OtherSku(&'static str),
    #[error("the record names a sold voucher, whose code must not be imported again")]
    SoldVoucher,
    #[error("{CODE_CONFLICT}")]
    Conflict,
}

/// Whether texts that a spreadsheet has damaged are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DamagePolicy {
    #[default]
    Refuse,
    /// The brand has codes that look so.
    AcceptAsIs,
}

impl DamagePolicy {
    /// Takes the option of a request.
    #[must_use]
    pub const fn new(accept_as_is: bool) -> Self {
        if accept_as_is {
            Self::AcceptAsIs
        } else {
            Self::Refuse
        }
    }

    /// Checks the parts of a code.
    ///
    /// # Errors
    /// [`RowError::Damaged`].
    pub fn check(self, parts: CodeParts<'_>) -> Result<(), RowError> {
        if self == Self::AcceptAsIs {
            return Ok(());
        }
        let texts = [
            (CodePart::Code, Some(parts.code)),
            (CodePart::Pin, parts.pin),
            (CodePart::Serial, parts.serial),
        ];
        for (part, text) in texts {
            if let Some(damage) = text.and_then(Damage::find) {
                return Err(RowError::Damaged { part, damage });
            }
        }
        Ok(())
    }
}

/// Context for parsing a voucher.
#[derive(Debug, Clone, Copy)]
pub struct RowPolicy {
    /// Vouchers last valid before this day are rejected.
    pub today: Date,
    /// Expiry of vouchers without one.
    pub default_expiry: Option<Date>,
    pub damage: DamagePolicy,
}

impl RowPolicy {
    /// Parses the fields of a voucher.
    ///
    /// # Errors
    /// [`RowError`] for an invalid field.
    pub fn parse_row(self, fields: &VoucherFields<'_>) -> Result<VoucherRow, RowError> {
        self.damage.check(fields.parts)?;
        let code = VoucherCode::parse(fields.parts)?;
        let expiry = match fields.expiry.map(str::trim).filter(|text| !text.is_empty()) {
            Some(text) => Some(iso_date::parse_date(text).ok_or(RowError::NotADate)?),
            None => self.default_expiry,
        };
        match expiry {
            Some(day) if day < self.today => Err(RowError::Expired(day)),
            expiry => Ok(VoucherRow { code, expiry }),
        }
    }
}
