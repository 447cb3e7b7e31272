//! Invariants of orders: paid once, complete, exactly one idempotency key.

use std::collections::BTreeMap;

use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::ledger::WalletKey;
use vouchsafe_domain::order::{Order, OrderLine, OrderStatus};

use super::Findings;
use crate::memory::tables::Tables;

pub(super) fn check(tables: &Tables, findings: &mut Findings) {
    let paid = net_amount_by_order(tables);
    let keys = keys_by_order(tables);
    for order in tables.orders.values().map(|row| &row.order) {
        let net = paid
            .get(&(order.order_id, wallet_of(order)))
            .copied()
            .unwrap_or(0);
        check_money(order, net, findings);
        check_completeness(order, findings);
        let count = keys.get(&order.order_id).copied().unwrap_or(0);
        findings.check("I8 one key per order", count == 1, || {
            format!("{} has {count} keys", order.order_id)
        });
    }
    for order_id in keys.keys() {
        let known = tables.orders.contains_key(order_id);
        findings.check("I9 key and order", known, || {
            format!("a key refers to {order_id}, which does not exist")
        });
    }
}

fn wallet_of(order: &Order) -> WalletKey {
    WalletKey {
        partner_id: order.partner_id,
        currency: order.total.currency,
    }
}

fn net_amount_by_order(tables: &Tables) -> BTreeMap<(OrderId, WalletKey), i64> {
    let mut net = BTreeMap::new();
    for (wallet, entries) in &tables.ledger {
        for movement in entries.iter().map(|entry| &entry.movement) {
            if let Some(order_id) = movement.order_id {
                *net.entry((order_id, *wallet)).or_default() += movement.amount.minor();
            }
        }
    }
    net
}

fn keys_by_order(tables: &Tables) -> BTreeMap<OrderId, usize> {
    let mut keys = BTreeMap::new();
    let rows = tables
        .keys
        .values()
        .chain(tables.expired_keys.iter().map(|(_, row)| row));
    rows.filter_map(|row| row.order_id)
        .for_each(|order_id| *keys.entry(order_id).or_default() += 1);
    keys
}

fn check_money(order: &Order, net: i64, findings: &mut Findings) {
    let (total, refunded) = (order.total.amount.minor(), order.refunded.minor());
    let paid = net == refunded - total && (0..=total).contains(&refunded);
    findings.check("I4 order and money", paid, || format!("{order:?} moved {net}"));
    let price: i64 = order
        .lines
        .iter()
        .map(|line| line.unit_price.minor() * i64::from(line.quantity))
        .sum();
    findings.check("I6 total", price == total, || format!("{order:?} costs {price}"));
    let value = |units: fn(&OrderLine) -> u32| -> i64 {
        let lines = order.lines.iter();
        lines
            .map(|line| line.unit_price.minor() * i64::from(units(line)))
            .sum()
    };
    let (delivered, pending) = (value(|line| line.delivered), value(OrderLine::pending));
    findings.check(
        "I4 units and money",
        total == delivered + pending + refunded,
        || format!("{order:?}: {delivered} delivered, {pending} pending, {refunded} refunded"),
    );
}

fn check_completeness(order: &Order, findings: &mut Findings) {
    let delivered: u32 = order.lines.iter().map(|line| line.delivered).sum();
    let ordered: u32 = order.lines.iter().map(|line| line.quantity).sum();
    let held = order.vouchers.len() == delivered as usize;
    findings.check("I6 completeness", held, || {
        format!("{order:?} delivered {delivered}")
    });
    let failed: u32 = order.lines.iter().map(|line| line.failed).sum();
    let complete = match order.status {
        OrderStatus::Pending => delivered + failed == 0,
        OrderStatus::Processing => delivered == 0,
        OrderStatus::PartiallyDelivered => (1..ordered).contains(&delivered),
        OrderStatus::Delivered => delivered == ordered,
        OrderStatus::Cancelled => false,
        OrderStatus::Refunded => failed == ordered && order.refunded == order.total.amount,
    };
    findings.check("I6 completeness", complete, || {
        format!("{order:?} delivered {delivered} of {ordered}, {failed} failed")
    });
    let closed = order.closed == (delivered + failed == ordered);
    findings.check("I6 closed", closed, || {
        format!("{order:?} has a wrong closed flag")
    });
    let steps = order.timeline.windows(2);
    let mut transitions = steps.map(|pair| (pair[0].status, pair[1].status));
    let illegal = transitions.find(|(from, to)| !from.can_become(*to));
    findings.check("I19 edges", illegal.is_none(), || {
        format!("{order:?} has an illegal transition {illegal:?}")
    });
}
