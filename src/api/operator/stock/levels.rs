//! `GET /stock`: stock levels by SKU.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::stock::level::StockLevel;
use vouchsafe_wire::operator::stock::level::{LevelBody, LevelFilter, SkuCursor};

use crate::api::error::ApiError;
use crate::api::list_request::{ListRequest, list_response};
use crate::api::middleware::operator::Operator;
use crate::service::Service;

/// `GET /stock`.
pub(in crate::api::operator) async fn list_levels(
    service: web::Data<Service>,
    _operator: Operator,
    ListRequest { page, filter }: ListRequest<LevelFilter>,
) -> Result<HttpResponse, ApiError> {
    let after: Option<SkuCursor> = page.after()?;
    let after = after.map(|key| (key.product_id, key.denomination));
    let levels = service
        .operator_store
        .stock
        .list_levels(filter.product_id, after, page.fetch_limit());
    let catalogue = service.catalogue.current();
    let body = |level: StockLevel| {
        let product = catalogue.get(&level.sku.product_id)?;
        Some(LevelBody::of(level, product.currency))
    };
    Ok(list_response(
        &page,
        levels.await?.into_iter().filter_map(body),
        LevelBody::cursor,
    ))
}
