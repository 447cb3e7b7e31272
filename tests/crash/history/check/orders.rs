//! Rules on orders: each acknowledged order exists afterwards, unchanged.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::responses::Keys;
use crate::history::{Call, Event, EventKind, History, Op, OrderFacts};

/// First acknowledgement of an order.
pub(super) struct AcknowledgedOrder<'a> {
    event: &'a Event,
    facts: &'a OrderFacts,
}

pub(super) type AcknowledgedOrders<'a> = BTreeMap<&'a str, AcknowledgedOrder<'a>>;

impl AcknowledgedOrder<'_> {
    /// Whether a later voucher list is consistent: equal for a delivered order, a superset for any other.
    pub(super) fn is_consistent_with(&self, later: &BTreeSet<&str>) -> bool {
        let mut acknowledged = self.facts.vouchers.iter().map(String::as_str);
        let complete = self.facts.order_status != "DELIVERED" || later.len() == self.facts.vouchers.len();
        complete && acknowledged.all(|voucher| later.contains(voucher))
    }
}

pub(super) fn collect_acknowledged<'a>(keys: &Keys<'a>) -> Result<AcknowledgedOrders<'a>, Violation> {
    let mut orders: AcknowledgedOrders<'a> = BTreeMap::new();
    for ops in keys.values() {
        let first = ops.iter().filter_map(|op| op.ok()).min_by_key(|event| event.t_ns);
        let Some(event) = first else { continue };
        let (Some(order_id), Some(facts)) = (&event.order_id, &event.order) else {
            continue;
        };
        if let Some(earlier) = orders.insert(order_id, AcknowledgedOrder { event, facts }) {
            return Err(Violation::OrderUnderTwoKeys {
                order_id: order_id.clone(),
                first: earlier.event.op_id,
                second: event.op_id,
            });
        }
    }
    Ok(orders)
}

/// Returns the number of reads that returned their order unchanged.
pub(super) fn check_read_backs(
    history: &History,
    orders: &AcknowledgedOrders<'_>,
) -> Result<usize, Violation> {
    let mut read_orders: BTreeSet<&str> = BTreeSet::new();
    let mut reads = 0;
    for op in history.ops().filter(|op| op.invoke.f == Call::GetOrder) {
        let Some((order_id, order)) = op
            .invoke
            .order_id
            .as_deref()
            .and_then(|id| orders.get_key_value(id))
        else {
            continue;
        };
        // Other partners must not see the order, and reads before the acknowledgement prove nothing.
        if op.invoke.partner != order.event.partner || op.invoke.t_ns < order.event.t_ns {
            continue;
        }
        if check_read_back(order, op)? {
            read_orders.insert(order_id);
            reads += 1;
        }
    }
    match orders
        .iter()
        .find(|(order_id, _)| !read_orders.contains(*order_id))
    {
        None => Ok(reads),
        Some((order_id, order)) => Err(Violation::NotReadBack {
            order_id: (*order_id).to_owned(),
            acknowledged: order.event.op_id,
        }),
    }
}

/// Whether this read returned the order. A postponed or unanswered read proves nothing.
fn check_read_back(order: &AcknowledgedOrder<'_>, op: &Op) -> Result<bool, Violation> {
    let order_id = || order.event.order_id.clone().unwrap_or_default();
    let Some(event) = op.definite() else {
        return Ok(false);
    };
    if event.kind == EventKind::Fail && event.status == Some(404) {
        let (acknowledged, read) = (order.event.op_id, event.op_id);
        return Err(Violation::OrderLost {
            order_id: order_id(),
            acknowledged,
            read,
        });
    }
    let Some(facts) = &event.order else {
        return Ok(false);
    };
    let vouchers = facts.vouchers.iter().map(String::as_str).collect();
    let comparisons = [
        ("order_id", event.order_id == order.event.order_id),
        ("total_amount", facts.total_amount == order.facts.total_amount),
        ("currency", facts.currency == order.facts.currency),
        ("vouchers", order.is_consistent_with(&vouchers)),
    ];
    match comparisons.into_iter().find(|(_, comparisons)| !comparisons) {
        None => Ok(true),
        Some((field, _)) => Err(Violation::OrderChanged {
            order_id: order_id(),
            field,
            acknowledged: order.event.op_id,
            read: event.op_id,
        }),
    }
}
