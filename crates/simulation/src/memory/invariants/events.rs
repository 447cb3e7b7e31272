//! Invariants of events: each step of an order is published once, in order.

use std::collections::BTreeMap;

use vouchsafe_domain::event::EventStep;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::order::OrderStatus;

use super::Findings;
use crate::memory::feed::EventRow;
use crate::memory::tables::Tables;
use crate::rows::Holder;

/// Steps published for one order.
#[derive(Debug, Default, PartialEq, Eq)]
struct PublishedSteps {
    next_sequence: u32,
    created: u32,
    issued: u32,
    /// Statuses entered, in order of publication.
    statuses: Vec<OrderStatus>,
    refunded: i64,
}

pub(super) fn check(tables: &Tables, findings: &mut Findings) {
    let mut published_by_order: BTreeMap<OrderId, PublishedSteps> = BTreeMap::new();
    let issued = issued(tables);
    for (partner_id, rows) in &tables.events {
        check_numbering(*partner_id, rows, findings);
        for row in rows {
            let owner = tables
                .orders
                .get(&row.bundle.order_id)
                .map(|row| row.order.partner_id);
            findings.check("I12 event and order", owner == Some(*partner_id), || {
                format!("{owner:?} has {row:?}")
            });
            apply(
                published_by_order.entry(row.bundle.order_id).or_default(),
                row,
                findings,
            );
        }
    }
    for order in tables.orders.values().map(|row| &row.order) {
        let published = published_by_order.remove(&order.order_id).unwrap_or_default();
        // Acceptance as PENDING is published as `Created`; an order filled from stock also publishes
        // `Delivered`.
        let with_events: Vec<_> = order.timeline.iter().map(|milestone| milestone.status).collect();
        let with_events = with_events
            .strip_prefix(&[OrderStatus::Pending])
            .unwrap_or(&with_events);
        let issued = issued.get(&order.order_id).copied().unwrap_or_default();
        let complete = published.created == 1
            && published.issued == issued
            && published.statuses == with_events
            && published.refunded == order.refunded.minor();
        findings.check("I12 published once", complete, || {
            format!("{order:?}, {issued} vouchers, published as {published:?}")
        });
    }
}

/// Number of vouchers issued to each order, including returned ones.
fn issued(tables: &Tables) -> BTreeMap<OrderId, u32> {
    let mut issued = BTreeMap::new();
    for row in tables.allocations.values().flatten() {
        if let Holder::Order(order_id) = row.holder {
            *issued.entry(order_id).or_default() += 1;
        }
    }
    issued
}

fn check_numbering(partner_id: PartnerId, rows: &[EventRow], findings: &mut Findings) {
    let mut next = 1;
    for row in rows {
        findings.check("I12 numbers", row.number == next, || {
            format!("{partner_id}: {row:?}, expected {next}")
        });
        next = row.number + i64::from(row.bundle.count());
    }
}

fn apply(published: &mut PublishedSteps, row: &EventRow, findings: &mut Findings) {
    let expected = published.next_sequence.max(1);
    findings.check(
        "I14 sequence numbers of the order",
        row.bundle.first_sequence == expected,
        || format!("{row:?}, expected {expected}"),
    );
    published.next_sequence = expected + row.bundle.count();
    for step in &row.bundle.steps {
        match step {
            EventStep::Created => published.created += 1,
            EventStep::Issued { count, .. } => published.issued += count,
            EventStep::Processing => published.statuses.push(OrderStatus::Processing),
            EventStep::PartiallyDelivered { .. } => published.statuses.push(OrderStatus::PartiallyDelivered),
            EventStep::Delivered => published.statuses.push(OrderStatus::Delivered),
            EventStep::Cancelled { .. } => published.statuses.push(OrderStatus::Cancelled),
            EventStep::Refunded { amount, .. } => {
                published.refunded += amount.minor();
                if row.bundle.status == OrderStatus::Refunded {
                    published.statuses.push(OrderStatus::Refunded);
                }
            }
        }
    }
}
