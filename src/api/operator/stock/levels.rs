//! `GET /stock`: stock levels by SKU.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_domain::stock::level::StockLevel;
use vouchsafe_wire::operator::stock::level::{FILTERS, LevelBody, SkuCursor};
use vouchsafe_wire::page::PageRequest;

use crate::api::error::ApiError;
use crate::api::middleware::operator::Operator;
use crate::service::Service;

/// `GET /stock`; filter: `product_id`.
pub(in crate::api::operator) async fn list_levels(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &FILTERS)?;
    let after = page.after::<SkuCursor>()?;
    let product_id = page.filter("product_id").map(ToOwned::to_owned);
    let levels = service
        .store
        .stock
        .list_levels(
            product_id,
            after.map(|key| (key.product_id, key.denomination)),
            page.fetch_limit(),
        )
        .await?;
    let catalogue = service.catalogue.current();
    let body = |level: StockLevel| {
        let product = catalogue.get(&level.sku.product_id)?;
        Some(LevelBody::of(level, product.currency))
    };
    let bodies = levels.into_iter().filter_map(body).collect();
    Ok(HttpResponse::Ok().json(page.body(bodies, LevelBody::cursor)))
}
