//! Does every voucher have one holder, that took it while its chunk was its own?

use std::collections::BTreeSet;

use super::Findings;
use crate::domain::ids::{OrderId, StockId};
use crate::testing::facts::Holder;
use crate::testing::memory::tables::{AllocationRow, Tables};

pub(super) fn check(tables: &Tables, findings: &mut Findings) {
    for (stock_id, rows) in &tables.allocations {
        findings.check("I5 voucher once", rows.len() == 1, || {
            format!("{stock_id:?} belongs to {rows:?}")
        });
        let known = tables.stock.contains_key(stock_id);
        findings.check("I5 voucher of stock", known, || {
            format!("{stock_id:?} is no stock: {rows:?}")
        });
        rows.iter().for_each(|row| fencing(*stock_id, row, findings));
    }
    one_row_of_a_code(tables, findings);
    both_ways(tables, findings);
    rows_as_sold(tables, findings);
    read_stays(tables, findings);
}

fn fencing(stock_id: StockId, row: &AllocationRow, findings: &mut Findings) {
    let fenced = matches!(row.holder, Holder::Void) || (row.by.is_some() && row.by == row.owner);
    findings.check("I23 fencing", fenced, || {
        format!("{stock_id:?} was committed by another than its owner: {row:?}")
    });
}

/// Of all rows of a code one at most is free, or belongs to somebody.
fn one_row_of_a_code(tables: &Tables, findings: &mut Findings) {
    let mut current = BTreeSet::new();
    for (stock_id, row) in &tables.stock {
        let rows = tables.allocations.get(stock_id);
        let gone = rows.is_some_and(|rows| rows.iter().all(|row| row.returned));
        findings.check("I5 code once", gone || current.insert(row.code), || {
            format!("{stock_id:?} is another row of {:?}", row.code)
        });
    }
}

/// A voucher that an order shows is allocated to it, and the other way round.
fn both_ways(tables: &Tables, findings: &mut Findings) {
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
    let differ: Vec<_> = shown.symmetric_difference(&allocated).collect();
    findings.check("I6 allocations of an order", differ.is_empty(), || {
        format!("{differ:?} stand on one side")
    });
}

/// What an order says of its vouchers is what was in stock; no public id is used twice.
fn rows_as_sold(tables: &Tables, findings: &mut Findings) {
    let mut public = BTreeSet::new();
    for allocation in tables.orders.values().flat_map(|row| &row.order.vouchers) {
        let row = tables.stock.get(&allocation.voucher.stock_id);
        let same =
            row.is_some_and(|row| row.sku == allocation.sku && row.expiry == allocation.voucher.expiry);
        findings.check("I6 voucher as sold", same, || {
            format!("{allocation:?} is {row:?}")
        });
        let fresh = public.insert(allocation.voucher_id);
        findings.check("I5 public id once", fresh, || {
            format!("{} names two", allocation.voucher_id)
        });
    }
}

/// A voucher whose code was read stays with its order: nobody else may ever read that code.
fn read_stays(tables: &Tables, findings: &mut Findings) {
    let orders = tables.orders.values().flat_map(|row| &row.order.vouchers);
    let held: BTreeSet<_> = orders.map(|allocation| allocation.voucher_id).collect();
    let gone: Vec<_> = tables.retrieved.difference(&held).collect();
    findings.check("I17 what was read stays", gone.is_empty(), || {
        format!("{gone:?} were read, and came back")
    });
}
