//! Query and result of `POST /stock`.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use vouchsafe_domain::money::{Amount, AmountText};
use vouchsafe_domain::product::Product;
use vouchsafe_domain::timestamp;
use vouchsafe_security::vault::code::CodePart;

use super::row::{RowError, VoucherRow};
use crate::error_body::InvalidRequest;
use crate::error_code::Code;
use crate::operator::table::notice::Notice;
use crate::operator::text::validate_identifier;

/// Rejections listed in the response (contract §10).
const MAX_REJECTIONS: usize = 1_000;

/// Result of an import.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ImportReport {
    /// Vendor of the vouchers.
    pub vendor: String,
    /// Name of the batch.
    pub batch: String,
    /// Number of new vouchers.
    pub imported: u64,
    /// Number of vouchers imported before.
    pub duplicates: u64,
    /// Number of rejected lines.
    pub rejected_count: u64,
    /// The first 1,000 rejected lines.
    pub rejected: Vec<Rejection>,
    /// Whether the request was a dry run: the numbers are what an import would do, and nothing was stored.
    pub dry_run: bool,
    /// What is unusual about the file, such as its encoding or separator.
    pub notices: Vec<String>,
    /// The first vouchers as they were understood, for a dry run. Codes are masked.
    pub first_rows: Vec<RowPreview>,
}

/// A voucher as it was understood, without its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RowPreview {
    /// Line number from 1, including the header.
    pub line: u64,
    /// Its parts: of a code or serial number the first and last two characters and the length, of a PIN only
    /// the length.
    pub parts: Vec<String>,
    /// Last valid day; null if it does not expire.
    #[schema(value_type = Option<String>, required)]
    pub expiry: Option<String>,
}

/// Most vouchers shown by a dry run.
pub const MAX_PREVIEWS: usize = 5;

impl RowPreview {
    /// The preview of a voucher.
    #[must_use]
    pub fn of(line: u64, row: &VoucherRow) -> Self {
        let preview = |(part, text): (CodePart, &str)| {
            let length = text.chars().count();
            let shown = match part {
                CodePart::Code | CodePart::Serial if length >= 8 => {
                    let first: String = text.chars().take(2).collect();
                    let last: String = text.chars().skip(length - 2).collect();
                    format!("{first}…{last}, ")
                }
                _ => String::new(),
            };
            format!("{part}: {shown}{length} characters")
        };
        Self {
            line,
            parts: row.code.parts().map(preview).collect(),
            expiry: row.expiry.map(|day| day.to_string()),
        }
    }
}

/// A rejected line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rejection {
    /// Line number from 1, including the header.
    pub line: u64,
    /// Reason. Never quotes the line.
    pub reason: String,
}

impl ImportReport {
    /// Starts the report of an import into this batch.
    #[must_use]
    pub fn new(vendor: String, batch: String) -> Self {
        Self {
            vendor,
            batch,
            ..Self::default()
        }
    }

    /// Counts the vouchers of a committed block.
    pub const fn add_stored(&mut self, imported: u64, duplicates: u64) {
        self.imported += imported;
        self.duplicates += duplicates;
    }

    /// Sets what was found out about the file.
    pub fn set_notices<'n>(&mut self, notices: impl Iterator<Item = &'n Notice>) {
        self.notices = notices.map(ToString::to_string).collect();
    }

    /// Adds the rejected lines of a block.
    pub fn add_rejected(&mut self, rejected: &[(u64, RowError)]) {
        self.rejected_count += rejected.len() as u64;
        let remaining = MAX_REJECTIONS.saturating_sub(self.rejected.len());
        let shown = rejected.iter().take(remaining);
        self.rejected.extend(shown.map(|(line, reason)| Rejection {
            line: *line,
            reason: reason.to_string(),
        }));
    }
}

/// Query of an import.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct ImportQuery {
    /// Product ID.
    #[param(example = "amzn-us")]
    #[arg(long = "product", value_name = "PRODUCT")]
    pub product_id: String,
    /// Face value.
    // Optional, because an unknown product is reported before a missing denomination.
    #[param(required, example = "25.00")]
    #[arg(long, value_name = "AMOUNT", required = true)]
    pub denomination: Option<String>,
    /// Vendor of the vouchers. Default: the product's vendor.
    #[param(example = "acme-cards")]
    #[arg(long, help = "Vendor of the vouchers [default: the product's vendor]")]
    pub vendor: Option<String>,
    /// Name of the batch, by which reconciliation counts its vouchers; at most 128 characters. Default: the
    /// time of the import.
    #[param(example = "delivery-4711")]
    #[arg(
        long,
        help = "Name of the batch, for reconciliation [default: the time of the import]"
    )]
    pub batch: Option<String>,
    /// Store nothing, and report what an import would do, with the first vouchers as they were understood.
    #[serde(default)]
    #[param(required = false)]
    #[arg(
        long,
        help = "Store nothing; show what an import would do and the first vouchers as understood"
    )]
    pub dry_run: bool,
    /// Accept codes that look damaged by a spreadsheet (`6.03571E+15`, `#N/A`, `="0060"`), for brands whose
    /// codes look so.
    #[serde(default)]
    #[param(required = false)]
    #[arg(
        long,
        help = "Accept codes that look damaged by a spreadsheet, such as 6.03571E+15 or #N/A"
    )]
    pub accept_as_is: bool,
}

/// Characters.
const MAX_BATCH_NAME: usize = 128;

/// The name of a batch, by default the time of its import.
///
/// # Errors
/// `VALIDATION_FAILED`.
pub fn parse_batch(name: Option<&str>, now: OffsetDateTime) -> Result<String, InvalidRequest> {
    match name {
        Some(name) => validate_identifier::<MAX_BATCH_NAME>("batch", name),
        None => Ok(timestamp::format(now).unwrap_or_default()),
    }
}

/// Parses a face value in the product's currency, including discontinued ones.
///
/// # Errors
/// `VALIDATION_FAILED` for an amount that is not one of the currency.
pub fn parse_amount(product: &Product, text: &AmountText) -> Result<Amount, InvalidRequest> {
    text.parse(product.currency)
        .map_err(|error| InvalidRequest::field("denomination", error.to_string()))
}

/// Parses a face value at which the product is sold.
///
/// # Errors
/// `VALIDATION_FAILED` for an amount that is not one of the currency, `DENOMINATION_NOT_ALLOWED` for any
/// other.
pub fn parse_denomination(product: &Product, text: &AmountText) -> Result<Amount, InvalidRequest> {
    let amount = parse_amount(product, text)?;
    if product.has_denomination(amount) {
        return Ok(amount);
    }
    let message = format!("product {} is not sold at this denomination", product.product_id);
    Err(InvalidRequest::new(Code::DenominationNotAllowed, message))
}
