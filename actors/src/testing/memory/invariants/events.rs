//! Was everything told once, and in order?

use std::collections::BTreeMap;

use super::Findings;
use crate::domain::event::Step;
use crate::domain::ids::{OrderId, PartnerId};
use crate::domain::order::OrderStatus;
use crate::testing::facts::Holder;
use crate::testing::memory::tables::{EventRow, Tables};

/// What was told of one order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Story {
    next_sequence: u32,
    created: u32,
    issued: u32,
    /// The statuses that were entered, in the order in which they were told.
    entered: Vec<OrderStatus>,
    refunded: i64,
}

pub(super) fn check(tables: &Tables, findings: &mut Findings) {
    let mut stories: BTreeMap<OrderId, Story> = BTreeMap::new();
    let issued = issued(tables);
    for (partner_id, rows) in &tables.events {
        without_gap(*partner_id, rows, findings);
        for row in rows {
            let owner = tables
                .orders
                .get(&row.bundle.order_id)
                .map(|row| row.order.partner_id);
            findings.check("I12 event and order", owner == Some(*partner_id), || {
                format!("{owner:?} has {row:?}")
            });
            hear(stories.entry(row.bundle.order_id).or_default(), row, findings);
        }
    }
    for order in tables.orders.values().map(|row| &row.order) {
        let story = stories.remove(&order.order_id).unwrap_or_default();
        // What was accepted as PENDING was told as created; a cache hit was told as delivered, too.
        let told: Vec<_> = order.timeline.iter().map(|milestone| milestone.status).collect();
        let told = told.strip_prefix(&[OrderStatus::Pending]).unwrap_or(&told);
        let issued = issued.get(&order.order_id).copied().unwrap_or_default();
        let whole = story.created == 1
            && story.issued == issued
            && story.entered == told
            && story.refunded == order.refunded.minor();
        findings.check("I12 told once", whole, || {
            format!("{order:?}, {issued} vouchers, was told as {story:?}")
        });
    }
}

/// How many vouchers each order got, whether or not it still has them.
fn issued(tables: &Tables) -> BTreeMap<OrderId, u32> {
    let mut issued = BTreeMap::new();
    for row in tables.allocations.values().flatten() {
        if let Holder::Order(order_id) = row.holder {
            *issued.entry(order_id).or_default() += 1;
        }
    }
    issued
}

fn without_gap(partner_id: PartnerId, rows: &[EventRow], findings: &mut Findings) {
    let mut next = 1;
    for row in rows {
        findings.check("I12 numbers", row.number == next, || {
            format!("{partner_id}: {row:?}, expected {next}")
        });
        next = row.number + i64::from(row.bundle.count());
    }
}

fn hear(story: &mut Story, row: &EventRow, findings: &mut Findings) {
    let expected = story.next_sequence.max(1);
    findings.check(
        "I14 order's numbers",
        row.bundle.first_sequence == expected,
        || format!("{row:?}, expected {expected}"),
    );
    story.next_sequence = expected + row.bundle.count();
    for step in &row.bundle.steps {
        match step {
            Step::Created => story.created += 1,
            Step::Issued { count, .. } => story.issued += count,
            Step::Processing => story.entered.push(OrderStatus::Processing),
            Step::PartiallyDelivered { .. } => story.entered.push(OrderStatus::PartiallyDelivered),
            Step::Delivered => story.entered.push(OrderStatus::Delivered),
            Step::Cancelled { .. } => story.entered.push(OrderStatus::Cancelled),
            Step::Refunded { amount, .. } => {
                story.refunded += amount.minor();
                if row.bundle.status == OrderStatus::Refunded {
                    story.entered.push(OrderStatus::Refunded);
                }
            }
        }
    }
}
