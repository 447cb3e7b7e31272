//! `POST /stock/void`: vouchers that shall not be sold any more.
//!
//! Either everything of a SKU that is free, or codes that are named. What is sold stays sold: it belongs to somebody.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use vouchsafe_actors::domain::money::AmountText;
use vouchsafe_actors::domain::product::{Product, Sku};

use super::import::read_amount;
use crate::admin::body::{Json, bounded};
use crate::admin::catalogue::no_product;
use crate::admin::operator::{Operator, Role};
use crate::errors::ApiError;
use crate::service::Service;
use crate::store::{VoidTarget, Voided};
use crate::vault::blind_index::BlindIndex;
use crate::vault::code::{CodeParts, VoucherCode};

/// Most codes in one request: a body of 256 KiB holds no more long ones.
const MAX_CODES: usize = 1_000;

/// Longest reason, in characters.
const MAX_REASON: usize = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct VoidRequest {
    product_id: String,
    #[serde(default)]
    denomination: Option<AmountText>,
    #[serde(default)]
    codes: Option<Vec<NamedCode>>,
    reason: String,
}

/// A code that is named. It has no `Debug` text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedCode {
    code: String,
    #[serde(default)]
    pin: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    voided: u64,
    /// What was named and is not out of sale because of this request.
    refused: Vec<Refused>,
}

#[derive(Serialize)]
struct Refused {
    /// Which of `codes`, from 0.
    index: usize,
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

fn indexes(service: &Service, product: &Product, codes: &[NamedCode]) -> Result<Vec<BlindIndex>, ApiError> {
    if !(1..=MAX_CODES).contains(&codes.len()) {
        return Err(ApiError::invalid("codes", format!("expected 1 to {MAX_CODES}")));
    }
    let vault = service.keyring.vault();
    let index = |(position, named): (usize, &NamedCode)| {
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
