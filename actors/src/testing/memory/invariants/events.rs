//! Was everything told once, and in order?

use std::collections::BTreeMap;

use super::Findings;
use crate::domain::event::Step;
use crate::domain::ids::{OrderId, PartnerId};
use crate::domain::order::OrderStatus;
use crate::testing::memory::tables::{EventRow, Tables};

/// What was told of one order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Story {
    next_sequence: u32,
    created: u32,
    issued: u32,
    delivered: u32,
}

pub(super) fn check(tables: &Tables, findings: &mut Findings) {
    let mut stories: BTreeMap<OrderId, Story> = BTreeMap::new();
    for (partner_id, rows) in &tables.events {
        without_gap(*partner_id, rows, findings);
        for row in rows {
            let owner = tables
                .orders
                .get(&row.bundle.order_id)
                .map(|order| order.partner_id);
            findings.check("I12 event and order", owner == Some(*partner_id), || {
                format!("{owner:?} has {row:?}")
            });
            hear(stories.entry(row.bundle.order_id).or_default(), row, findings);
        }
    }
    for order in tables.orders.values() {
        let story = stories.remove(&order.order_id).unwrap_or_default();
        let delivered = u32::from(order.status == OrderStatus::Delivered);
        let told = story.created == 1
            && story.issued as usize == order.vouchers.len()
            && story.delivered == delivered;
        findings.check("I12 told once", told, || {
            format!("{order:?} was told as {story:?}")
        });
    }
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
            Step::Delivered => story.delivered += 1,
        }
    }
}
