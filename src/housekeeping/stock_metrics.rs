//! Periodic update of the stock metrics and of the numbers of sold vouchers, from which the sales of a week follow.

use std::time::Duration;

use tracing::warn;

use super::ticker;
use crate::metrics::StockTotals;
use crate::service::Service;

/// The levels of all SKUs cost an index probe per chunk.
const STOCK_LEVEL_INTERVAL: Duration = Duration::from_secs(60);

/// SKUs per statement.
const STOCK_LEVEL_PAGE: usize = 1_000;

/// Updates the stock metrics. Never returns.
pub(super) async fn measure_stock(service: &Service) {
    let mut tick = ticker(STOCK_LEVEL_INTERVAL);
    loop {
        tick.tick().await;
        match total_stock(service).await {
            Ok(totals) => service.metrics.stock().set(&totals),
            Err(error) => warn!(error.message = %error, "cannot read stock levels"),
        }
    }
}

async fn total_stock(service: &Service) -> Result<StockTotals, sqlx::Error> {
    let (mut totals, mut after) = (StockTotals::default(), None);
    loop {
        let page = service
            .job_store
            .stock
            .list_levels(None, after, STOCK_LEVEL_PAGE)
            .await?;
        page.iter().for_each(|level| totals.add(level));
        service.job_store.stock.record_sold(&page).await?;
        let Some(last) = page.get(STOCK_LEVEL_PAGE - 1) else {
            return Ok(totals);
        };
        after = Some((last.sku.product_id.to_string(), last.sku.denomination.minor()));
    }
}
