//! What did an operator decide? The entry of the trail that is written in the commit of the decision itself.
//!
//! Rule: an entry says where a thing stood before and after, in amounts and words. It has no field that could hold a code
//! or where a payout goes.

use serde::Serialize;

use super::ledger::BookedBy;
use super::money::{Amount, Currency};
use super::order::{Order, OrderStatus};
use super::payout::{Payout, PayoutDecision, PayoutEnd, PayoutStatus};

/// What operators decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// An order that waited for approval goes on.
    ApproveOrder,
    /// An order that waited for approval ends.
    RejectOrder,
    /// An order, or what is left of it, is taken back.
    CancelOrder,
    /// A payout was paid.
    PayPayout,
    /// A payout is not tried.
    RejectPayout,
    /// A payout was tried and did not succeed.
    FailPayout,
}

impl Action {
    /// The word in the trail.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApproveOrder => "order.approve",
            Self::RejectOrder => "order.reject",
            Self::CancelOrder => "order.cancel",
            Self::PayPayout => "payout.pay",
            Self::RejectPayout => "payout.reject",
            Self::FailPayout => "payout.fail",
        }
    }
}

/// Where a thing stands, as the trail tells it. Amounts are minor units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Standing {
    Order {
        status: OrderStatus,
        /// Whether nothing more will be delivered.
        closed: bool,
        /// What was paid back.
        refunded_minor: Amount,
        currency: Currency,
    },
    Payout {
        status: PayoutStatus,
        amount_minor: Amount,
        currency: Currency,
    },
}

impl From<&Order> for Standing {
    fn from(order: &Order) -> Self {
        Self::Order {
            status: order.status,
            closed: order.closed,
            refunded_minor: order.refunded,
            currency: order.total.currency,
        }
    }
}

impl From<&Payout> for Standing {
    fn from(payout: &Payout) -> Self {
        Self::Payout {
            status: payout.status,
            amount_minor: payout.money.amount,
            currency: payout.money.currency,
        }
    }
}

/// A decision that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    pub by: BookedBy,
    pub action: Action,
    /// On what: an id.
    pub subject: String,
    pub before: Standing,
    /// Where it stands since.
    pub after: Standing,
    /// Why, where that was said.
    pub reason: Option<String>,
    /// What a payment is called where it was made, where that was said.
    pub reference: Option<String>,
}

impl Deed {
    /// A decision on an order.
    #[must_use]
    pub fn on_order(by: &BookedBy, action: Action, reason: &str, before: &Order, after: &Order) -> Self {
        Self {
            by: by.clone(),
            action,
            subject: after.order_id.to_string(),
            before: before.into(),
            after: after.into(),
            reason: Some(reason.to_owned()),
            reference: None,
        }
    }

    /// A decision on a payout.
    #[must_use]
    pub fn on_payout(by: &BookedBy, decision: &PayoutDecision, before: &Payout, after: &Payout) -> Self {
        Self {
            by: by.clone(),
            action: match decision.end {
                PayoutEnd::Paid => Action::PayPayout,
                PayoutEnd::Rejected => Action::RejectPayout,
                PayoutEnd::Failed => Action::FailPayout,
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
    use crate::domain::order::PendingReason;
    use crate::testing::build;

    #[test]
    fn an_entry_says_where_a_thing_stood_and_nothing_more() {
        let sku = build::sku("gift", 1_000);
        let priced = build::priced(&[(&sku, 2)]);
        let (order_id, partner_id) = (build::order_id("k"), build::partner(1));
        let order = Order::pending(order_id, partner_id, &priced, PendingReason::Approval, build::NOW);
        let deed = Deed::on_order(&build::somebody(), Action::RejectOrder, "no", &order, &order);
        assert_eq!(
            serde_json::to_string(&deed.before).unwrap(),
            r#"{"status":"PENDING","closed":false,"refunded_minor":0,"currency":"USD"}"#
        );
        let record = build::payout(build::usd_of(partner_id), "payout", 700);
        let Some(crate::journal::PayoutChange::Requested(payout)) = record.payout else {
            panic!("a payout is requested");
        };
        for (end, action) in [
            (PayoutEnd::Paid, "payout.pay"),
            (PayoutEnd::Rejected, "payout.reject"),
            (PayoutEnd::Failed, "payout.fail"),
        ] {
            let decision = PayoutDecision {
                end,
                reason: None,
                reference: None,
            };
            let after = payout.clone().decided(decision.clone(), build::NOW);
            let deed = Deed::on_payout(&build::somebody(), &decision, &payout, &after);
            let status = PayoutStatus::from(end).as_str();
            let expected = format!(r#"{{"status":"{status}","amount_minor":700,"currency":"USD"}}"#);
            assert_eq!(
                (deed.action.as_str(), serde_json::to_string(&deed.after).unwrap()),
                (action, expected)
            );
        }
    }
}
