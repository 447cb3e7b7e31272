//! `POST /stock/void`: takes vouchers out of sale, all available ones of a SKU or named codes. Sold vouchers
//! stay sold.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::product::Sku;
use vouchsafe_store::VoidTarget;
use vouchsafe_wire::operator::stock::import::parse_amount;
use vouchsafe_wire::operator::stock::void::{VoidReport, VoidRequest, VoidSelection};

use super::ingest;
use crate::api::error::ApiResult;
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
    let outcome = service.store.stock.void(target, reason, actor).await?;
    for sku in &outcome.skus {
        service.engine.inventory.invalidate(sku);
    }
    Ok(HttpResponse::Ok().json(VoidReport::new(outcome.voided, &outcome.codes)))
}
