//! Periodic update of the stock metrics, of the SKUs with little stock, and of the numbers of sold vouchers,
//! from which the sales of a week follow.

use std::convert::Infallible;
use std::time::Duration;

use super::every;
use crate::live::{LowStockSkus, is_low};
use crate::metrics::StockTotals;
use crate::service::JobState;
use vouchsafe_store::StoreError;

/// The levels of all SKUs cost an index probe per chunk.
const STOCK_LEVEL_INTERVAL: Duration = Duration::from_secs(60);

/// SKUs per statement.
const STOCK_LEVEL_PAGE: usize = 1_000;

/// Updates the stock metrics. Never returns.
pub(super) async fn measure_stock(service: &JobState) -> Infallible {
    every(STOCK_LEVEL_INTERVAL, "cannot read stock levels", async || {
        service.metrics.stock().set(&total_stock(service).await?);
        Ok(())
    })
    .await
}

async fn total_stock(service: &JobState) -> Result<StockTotals, StoreError> {
    let (mut totals, mut after) = (StockTotals::default(), None);
    let (mut low_stock, now) = (LowStockSkus::default(), service.clock.now());
    let catalogue = service.catalogue.current();
    loop {
        let page = service
            .store
            .stock
            .list_levels(None, after, STOCK_LEVEL_PAGE)
            .await?;
        page.iter().for_each(|level| totals.add(level));
        service.store.stock.record_sold(&page).await?;
        after = page
            .get(STOCK_LEVEL_PAGE - 1)
            .map(|last| (last.sku.product_id.to_string(), last.sku.denomination.minor()));
        let baselines = service.store.stock.list_sold_baselines(&page).await?;
        let levels = page.into_iter().zip(baselines);
        let with_sales = levels.filter_map(|(level, baseline)| {
            let sales = level.sales_since(baseline?, now);
            let product = catalogue.get(&level.sku.product_id)?;
            is_low(&level, Some(&sales), product).then_some((level, sales))
        });
        low_stock.extend(with_sales);
        if after.is_none() {
            let named = low_stock.lowest.iter().filter_map(|(level, _)| {
                let currency = catalogue.get(&level.sku.product_id)?.currency;
                let denomination = level.sku.denomination.of(currency).to_string();
                Some((&level.sku.product_id, denomination, level.free))
            });
            service.metrics.stock().set_low(named);
            service.live.set_low_stock(low_stock);
            return Ok(totals);
        }
    }
}
