//! An operator's decision on an order that waits for approval: approve it, or cancel and refund it.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | read the order | the order | nothing |
//! | if approved: hold what is in stock, SKU by SKU | holds | nothing |
//! | commit | holds settled | PROCESSING and delivered vouchers, or the refund |
//!
//! Nothing is allocated before approval. A shortfall is then bought where possible; otherwise the available
//! vouchers are delivered and the rest is refunded.

use async_recursion::async_recursion as boxed;
use vouchsafe_domain::audit::AuditEntry;
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::audit_log::AuditActor;
use vouchsafe_domain::ids::{OrderId, PartnerId, TransactionId};
use vouchsafe_domain::order::{Actor, FulfilmentSource, Order, OrderStatus, PendingReason, StoredOrder};
use vouchsafe_domain::transition::{Cause, OrderTransition};

use super::change::{self, OrderDecision};
use super::fulfil_order::fail_unpurchasable;
use super::hold_for_order::hold_for_order;
use super::idempotent::FlowError;
use crate::engine::Engine;
use crate::supervisor::DecisionDeadline;

/// The command to approve or reject an order.
#[derive(Debug, Clone)]
pub struct DecideOrder {
    pub partner_id: PartnerId,
    pub order_id: OrderId,
    /// Whether the order is approved.
    pub approved: bool,
    pub reason: String,
    pub operator: AuditActor,
}

/// Why an order was not decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecideOrderError {
    #[error("order not found")]
    NotFound,
    /// The order does not wait for approval.
    #[error("the order does not wait for approval")]
    NotAwaitingApproval,
    #[error(transparent)]
    Flow(#[from] FlowError),
}

/// Approves or rejects an order.
///
/// # Errors
/// [`DecideOrderError`]. Nothing was written, except possibly with [`FlowError::OutcomeUnknown`].
#[boxed(?Send)]
pub async fn decide_order(engine: &Engine, command: DecideOrder) -> Result<Order, DecideOrderError> {
    let cause = Cause {
        by: Actor::Operator,
        reason: Some(command.reason.clone()),
    };
    let decide = async |stored: &StoredOrder, deadline: &DecisionDeadline| {
        let order = &stored.order;
        if order.status != OrderStatus::Pending || order.pending_reason != Some(PendingReason::Approval) {
            return Err(DecideOrderError::NotAwaitingApproval);
        }
        let mut transition =
            OrderTransition::new(order.clone(), TransactionId::generate(), engine.clock.now());
        if !command.approved {
            transition.cancel(&cause);
            return Ok(OrderDecision::Advance(transition, Vec::new()));
        }
        let picked = hold_for_order(engine, order, |_, line| line.pending(), deadline).await?;
        if picked.has_reserved {
            return Err(FlowError::Unavailable.into());
        }
        transition.start_processing(&cause, picked.pending_reason_after(order));
        transition.issue(picked.vouchers.clone(), FulfilmentSource::Cache);
        fail_unpurchasable(&mut transition);
        Ok(OrderDecision::Advance(transition, picked.holds()))
    };
    let action = if command.approved {
        AuditAction::ApproveOrder
    } else {
        AuditAction::RejectOrder
    };
    let audit_entry = |before: &Order, after: &Order| {
        Some(AuditEntry::on_order(
            &command.operator,
            action,
            &command.reason,
            before,
            after,
        ))
    };
    let (partner_id, order_id) = (command.partner_id, command.order_id);
    let order =
        change::change_order::<DecideOrderError>(engine, partner_id, order_id, decide, audit_entry).await?;
    order.ok_or(DecideOrderError::NotFound)
}
