//! Overview of the deployment: waiting work, and the state of this node.

use std::sync::Arc;

use vouchsafe_store::{PgStore, Replica, StoreError};
use vouchsafe_wire::operator::live::Overview;
use vouchsafe_wire::operator::stock::level::StockLevelBody;

use crate::service::Service;

/// Counts the waiting work with the connections of `store`.
pub(crate) async fn read_overview(service: &Service, store: &PgStore) -> Result<Arc<Overview>, StoreError> {
    let work = store.count_open_work().await?;
    let catalogue = service.catalogue.current();
    let low_stock = service.live.low_stock().into_iter().filter_map(|(level, sales)| {
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
        low_stock: low_stock.collect(),
    }))
}
