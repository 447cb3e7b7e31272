//! `POST /stock/void`: takes vouchers out of sale, all available ones of a SKU or named codes. Sold vouchers
//! stay sold.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::product::Sku;
use vouchsafe_store::VoidTarget;
use vouchsafe_wire::operator::stock::import::parse_amount;
use vouchsafe_wire::operator::stock::void::{VoidReport, VoidRequest, VoidSelection};

use super::ingest;
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::body::Json;
use crate::api::operator::catalogue::product_not_found;

/// `POST /stock/void`.
pub(in crate::api::operator) async fn void(
    service: web::Data<OperatorState>,
    operator: Operator,
    Json(request): Json<VoidRequest>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let reason = String::from(request.reason.clone());
    let catalogue = service.catalogue.current();
    let product = request
        .product_id
        .parse()
        .ok()
        .and_then(|id| catalogue.get(&id))
        .ok_or_else(product_not_found)?;
    let expected_count = request.expected_count;
    let target = match request.selection()? {
        VoidSelection::Denomination(denomination) => VoidTarget::Sku(Sku {
            product_id: product.product_id.clone(),
            denomination: parse_amount(product, &denomination)?,
        }),
        VoidSelection::Codes(codes) => {
            let vault = service.keyring.vault();
            let matches = codes.iter().map(|code| ingest::code_match(&vault, product, code));
            VoidTarget::Codes(product.product_id.clone(), matches.collect())
        }
    };
    if let (Some(expected), VoidTarget::Sku(sku)) = (expected_count, &target) {
        check_count(&service, sku, expected).await?;
    }
    let outcome = service.store.stock.void(target, reason, actor).await?;
    for sku in &outcome.skus {
        service.engine.inventory.invalidate(sku);
    }
    Ok(HttpResponse::Ok().json(VoidReport::new(outcome.voided, &outcome.codes)))
}

/// Refuses to void another number of vouchers than the operator has seen.
async fn check_count(service: &OperatorState, sku: &Sku, expected: u32) -> Result<(), ApiError> {
    let before = (sku.product_id.to_string(), sku.denomination.minor() - 1);
    let levels = service
        .store
        .stock
        .list_levels(Some(sku.product_id.to_string()), Some(before), 1);
    let levels = levels.await?;
    let level = levels.first().filter(|level| level.sku == *sku);
    let count = level.map_or(0, |level| level.free + level.quarantined);
    if count == i64::from(expected) {
        return Ok(());
    }
    let message = format!("{count} vouchers would be voided; give this number to void them");
    Err(ApiError::invalid_field("expected_count", message))
}
