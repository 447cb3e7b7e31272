//! Invariants of stock: each voucher has one holder, allocated by the owner of its chunk.

use std::collections::BTreeSet;

use vouchsafe_domain::ids::{OrderId, StockId};

use super::Findings;
use crate::memory::tables::{AllocationRow, Tables};
use crate::rows::Holder;

pub(super) fn check(tables: &Tables, findings: &mut Findings) {
    for (stock_id, rows) in &tables.allocations {
        findings.check("I5 voucher once", rows.len() == 1, || {
            format!("{stock_id:?} has holders {rows:?}")
        });
        let known = tables.stock.contains_key(stock_id);
        findings.check("I5 voucher of stock", known, || {
            format!("{stock_id:?} is not in stock: {rows:?}")
        });
        rows.iter()
            .for_each(|row| check_fencing(*stock_id, row, findings));
    }
    check_code_is_unique(tables, findings);
    check_allocations_match_orders(tables, findings);
    check_vouchers_match_stock(tables, findings);
    check_retrieved_vouchers_stay(tables, findings);
}

fn check_fencing(stock_id: StockId, row: &AllocationRow, findings: &mut Findings) {
    let fenced = matches!(row.holder, Holder::Void)
        || (row.committed_by.is_some() && row.committed_by == row.chunk_owner);
    findings.check("I23 fencing", fenced, || {
        format!("{stock_id:?} was committed by a node other than its owner: {row:?}")
    });
}

/// At most one stock row of a code is free or allocated.
fn check_code_is_unique(tables: &Tables, findings: &mut Findings) {
    let mut current = BTreeSet::new();
    for (stock_id, row) in &tables.stock {
        let rows = tables.allocations.get(stock_id);
        let missing = rows.is_some_and(|rows| rows.iter().all(|row| row.returned));
        findings.check("I5 code once", missing || current.insert(row.code), || {
            format!("{stock_id:?} is another row of {:?}", row.code)
        });
    }
}

/// Vouchers of orders and allocations correspond one to one.
fn check_allocations_match_orders(tables: &Tables, findings: &mut Findings) {
    let shown: BTreeSet<(StockId, OrderId)> = tables
        .orders
        .values()
        .map(|row| &row.order)
        .flat_map(|order| {
            order
                .vouchers
                .iter()
                .map(|a| (a.voucher.stock_id, order.order_id))
        })
        .collect();
    let rows = tables
        .allocations
        .iter()
        .flat_map(|(id, rows)| rows.iter().map(move |row| (*id, row)))
        .filter(|(_, row)| !row.returned)
        .map(|(id, row)| (id, row.holder));
    let allocated: BTreeSet<(StockId, OrderId)> = rows
        .filter_map(|(stock_id, holder)| match holder {
            Holder::Order(order_id) => Some((stock_id, order_id)),
            Holder::Void => None,
        })
        .collect();
    let difference: Vec<_> = shown.symmetric_difference(&allocated).collect();
    findings.check("I6 allocations of an order", difference.is_empty(), || {
        format!("only in orders or only in allocations: {difference:?}")
    });
}

/// SKU and expiry of sold vouchers match their stock rows; public ids are unique.
fn check_vouchers_match_stock(tables: &Tables, findings: &mut Findings) {
    let mut public = BTreeSet::new();
    for allocation in tables.orders.values().flat_map(|row| &row.order.vouchers) {
        let row = tables.stock.get(&allocation.voucher.stock_id);
        let same =
            row.is_some_and(|row| row.sku == allocation.sku && row.expiry == allocation.voucher.expiry);
        findings.check("I6 voucher as sold", same, || {
            format!("{allocation:?} differs from {row:?}")
        });
        let fresh = public.insert(allocation.voucher_id);
        findings.check("I5 public id once", fresh, || {
            format!("{} is used twice", allocation.voucher_id)
        });
    }
}

/// A voucher whose code was retrieved stays with its order.
fn check_retrieved_vouchers_stay(tables: &Tables, findings: &mut Findings) {
    let orders = tables.orders.values().flat_map(|row| &row.order.vouchers);
    let held: BTreeSet<_> = orders.map(|allocation| allocation.voucher_id).collect();
    let missing: Vec<_> = tables.retrieved.difference(&held).collect();
    findings.check("I17 retrieved vouchers stay", missing.is_empty(), || {
        format!("{missing:?} were retrieved and returned to stock")
    });
}
