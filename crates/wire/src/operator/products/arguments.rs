//! Command-line options of the fields of a product that are objects.

use vouchsafe_domain::product::ExpiryKind;

use super::{DenominationRangeRequest, ExpiryPolicyRequest};
use crate::json::JsonObject;

/// The options with a value of a product. clap leaves the group of a struct empty if some fields are flattened, as the
/// expiry policy is.
pub(super) const OPTIONS: [&str; 12] = [
    "name",
    "brand",
    "category_id",
    "vendor",
    "currency",
    "countries",
    "denominations",
    "denomination_range",
    "route",
    "approval",
    "min_validity_days",
    "low_stock_at",
];

#[derive(clap::Args)]
#[group(id = "ExpiryPolicyRequest")]
struct ExpiryOptions {
    /// Last valid day of all vouchers, as YYYY-MM-DD.
    #[arg(long, value_name = "DATE", conflicts_with = "valid_months")]
    expires_on: Option<String>,
    /// Validity of a voucher, in months.
    #[arg(long, value_name = "MONTHS")]
    valid_months: Option<u32>,
}

impl From<ExpiryOptions> for ExpiryPolicyRequest {
    fn from(options: ExpiryOptions) -> Self {
        let (kind, value) = match (options.expires_on, options.valid_months) {
            (Some(day), _) => (ExpiryKind::FixedDate, Some(day.into())),
            (None, Some(months)) => (ExpiryKind::MonthsFromIssue, Some(months.into())),
            (None, None) => (ExpiryKind::None, None),
        };
        Self { kind, value }
    }
}

vouchsafe_domain::parse_as_options!(ExpiryPolicyRequest, ExpiryOptions);

/// Parses a range of face values, such as `10:500:5`.
pub(super) fn parse_range(text: &str) -> Result<JsonObject<DenominationRangeRequest>, &'static str> {
    let parts: Vec<&str> = text.split(':').collect();
    let [min, max, step] = parts[..] else {
        return Err("expected MIN:MAX:STEP, such as 10:500:5");
    };
    Ok(JsonObject(DenominationRangeRequest {
        min: min.into(),
        max: max.into(),
        step: step.into(),
    }))
}
