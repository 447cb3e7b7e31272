//! Is every decision of an operator in the trail, and nothing else?

use std::collections::BTreeMap;

use super::Findings;
use crate::domain::order::{Actor, Milestone, OrderStatus};
use crate::testing::memory::tables::Tables;

pub(super) fn check(tables: &Tables, findings: &mut Findings) {
    let mut decided: BTreeMap<String, usize> = BTreeMap::new();
    for order in tables.orders.values().map(|row| &row.order) {
        let decisions = order.timeline.iter().filter(|milestone| is_decision(milestone));
        decided.insert(order.order_id.to_string(), decisions.count());
    }
    for payout in tables.payouts.values() {
        let decisions = payout.timeline.iter().filter(|step| step.by == Actor::Operator);
        decided.insert(payout.payout_id.to_string(), decisions.count());
    }
    for deed in &tables.trail {
        let left = decided
            .get_mut(&deed.subject)
            .and_then(|left| left.checked_sub(1).map(|less| *left = less));
        findings.check("I24 decision and trail", left.is_some(), || {
            format!("the trail tells of {deed:?}, which was not decided")
        });
    }
    for (subject, left) in decided {
        findings.check("I24 decision and trail", left == 0, || {
            format!("{left} decisions on {subject} are not in the trail")
        });
    }
}

/// What is paid back follows from the decision to cancel.
fn is_decision(milestone: &Milestone) -> bool {
    milestone.by == Actor::Operator && milestone.status != OrderStatus::Refunded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::deed::Deed;
    use crate::domain::payout::{Payout, PayoutEnd};
    use crate::journal::{PayoutChange, Record};
    use crate::testing::build;

    /// A payout that an operator has decided on, and what the trail says of it.
    fn decided() -> (Payout, Deed) {
        let accepted = build::payout(build::usd_of(build::partner(1)), "payout", 700);
        let decided = |record: &Record| match record.payout.clone().unwrap() {
            PayoutChange::Requested(payout) | PayoutChange::Decided(payout) => payout,
        };
        let record = build::payout_decided("paid", &decided(&accepted), PayoutEnd::Paid);
        (decided(&record), record.deed.unwrap())
    }

    #[test]
    fn a_decision_and_its_entry_belong_together() {
        let (payout, deed) = decided();
        for (decisions, entries, found) in [(0, 0, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 2, 1)] {
            let mut tables = Tables::default();
            for _ in 0..decisions {
                tables.payouts.insert(payout.payout_id, payout.clone());
            }
            tables.trail = vec![deed.clone(); entries];
            let mut findings = Findings::default();
            check(&tables, &mut findings);
            assert_eq!(
                findings.0.len(),
                found,
                "{decisions} decided, {entries} told: {:?}",
                findings.0
            );
        }
    }
}
