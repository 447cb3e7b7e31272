//! Demands of nodes for stock that other nodes own; the oldest demand of a SKU is served first.

use std::sync::Arc;

use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{DEMAND_VALIDITY, StockDemand, StockRequest, TAKEOVER_DELAY};

use super::tables::{DbTime, DemandRow, Owner, Tables};

fn is_valid(row: &DemandRow, now: DbTime) -> bool {
    now.since(row.renewed_at) <= DEMAND_VALIDITY
}

/// Renews a node's demand. Returns whether it may take over what it waits for.
pub(super) fn renew(tables: &mut Tables, by: &Owner, request: &StockRequest, now: DbTime) -> bool {
    let row = DemandRow {
        quantity: request.demanded,
        demanded_at: now,
        renewed_at: now,
    };
    let key = (request.sku.clone(), Arc::clone(&by.node));
    let since = tables.stock_demands.get(&key).filter(|row| is_valid(row, now));
    let demanded_at = since.map_or(now, |row| row.demanded_at);
    tables.stock_demands.insert(key, DemandRow { demanded_at, ..row });
    now.since(demanded_at) >= TAKEOVER_DELAY && !is_other_node_first(tables, by, &request.sku, now)
}

/// Ends a node's demand.
pub(super) fn end(tables: &mut Tables, by: &Owner, sku: &Sku) {
    tables.stock_demands.remove(&(sku.clone(), Arc::clone(&by.node)));
}

/// Whether another node's demand for the SKU is older than this node's, which may have none.
pub(super) fn is_other_node_first(tables: &Tables, node: &Owner, sku: &Sku, now: DbTime) -> bool {
    let of_sku = tables
        .stock_demands
        .iter()
        .filter(|((demanded, _), row)| demanded == sku && is_valid(row, now));
    let first =
        of_sku.min_by(|((_, a), left), ((_, b), right)| (left.demanded_at, a).cmp(&(right.demanded_at, b)));
    first.is_some_and(|((_, first), _)| *first != node.node)
}

/// The demands of other nodes for SKUs of which this node owns stock, except those behind its own demand.
pub(super) fn list(tables: &Tables, owner: &Owner, now: DbTime) -> Vec<StockDemand> {
    let of_others = tables.stock_demands.iter().filter(|((sku, node), row)| {
        *node != owner.node
            && is_valid(row, now)
            && is_other_node_first(tables, owner, sku, now)
            && tables
                .chunks
                .values()
                .any(|chunk| chunk.sku == *sku && !chunk.emptied && chunk.owner.as_ref() == Some(owner))
    });
    let demand = |((sku, _), row): (&(Sku, Arc<str>), &DemandRow)| StockDemand {
        sku: sku.clone(),
        quantity: row.quantity,
    };
    of_others.map(demand).collect()
}
