//! Bodies of `POST /stock/void`.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vouchsafe_domain::bounds::List;
use vouchsafe_domain::money::AmountText;
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::stock::level::CodeVoidOutcome;
use vouchsafe_security::vault::code::{CodeParts, VoucherCode};

use crate::error_body::InvalidRequest;
use crate::json::JsonObject;
use crate::operator::text::Reason;

/// Most codes of a request: a body of 256 KiB has no space for more long ones.
pub const MAX_CODES: usize = 1_000;

type NamedCodes = List<NamedCode, 1, MAX_CODES>;

/// Vouchers to take out of sale: a whole SKU by its `denomination`, or single `codes`.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct VoidRequest {
    /// Product ID.
    #[schema(value_type = ProductId)]
    #[arg(long = "product", value_name = "PRODUCT")]
    pub product_id: String,
    /// Face value of which all available vouchers are voided.
    #[serde(default)]
    #[arg(
        long,
        value_name = "AMOUNT",
        required_unless_present = "codes",
        conflicts_with = "codes"
    )]
    denomination: Option<AmountText>,
    /// Number of vouchers that `denomination` is expected to void. Another number is refused, and the error
    /// names it. Not used with `codes`.
    #[serde(default)]
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "codes",
        help = "Void nothing unless it is this number of vouchers"
    )]
    pub expected_count: Option<u32>,
    /// Codes to void.
    #[serde(default)]
    #[schema(value_type = Option<NamedCodes>)]
    #[arg(skip)]
    pub codes: Option<Vec<JsonObject<NamedCode>>>,
    /// Reason, written to the audit trail.
    #[arg(long)]
    pub reason: Reason,
}

/// A code to void.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedCode {
    /// Voucher code.
    pub code: String,
    /// PIN of the voucher, if it has one.
    #[serde(default)]
    pub pin: Option<String>,
}

/// Leaves out the code.
impl fmt::Debug for NamedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NamedCode(***)")
    }
}

/// The vouchers to void.
pub enum VoidSelection {
    /// All available vouchers of this face value.
    Denomination(AmountText),
    /// Single codes.
    Codes(Vec<VoucherCode>),
}

impl VoidRequest {
    /// The vouchers to void.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn selection(self) -> Result<VoidSelection, InvalidRequest> {
        match (self.denomination, self.codes) {
            (Some(denomination), None) => Ok(VoidSelection::Denomination(denomination)),
            (None, Some(codes)) => parse_codes(&codes).map(VoidSelection::Codes),
            _ => Err(InvalidRequest::field(
                "denomination",
                "expected either denomination, for a whole SKU, or codes",
            )),
        }
    }
}

fn parse_codes(codes: &[JsonObject<NamedCode>]) -> Result<Vec<VoucherCode>, InvalidRequest> {
    if !(1..=MAX_CODES).contains(&codes.len()) {
        return Err(InvalidRequest::field(
            "codes",
            format!("expected 1 to {MAX_CODES}"),
        ));
    }
    let parse = |(position, JsonObject(named)): (usize, &JsonObject<NamedCode>)| {
        let parts = CodeParts {
            code: &named.code,
            pin: named.pin.as_deref(),
            ..CodeParts::default()
        };
        let code = VoucherCode::parse(parts);
        code.map_err(|error| InvalidRequest::field(format!("codes[{position}]"), error.to_string()))
    };
    codes.iter().enumerate().map(parse).collect()
}

/// Result of voiding vouchers.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct VoidReport {
    /// Number of vouchers taken out of sale.
    pub voided: u64,
    /// Named codes that this request did not void.
    pub rejected: Vec<RejectedCode>,
}

/// A code that was not voided.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct RejectedCode {
    /// Index in `codes`, from 0.
    pub index: usize,
    /// Reason.
    pub reason: CodeVoidOutcome,
}

impl VoidReport {
    /// `codes` holds the result of each named code, in request order.
    #[must_use]
    pub fn new(voided: u64, codes: &[CodeVoidOutcome]) -> Self {
        let rejected = codes
            .iter()
            .enumerate()
            .filter(|(_, outcome)| **outcome != CodeVoidOutcome::Voided);
        let rejected = rejected
            .map(|(index, reason)| RejectedCode {
                index,
                reason: *reason,
            })
            .collect();
        Self { voided, rejected }
    }
}
