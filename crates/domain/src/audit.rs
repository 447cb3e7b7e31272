//! Audit entries of operator decisions, written in the same commit as the decision.
//!
//! An entry holds states and amounts before and after. No type here has a field that could hold a code or a
//! payout destination.

use serde::Serialize;

use super::audit_action::AuditAction;
use super::audit_log::AuditActor;
use super::money::{Amount, Currency};
use super::order::{Order, OrderStatus};
use super::payout::{Payout, PayoutDecision, PayoutOutcome, PayoutStatus};

/// The audited state of an order or a payout. Amounts are in minor units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AuditState {
    Order {
        status: OrderStatus,
        /// Whether no more vouchers will be delivered.
        closed: bool,
        refunded_minor: Amount,
        currency: Currency,
    },
    Payout {
        status: PayoutStatus,
        amount_minor: Amount,
        currency: Currency,
    },
}

impl From<&Order> for AuditState {
    fn from(order: &Order) -> Self {
        Self::Order {
            status: order.status,
            closed: order.closed,
            refunded_minor: order.refunded,
            currency: order.total.currency,
        }
    }
}

impl From<&Payout> for AuditState {
    fn from(payout: &Payout) -> Self {
        Self::Payout {
            status: payout.status,
            amount_minor: payout.money.amount,
            currency: payout.money.currency,
        }
    }
}

/// An audit entry for an operator's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub operator: AuditActor,
    pub action: AuditAction,
    /// The id of the order or payout.
    pub subject: String,
    pub before: AuditState,
    pub after: AuditState,
    pub reason: Option<String>,
    /// The payment's reference in the system that made it.
    pub reference: Option<String>,
}

impl AuditEntry {
    #[must_use]
    pub fn on_order(
        by: &AuditActor,
        action: AuditAction,
        reason: &str,
        before: &Order,
        after: &Order,
    ) -> Self {
        Self {
            operator: by.clone(),
            action,
            subject: after.order_id.to_string(),
            before: before.into(),
            after: after.into(),
            reason: Some(reason.to_owned()),
            reference: None,
        }
    }

    #[must_use]
    pub fn on_payout(by: &AuditActor, decision: &PayoutDecision, before: &Payout, after: &Payout) -> Self {
        Self {
            operator: by.clone(),
            action: match decision.outcome {
                PayoutOutcome::Paid => AuditAction::PayPayout,
                PayoutOutcome::Rejected => AuditAction::RejectPayout,
                PayoutOutcome::Failed => AuditAction::FailPayout,
                PayoutOutcome::Cancelled => AuditAction::CancelPayout,
            },
            subject: after.payout_id.to_string(),
            before: before.into(),
            after: after.into(),
            reason: decision.reason.clone(),
            reference: decision.reference.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::order::PendingReason;

    #[test]
    fn audit_entry_contains_state_before_and_after_only() {
        let sku = fixtures::sku("gift", 1_000);
        let priced = fixtures::priced_order(&[(&sku, 2)]);
        let (order_id, partner_id) = (fixtures::order_id("k"), fixtures::partner(1));
        let order = Order::pending(
            order_id,
            partner_id,
            &priced,
            PendingReason::Approval,
            fixtures::NOW,
        );
        let entry = AuditEntry::on_order(
            &fixtures::operator(),
            AuditAction::RejectOrder,
            "no",
            &order,
            &order,
        );
        assert_eq!(
            serde_json::to_string(&entry.before).unwrap(),
            r#"{"status":"PENDING","closed":false,"refunded_minor":0,"currency":"USD"}"#
        );
        let payout = fixtures::payout(fixtures::usd_wallet(partner_id), "payout", 700);
        for (end, action) in [
            (PayoutOutcome::Paid, AuditAction::PayPayout),
            (PayoutOutcome::Rejected, AuditAction::RejectPayout),
            (PayoutOutcome::Failed, AuditAction::FailPayout),
        ] {
            let decision = PayoutDecision {
                outcome: end,
                reason: None,
                reference: None,
            };
            let after = payout.clone().apply_decision(decision.clone(), fixtures::NOW);
            let entry = AuditEntry::on_payout(&fixtures::operator(), &decision, &payout, &after);
            let status = PayoutStatus::from(end).into_str();
            let expected = format!(r#"{{"status":"{status}","amount_minor":700,"currency":"USD"}}"#);
            assert_eq!(
                (entry.action, serde_json::to_string(&entry.after).unwrap()),
                (action, expected)
            );
        }
    }
}
