//! Errors of orders whose items cannot be ordered: they name each item.

use vouchsafe_domain::catalogue::{PricingError, PricingFailure};
use vouchsafe_domain::product::ProductId;

use crate::error_body::{ErrorDetail, InvalidRequest};
use crate::error_code::Code;

/// Quantities that a refusal discloses: the largest one in stock, so that large levels stay unknown.
const DISCLOSED_QUANTITIES: [u32; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/// The error of an order that cannot be priced: the code is that of the first reason, the details name every
/// item.
#[must_use]
pub fn pricing_error(failure: PricingFailure) -> InvalidRequest {
    let PricingFailure { first, lines } = failure;
    let details = lines.into_iter().map(|(line, error)| item_detail(line, &error));
    let mut details: Vec<ErrorDetail> = details.collect();
    if details.is_empty() {
        details.push(ErrorDetail::new("items", first.to_string()));
    }
    InvalidRequest {
        code: code_of(&first),
        message: first.to_string(),
        details,
    }
}

/// The error of an order for more vouchers than there are in stock.
#[must_use]
pub fn insufficient_inventory(
    product_id: &ProductId,
    line: usize,
    requested: usize,
    available: usize,
) -> InvalidRequest {
    let disclosed = DISCLOSED_QUANTITIES
        .iter()
        .rfind(|quantity| **quantity as usize <= available && (**quantity as usize) < requested);
    let (message, expected) = match disclosed {
        Some(quantity) => (
            format!(
                "fewer than {requested} vouchers of product {product_id} are in stock, but at least \
                 {quantity}; order less or another product"
            ),
            format!("expected at most {quantity}"),
        ),
        None => (
            format!(
                "fewer than {requested} vouchers of product {product_id} are in stock; order less or another product"
            ),
            "no smaller quantity is in stock".to_owned(),
        ),
    };
    InvalidRequest {
        code: Code::InsufficientInventory,
        message,
        details: vec![ErrorDetail {
            max_quantity: Some(disclosed.copied().unwrap_or_default()),
            ..ErrorDetail::new(format!("items[{line}].quantity"), expected)
        }],
    }
}

fn item_detail(line: usize, error: &PricingError) -> ErrorDetail {
    let (field, message) = match error {
        PricingError::ProductNotFound(_)
        | PricingError::Discontinued(_)
        | PricingError::CurrencyMismatch { .. } => ("product_id", error.to_string()),
        PricingError::DenominationNotOffered { .. } => ("denomination", error.to_string()),
        PricingError::InvalidAmount { error, .. } => ("denomination", error.to_string()),
        PricingError::TotalTooLarge => ("quantity", error.to_string()),
    };
    ErrorDetail::new(format!("items[{line}].{field}"), message)
}

const fn code_of(error: &PricingError) -> Code {
    match error {
        PricingError::ProductNotFound(_) => Code::ProductNotFound,
        PricingError::Discontinued(_) => Code::ProductUnavailable,
        PricingError::DenominationNotOffered { .. } => Code::DenominationNotAllowed,
        PricingError::CurrencyMismatch { .. } => Code::CurrencyMismatch,
        PricingError::InvalidAmount { .. } | PricingError::TotalTooLarge => Code::ValidationFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pricing_error_names_every_item() {
        let denomination = PricingError::DenominationNotOffered {
            product_id: "card".parse().unwrap(),
            line: 3,
        };
        let unknown = PricingError::ProductNotFound("nothing".to_owned());
        let error = pricing_error(PricingFailure {
            first: denomination.clone(),
            lines: vec![(3, denomination), (7, unknown)],
        });
        assert_eq!(error.code, Code::DenominationNotAllowed);
        let fields: Vec<_> = error.details.iter().map(|detail| detail.field.as_str()).collect();
        assert_eq!(fields, ["items[3].denomination", "items[7].product_id"]);
        assert!(
            error.details[1].message.contains("product nothing not found"),
            "{error:?}"
        );
    }

    #[test]
    fn refusal_discloses_the_magnitude_of_the_stock_only() {
        for (requested, available, disclosed) in [
            (1, 0, 0),
            (10, 1, 1),
            (10, 4, 2),
            (10, 9, 5),
            (1_000, 499, 200),
            (1_000, 999, 500),
            // The available count includes vouchers that concurrent orders hold.
            (5, 60, 2),
        ] {
            let error = insufficient_inventory(&"card".parse().unwrap(), 2, requested, available);
            assert_eq!(error.details[0].field, "items[2].quantity");
            assert_eq!(
                error.details[0].max_quantity,
                Some(disclosed),
                "{requested} of {available}"
            );
            assert!(error.message.contains("product card"), "{error:?}");
        }
    }
}
