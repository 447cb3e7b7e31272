//! Face values of a product: listed ones, and a range.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vouchsafe_domain::money::{Amount, AmountText, Currency, Money};
use vouchsafe_domain::product::DenominationRange;

use super::{FieldErrors, MAX_DENOMINATIONS};

/// Minor units: 1,000 vouchers of it, the most in an order, do not overflow.
const MAX_DENOMINATION: i64 = 1_000_000_000_000;

/// Range of face values in equal steps.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DenominationRangeRequest {
    /// Lowest face value.
    pub(super) min: AmountText,
    /// Highest face value: `min` plus a multiple of `step`.
    pub(super) max: AmountText,
    /// Difference between two consecutive face values.
    pub(super) step: AmountText,
}

/// Sorts the face values and rejects repetitions.
pub(super) fn parse_denominations(
    texts: &[AmountText],
    currency: Currency,
    errors: &mut FieldErrors,
) -> Vec<Money> {
    if texts.len() > MAX_DENOMINATIONS {
        errors.add(
            "denominations",
            format!("expected at most {MAX_DENOMINATIONS}; use denomination_range for more"),
        );
        return Vec::new();
    }
    let mut found = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let field = format!("denominations[{index}]");
        match parse_face_value(text, currency) {
            Ok(amount) if found.contains(&amount) => errors.add(field, "is listed more than once"),
            Ok(amount) => found.push(amount),
            Err(message) => errors.add(field, message),
        }
    }
    found.sort_unstable();
    found
        .into_iter()
        .map(|amount: Amount| amount.of(currency))
        .collect()
}

fn parse_face_value(text: &AmountText, currency: Currency) -> Result<Amount, String> {
    let amount = text.parse(currency).map_err(|error| error.to_string())?;
    match amount.minor() {
        1..=MAX_DENOMINATION => Ok(amount),
        ..=0 => Err("expected more than zero".to_owned()),
        _ => Err("the face value is too large".to_owned()),
    }
}

impl DenominationRangeRequest {
    pub(super) fn parse(&self, currency: Currency) -> Result<DenominationRange, String> {
        let read = |text| parse_face_value(text, currency);
        let (min, max) = (read(&self.min)?, read(&self.max)?);
        let range = DenominationRange::new([min, max, read(&self.step)?], currency);
        if min > max {
            return Err("min is more than max".to_owned());
        }
        if !range.contains(max) {
            return Err("max is not min plus a multiple of step".to_owned());
        }
        Ok(range)
    }
}
