//! Overview of the deployment: waiting work, and the state of this node.

use std::sync::Arc;

use vouchsafe_store::{PgStore, Replica, SalesRow, StoreError};
use vouchsafe_wire::operator::live::{Overview, SalesComparison, SalesOverview};
use vouchsafe_wire::operator::stock::level::StockLevelBody;

use crate::live::SHOWN_LOW_STOCK;
use crate::service::Service;

/// Counts the waiting work with the connections of `store`.
pub(crate) async fn read_overview(service: &Service, store: &PgStore) -> Result<Arc<Overview>, StoreError> {
    let work = store.count_open_work().await?;
    let catalogue = service.catalogue.current();
    let low_stock = service.live.low_stock();
    let low_stock_skus = low_stock.count;
    let low_stock = low_stock
        .lowest
        .into_iter()
        .take(SHOWN_LOW_STOCK)
        .filter_map(|(level, sales)| {
            let product = catalogue.get(&level.sku.product_id)?;
            Some(StockLevelBody::of(level, Some(sales), product.currency))
        });
    Ok(Arc::new(Overview {
        node: service.node.identity().name.clone(),
        version: env!("CARGO_PKG_VERSION"),
        environment: service.environment.into(),
        is_ready: service.gate.is_open() && service.engine.can_commit() && service.node.has_renewed_lease(),
        replication: service.replication(),
        replica_lag_s: service
            .replica
            .as_ref()
            .and_then(Replica::lag)
            .map(|lag| lag.as_secs_f64()),
        traffic: service.live.latest(),
        work,
        sales: to_overview(store.traffic.compare_sales().await?),
        circuits_open: service.purchasing.count_open_circuits(),
        exports_behind: service.metrics.audit_export().count_behind(),
        low_stock_skus,
        low_stock: low_stock.collect(),
    }))
}

fn to_overview(rows: Vec<SalesRow>) -> SalesOverview {
    let mut sales = SalesOverview::default();
    for row in rows {
        let (partner_id, product_id, list) = match &*row.kind {
            "partner" => (Some(row.key), None, &mut sales.by_partner),
            "product" => (None, Some(row.key), &mut sales.by_product),
            _ => (None, None, &mut sales.by_currency),
        };
        list.push(SalesComparison {
            partner_id,
            product_id,
            currency: row.currency,
            orders_today: row.orders_today,
            vouchers_today: row.vouchers_today,
            amount_today: row.total_today.of(row.currency),
            orders_yesterday: row.orders_yesterday,
            vouchers_yesterday: row.vouchers_yesterday,
            amount_yesterday: row.total_yesterday.of(row.currency),
        });
    }
    sales
}
