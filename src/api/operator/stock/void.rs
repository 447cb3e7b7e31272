//! `POST /stock/void`: takes vouchers out of sale, all available ones of a SKU or named codes. Sold vouchers stay sold.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vouchsafe_domain::money::AmountText;
use vouchsafe_domain::product::{Product, ProductId, Sku};

use super::import::parse_amount;
use crate::api::error::ApiError;
use crate::api::middleware::operator::{Operator, Role};
use crate::api::operator::body::{Json, validate_text};
use crate::api::operator::catalogue::product_not_found;
use crate::service::Service;
use vouchsafe_store::VoidTarget;
use vouchsafe_domain::stock::level::CodeVoidOutcome;
use vouchsafe_security::vault::blind_index::BlindIndex;
use vouchsafe_security::vault::code::{CodeParts, VoucherCode};
use vouchsafe_wire::json::JsonObject;

/// A body of 256 KiB has no space for more long codes.
const MAX_CODES: usize = 1_000;

/// In characters.
const MAX_REASON: usize = 500;

/// Vouchers to take out of sale: a whole SKU by its `denomination`, or single `codes`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VoidRequest {
    /// Product ID.
    #[schema(value_type = ProductId)]
    product_id: String,
    /// Face value of which all available vouchers are voided.
    #[serde(default)]
    denomination: Option<AmountText>,
    /// Codes to void.
    #[serde(default)]
    #[schema(value_type = Option<Vec<NamedCode>>, min_items = 1, max_items = 1_000)]
    codes: Option<Vec<JsonObject<NamedCode>>>,
    /// Reason, written to the audit trail.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

/// A code to void.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NamedCode {
    /// Voucher code.
    code: String,
    /// PIN of the voucher, if it has one.
    #[serde(default)]
    pin: Option<String>,
}

/// Result of voiding vouchers.
#[derive(Serialize, ToSchema)]
#[schema(as = VoidReport)]
pub struct VoidReport {
    /// Number of vouchers taken out of sale.
    voided: u64,
    /// Named codes that this request did not void.
    refused: Vec<RefusedCode>,
}

/// A code that was not voided.
#[derive(Serialize, ToSchema)]
#[schema(as = RefusedCode)]
struct RefusedCode {
    /// Index in `codes`, from 0.
    index: usize,
    /// Reason.
    reason: CodeVoidOutcome,
}

/// `POST /stock/void`.
pub async fn void(
    service: web::Data<Service>,
    operator: Operator,
    Json(request): Json<VoidRequest>,
) -> Result<HttpResponse, ApiError> {
    let actor = operator.authorize(Role::Operator)?;
    let reason = validate_text("reason", &request.reason, MAX_REASON)?;
    let catalogue = service.catalogue.current();
    let product = request
        .product_id
        .parse()
        .ok()
        .and_then(|id| catalogue.get(&id))
        .ok_or_else(product_not_found)?;
    let target = match (&request.denomination, &request.codes) {
        (Some(denomination), None) => VoidTarget::Sku(Sku {
            product_id: product.product_id.clone(),
            denomination: parse_amount(product, denomination)?,
        }),
        (None, Some(codes)) => VoidTarget::Codes(
            product.product_id.clone(),
            blind_indexes(&service, product, codes)?,
        ),
        _ => {
            return Err(ApiError::invalid_field(
                "denomination",
                "expected either denomination, for a whole SKU, or codes",
            ));
        }
    };
    let outcome = service.store.stock.void(target, reason, actor).await?;
    for sku in &outcome.skus {
        service.engine.inventory.invalidate(sku);
    }
    let refused = outcome
        .codes
        .iter()
        .enumerate()
        .filter(|(_, outcome)| **outcome != CodeVoidOutcome::Voided);
    let refused = refused
        .map(|(index, reason)| RefusedCode {
            index,
            reason: *reason,
        })
        .collect();
    Ok(HttpResponse::Ok().json(VoidReport {
        voided: outcome.voided,
        refused,
    }))
}

fn blind_indexes(
    service: &Service,
    product: &Product,
    codes: &[JsonObject<NamedCode>],
) -> Result<Vec<BlindIndex>, ApiError> {
    if !(1..=MAX_CODES).contains(&codes.len()) {
        return Err(ApiError::invalid_field(
            "codes",
            format!("expected 1 to {MAX_CODES}"),
        ));
    }
    let vault = service.keyring.vault();
    let index = |(position, JsonObject(named)): (usize, &JsonObject<NamedCode>)| {
        let parts = CodeParts {
            code: &named.code,
            pin: named.pin.as_deref(),
            ..CodeParts::default()
        };
        let code = VoucherCode::parse(parts);
        let code =
            code.map_err(|error| ApiError::invalid_field(format!("codes[{position}]"), error.to_string()))?;
        Ok(vault.blind_index(&product.brand, &code))
    };
    codes.iter().enumerate().map(index).collect()
}
