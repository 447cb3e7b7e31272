//! Invariants of the audit log: one entry for each operator's decision and each decision on a payout, and no
//! other entries.

use std::collections::BTreeMap;

use vouchsafe_domain::order::{Actor, Milestone, OrderStatus};
use vouchsafe_domain::payout::PayoutStatus;

use super::Findings;
use crate::memory::tables::Tables;

pub(super) fn check(tables: &Tables, findings: &mut Findings) {
    let mut decided: BTreeMap<String, usize> = BTreeMap::new();
    for order in tables.orders.values().map(|row| &row.order) {
        let decisions = order
            .timeline
            .iter()
            .filter(|milestone| is_operator_decision(milestone));
        decided.insert(order.order_id.to_string(), decisions.count());
    }
    for payout in tables.payouts.values() {
        let decisions = payout.timeline.iter();
        let decisions = decisions.filter(|step| step.status != PayoutStatus::Pending);
        decided.insert(payout.payout_id.to_string(), decisions.count());
    }
    for action in &tables.audit_log {
        let remaining = decided
            .get_mut(&action.subject)
            .and_then(|remaining| remaining.checked_sub(1).map(|less| *remaining = less));
        findings.check("I24 decision and audit entry", remaining.is_some(), || {
            format!("audit entry without a decision: {action:?}")
        });
    }
    for (subject, remaining) in decided {
        findings.check("I24 decision and audit entry", remaining == 0, || {
            format!("{remaining} decisions on {subject} have no audit entry")
        });
    }
}

/// A refund follows from the decision to cancel and is not one itself.
fn is_operator_decision(milestone: &Milestone) -> bool {
    milestone.by == Actor::Operator && milestone.status != OrderStatus::Refunded
}

#[cfg(test)]
mod tests {
    use vouchsafe_actors::ports::record::{PayoutChange, Record};
    use vouchsafe_domain::audit::AuditEntry;
    use vouchsafe_domain::payout::{Payout, PayoutOutcome};

    use super::*;
    use crate::build;

    /// A decided payout and its audit entry.
    fn decided() -> (Payout, AuditEntry) {
        let accepted = build::payout_request(build::usd_wallet(build::partner(1)), "payout", 700);
        let decided = |record: &Record| match record.payout.clone().unwrap() {
            PayoutChange::Requested(payout) | PayoutChange::Decided(payout) => payout,
        };
        let record = build::payout_decision("paid", &decided(&accepted), PayoutOutcome::Paid);
        (decided(&record), record.audit_entry.unwrap())
    }

    #[test]
    fn decision_without_matching_audit_entry_is_found() {
        let (payout, action) = decided();
        for (decisions, entries, found) in [(0, 0, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 2, 1)] {
            let mut tables = Tables::default();
            for _ in 0..decisions {
                tables.payouts.insert(payout.payout_id, payout.clone());
            }
            tables.audit_log = vec![action.clone(); entries];
            let mut findings = Findings::default();
            check(&tables, &mut findings);
            assert_eq!(
                findings.0.len(),
                found,
                "{decisions} decisions, {entries} entries: {:?}",
                findings.0
            );
        }
    }
}
