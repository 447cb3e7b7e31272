//! `POST /stock/void`: vouchers that shall not be sold any more.
//!
//! Either everything of a SKU that is free, or codes that are named. What is sold stays sold: it belongs to somebody.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vouchsafe_actors::domain::money::AmountText;
use vouchsafe_actors::domain::product::{Product, ProductId, Sku};

use super::import::read_amount;
use crate::admin::body::{Json, bounded};
use crate::admin::catalogue::no_product;
use crate::admin::operator::{Operator, Role};
use crate::errors::ApiError;
use crate::json::Object;
use crate::service::Service;
use crate::store::{VoidTarget, Voided};
use crate::vault::blind_index::BlindIndex;
use crate::vault::code::{CodeParts, VoucherCode};

/// Most codes in one request: a body of 256 KiB holds no more long ones.
const MAX_CODES: usize = 1_000;

/// Longest reason, in characters.
const MAX_REASON: usize = 500;

/// What shall not be sold any more: a whole SKU by its `denomination`, or single `codes`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct VoidRequest {
    /// Of which product.
    #[schema(value_type = ProductId)]
    product_id: String,
    /// Everything of this face value that is free.
    #[serde(default)]
    denomination: Option<AmountText>,
    /// These codes.
    #[serde(default)]
    #[schema(value_type = Option<Vec<NamedCode>>, min_items = 1, max_items = 1_000)]
    codes: Option<Vec<Object<NamedCode>>>,
    /// Why, for the trail.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

/// A code that is named. It has no `Debug` text.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NamedCode {
    /// The code.
    code: String,
    /// Its PIN, where it has one.
    #[serde(default)]
    pin: Option<String>,
}

/// What became of it.
#[derive(Serialize, ToSchema)]
#[schema(as = VoidReport)]
pub(in crate::admin) struct Answer {
    /// How many were taken out of sale.
    voided: u64,
    /// What was named and is not out of sale because of this request.
    refused: Vec<Refused>,
}

/// A code that was not taken out of sale.
#[derive(Serialize, ToSchema)]
#[schema(as = RefusedCode)]
struct Refused {
    /// Which of `codes`, from 0.
    index: usize,
    /// Why.
    reason: Voided,
}

/// `POST /stock/void`.
pub(in crate::admin) async fn void(
    service: web::Data<Service>,
    operator: Operator,
    Json(request): Json<VoidRequest>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    let reason = bounded("reason", &request.reason, MAX_REASON)?;
    let catalogue = service.catalogue.now();
    let product = request
        .product_id
        .parse()
        .ok()
        .and_then(|id| catalogue.get(&id))
        .ok_or_else(no_product)?;
    let target = match (&request.denomination, &request.codes) {
        (Some(denomination), None) => VoidTarget::Sku(Sku {
            product_id: product.product_id.clone(),
            denomination: read_amount(product, denomination)?,
        }),
        (None, Some(codes)) => {
            VoidTarget::Codes(product.product_id.clone(), indexes(&service, product, codes)?)
        }
        _ => {
            return Err(ApiError::invalid(
                "denomination",
                "expected either denomination, for a whole SKU, or codes",
            ));
        }
    };
    let outcome = service.store.void_stock(target, reason, by).await?;
    for sku in &outcome.skus {
        service.engine.inventory.doubt(sku);
    }
    let refused = outcome
        .codes
        .iter()
        .enumerate()
        .filter(|(_, fate)| **fate != Voided::Voided);
    let refused = refused
        .map(|(index, reason)| Refused {
            index,
            reason: *reason,
        })
        .collect();
    Ok(HttpResponse::Ok().json(Answer {
        voided: outcome.voided,
        refused,
    }))
}

fn indexes(
    service: &Service,
    product: &Product,
    codes: &[Object<NamedCode>],
) -> Result<Vec<BlindIndex>, ApiError> {
    if !(1..=MAX_CODES).contains(&codes.len()) {
        return Err(ApiError::invalid("codes", format!("expected 1 to {MAX_CODES}")));
    }
    let vault = service.keyring.vault();
    let index = |(position, Object(named)): (usize, &Object<NamedCode>)| {
        let parts = CodeParts {
            code: &named.code,
            pin: named.pin.as_deref(),
            ..CodeParts::default()
        };
        let code = VoucherCode::parse(parts);
        let code =
            code.map_err(|error| ApiError::invalid(format!("codes[{position}]"), error.to_string()))?;
        Ok(vault.blind_index(&product.brand, &code))
    };
    codes.iter().enumerate().map(index).collect()
}
