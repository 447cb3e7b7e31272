//! `GET /stock` and `/stock/expiries`: stock levels by SKU, and available vouchers by month of expiry.

use actix_web::web;
use vouchsafe_domain::stock::level::{SoldBaseline, StockLevel};
use vouchsafe_store::PgStore;
use vouchsafe_wire::operator::stock::expiries::StockExpiry;
use vouchsafe_wire::operator::stock::level::{LevelFilter, SkuCursor, StockLevelBody};

use crate::api::error::ApiResult;
use crate::api::list_request::{ListRequest, list_response, sorted_list_response};
use crate::api::operator::OperatorState;
use crate::api::operator::reports::Reports;

/// `GET /stock`.
pub(in crate::api::operator) async fn list_levels(
    service: web::Data<OperatorState>,
    reports: Reports,
    ListRequest { page, filter }: ListRequest<LevelFilter>,
) -> ApiResult {
    let after: Option<SkuCursor> = page.after()?;
    let after = after.map(|key| (key.product_id, key.denomination));
    let read = reports.read(async |PgStore { stock, .. }| {
        let levels = stock.list_levels(filter.product_id.clone(), after.clone(), page.fetch_limit());
        let levels = levels.await?;
        let baselines = stock.list_sold_baselines(&levels).await?;
        Ok((levels, baselines))
    });
    let (levels, baselines) = read.await?;
    let (catalogue, now) = (service.catalogue.current(), service.clock.now());
    let body = |(level, baseline): (StockLevel, Option<SoldBaseline>)| {
        let product = catalogue.get(&level.sku.product_id)?;
        let sales = baseline.map(|baseline| level.sales_since(baseline, now));
        Some(StockLevelBody::of(level, sales, product.currency))
    };
    let bodies = levels.into_iter().zip(baselines).filter_map(body);
    list_response(&page, bodies, StockLevelBody::cursor)
}

/// `GET /stock/expiries`.
pub(in crate::api::operator) async fn list_expiries(
    reports: Reports,
    ListRequest { page, filter }: ListRequest<LevelFilter>,
) -> ApiResult {
    let counts = reports.read(async |store| store.stock.count_by_expiry(filter.product_id.clone()).await);
    let expiries = StockExpiry::list(counts.await?);
    sorted_list_response(&page, expiries, StockExpiry::cursor)
}
