//! Bodies of `/stock/quarantine`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vouchsafe_domain::bounds::List;
use vouchsafe_domain::ids::VoucherId;
use vouchsafe_domain::money::AmountText;
use vouchsafe_domain::product::{ProductId, parse_slug};
use vouchsafe_security::vault::code::{CodeParts, VoucherCode};

use super::void::MAX_CODES;
use crate::error_body::InvalidRequest;
use crate::json::JsonObject;
use crate::operator::text::Reason;

type SoldVouchers = List<SoldVoucherBody, 0, MAX_CODES>;
type QuarantinedSkus = List<QuarantinedSku, 0, MAX_CODES>;

/// Quarantines all available stock.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct QuarantineRequest {
    /// Reason, written to the audit trail.
    #[arg(long)]
    pub reason: Reason,
}

/// The quarantine after a request.
#[derive(Serialize, ToSchema)]
pub struct QuarantineReport {
    /// Whether stock is quarantined.
    pub stock_quarantined: bool,
}

/// Progress of a release.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ReleaseReport {
    /// Vouchers that this request released.
    pub released: u64,
    /// Whether more stock is to be released: repeat the request.
    pub has_more: bool,
    /// Number of the quarantine, for the repeated request.
    pub quarantine: i64,
    /// Whether stock is still quarantined.
    pub stock_quarantined: bool,
}

/// Vouchers that were sold since the backup.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SoldRequest {
    /// The vouchers.
    #[schema(value_type = SoldVouchers)]
    pub vouchers: Vec<JsonObject<SoldVoucherBody>>,
    /// Reason, written to the audit trail.
    pub reason: Reason,
}

/// A sold voucher: by its code, by the `code_id` of its row in the lost database, or by its `voucher_id`,
/// which tells only whether this database has the sale.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SoldVoucher)]
pub struct SoldVoucherBody {
    /// Voucher ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voucher_id: Option<VoucherId>,
    /// `code_id` of its row in the lost database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_id: Option<i64>,
    /// Product of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ProductId>)]
    pub product_id: Option<String>,
    /// Voucher code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// PIN of the voucher, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
}

/// Leaves out the code.
impl std::fmt::Debug for SoldVoucherBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SoldVoucherBody(***)")
    }
}

/// How a sold voucher is named.
pub enum VoucherName {
    Voucher(VoucherId),
    CodeRow(i64, Option<VoucherId>),
    Code { product_id: String, code: VoucherCode },
}

impl SoldRequest {
    /// The vouchers.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn names(&self) -> Result<Vec<VoucherName>, InvalidRequest> {
        if self.vouchers.len() > MAX_CODES {
            return Err(InvalidRequest::field(
                "vouchers",
                format!("expected at most {MAX_CODES}"),
            ));
        }
        let vouchers = self.vouchers.iter().enumerate();
        vouchers
            .map(|(position, voucher)| voucher.0.name(position))
            .collect()
    }
}

impl SoldVoucherBody {
    fn name(&self, position: usize) -> Result<VoucherName, InvalidRequest> {
        let invalid = |message: String| InvalidRequest::field(format!("vouchers[{position}]"), message);
        if let Some(product_id) = &self.product_id {
            parse_slug(product_id).map_err(|error| invalid(format!("product_id: {error}")))?;
        }
        match (&self.code, self.code_id, self.voucher_id) {
            (Some(code), _, _) => {
                let product_id = self.product_id.clone();
                let product_id =
                    product_id.ok_or_else(|| invalid("a code needs its product_id".to_owned()))?;
                let parts = CodeParts {
                    code,
                    pin: self.pin.as_deref(),
                    ..CodeParts::default()
                };
                let code = VoucherCode::parse(parts).map_err(|error| invalid(error.to_string()))?;
                Ok(VoucherName::Code { product_id, code })
            }
            (None, Some(code_id), voucher_id) => Ok(VoucherName::CodeRow(code_id, voucher_id)),
            (None, None, Some(voucher_id)) => Ok(VoucherName::Voucher(voucher_id)),
            (None, None, None) => Err(invalid("expected a code, a code_id or a voucher_id".to_owned())),
        }
    }
}

/// Result of the comparison.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ComparisonReport {
    /// Vouchers whose sale this database has.
    pub known: u64,
    /// Vouchers that belong to no order and are out of sale: since this comparison, or before it.
    pub withdrawn: u64,
    /// Vouchers that belong to an order. If the order returns one, it is not sold again.
    pub kept: u64,
    /// Vouchers that are not in this database: they were imported after the backup. Do not import them again.
    pub absent: u64,
    /// Indexes in `vouchers`, from 0, of those among the absent that are named by their code: one may be
    /// mistyped.
    pub absent_codes: Vec<usize>,
    /// Indexes in `vouchers`, from 0, of those that this database cannot identify.
    pub unidentified: Vec<usize>,
}

/// Releases quarantined stock.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// What the quarantine followed.
    pub after: QuarantineCause,
    /// `quarantine` of the previous response, if the request is repeated to release more. A quarantine that
    /// has begun since is then not released.
    #[serde(default)]
    pub quarantine: Option<i64>,
    /// SKUs whose stock stays quarantined.
    #[serde(default)]
    #[schema(value_type = QuarantinedSkus)]
    pub except: Vec<JsonObject<QuarantinedSku>>,
    /// Reason, written to the audit trail.
    pub reason: Reason,
}

impl ReleaseRequest {
    /// Checks the number of SKUs that stay quarantined.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn check_exceptions(&self) -> Result<(), InvalidRequest> {
        if self.except.len() > MAX_CODES {
            let message = format!("expected at most {MAX_CODES}");
            return Err(InvalidRequest::field("except", message));
        }
        Ok(())
    }
}

/// What a quarantine followed: `RESTORE` (the database lost commits, and `POST /stock/quarantine/sold` named
/// what was sold) or `FAILOVER` (the operator confirms that nothing was lost: a synchronous standby was
/// promoted, or the cluster was upgraded or moved).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum QuarantineCause {
    /// Commits are lost.
    Restore,
    /// Nothing is lost.
    Failover,
}

/// A SKU whose stock stays quarantined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuarantinedSku {
    /// Product ID.
    #[schema(value_type = ProductId)]
    pub product_id: String,
    /// Face value.
    pub denomination: AmountText,
}
