//! `GET /stock` and `/stock/expiries`: stock levels by SKU, and available vouchers by month of expiry.

use actix_web::web;
use vouchsafe_domain::product::Product;
use vouchsafe_domain::stock::level::{RecentSales, Shortage, StockLevel};
use vouchsafe_store::PgStore;
use vouchsafe_wire::operator::stock::expiries::StockExpiry;
use vouchsafe_wire::operator::stock::level::{LevelFilter, SkuCursor, SkuFilter, StockLevelBody};

use crate::api::error::ApiResult;
use crate::api::list_request::{ListRequest, list_response, sorted_list_response};
use crate::api::operator::OperatorState;
use crate::api::operator::reports::Reports;
use crate::live::is_low;

/// `GET /stock`.
pub(in crate::api::operator) async fn list_levels(
    service: web::Data<OperatorState>,
    reports: Reports,
    ListRequest { page, filter }: ListRequest<LevelFilter>,
) -> ApiResult {
    let after: Option<SkuCursor> = page.after()?;
    let mut after = after.map(|key| (key.product_id, key.denomination));
    let (catalogue, now) = (service.catalogue.current(), service.clock.now());
    let mut bodies = Vec::new();
    // A page of the few SKUs that are short may need several of all SKUs.
    loop {
        let read = reports.read(async |PgStore { stock, .. }| {
            let levels = stock.list_levels(filter.product_id.clone(), after.clone(), page.fetch_limit());
            let levels = levels.await?;
            let baselines = stock.list_sold_baselines(&levels).await?;
            Ok((levels, baselines))
        });
        let (levels, baselines) = read.await?;
        let is_last = levels.len() < page.fetch_limit();
        let last = levels.last().map(|level| &level.sku);
        after = last.map(|sku| (sku.product_id.to_string(), sku.denomination.minor()));
        bodies.extend(levels.into_iter().zip(baselines).filter_map(|(level, baseline)| {
            let product = catalogue.get(&level.sku.product_id)?;
            let sales = baseline.map(|baseline| level.sales_since(baseline, now));
            let is_listed = filter
                .shortage
                .is_none_or(|shortage| has_shortage(shortage, &level, sales.as_ref(), product));
            is_listed.then(|| StockLevelBody::of(level, sales, product.currency))
        }));
        if is_last || filter.shortage.is_none() || bodies.len() >= page.fetch_limit() {
            break;
        }
    }
    bodies.truncate(page.fetch_limit());
    list_response(&page, bodies, StockLevelBody::cursor)
}

fn has_shortage(
    shortage: Shortage,
    level: &StockLevel,
    sales: Option<&RecentSales>,
    product: &Product,
) -> bool {
    match shortage {
        Shortage::Empty => level.free == 0,
        Shortage::Low => is_low(level, sales, product),
    }
}

/// `GET /stock/expiries`.
pub(in crate::api::operator) async fn list_expiries(
    reports: Reports,
    ListRequest { page, filter }: ListRequest<SkuFilter>,
) -> ApiResult {
    let counts = reports.read(async |store| store.stock.count_by_expiry(filter.product_id.clone()).await);
    let expiries = StockExpiry::list(counts.await?);
    sorted_list_response(&page, expiries, StockExpiry::cursor)
}
