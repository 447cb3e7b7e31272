//! Cancels an order: vouchers return to stock and the price to the wallet, in one commit (contract §4).
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | read the order and check that it may be cancelled | the order | nothing |
//! | check the room in the wallet, allocate stock ids for returned vouchers | hold | ids used |
//! | commit | the wallet knows its balance, shelves know of new stock | refund, returned vouchers, both statuses, both events |
//!
//! Retrieval and cancellation lock the order's row: the first to commit wins, and the other sees it.

use async_recursion::async_recursion as boxed;
use std::sync::Arc;

use time::{Duration, OffsetDateTime};
use vouchsafe_domain::audit::AuditEntry;
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::audit_log::AuditActor;
use vouchsafe_domain::cap::{CapCheck, CapExceeded};
use vouchsafe_domain::ids::{OrderId, PartnerId, TransactionId, VoucherId};
use vouchsafe_domain::order::{Actor, Order, OrderStatus, StoredOrder};
use vouchsafe_domain::partner::caps::PartnerCaps;
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::transition::{Cause, OrderTransition};
use vouchsafe_domain::voucher::Expiry;

use super::caps;
use super::change::{self, OrderDecision};
use super::idempotent::FlowError;
use crate::engine::Engine;
use crate::supervisor::DecisionDeadline;

/// A partner's command to cancel an order.
#[derive(Debug, Clone)]
pub struct CancelOrder {
    pub partner_id: PartnerId,
    pub order_id: OrderId,
    /// The reason, if given.
    pub reason: Option<String>,
    /// How long after acceptance this partner may cancel.
    pub window: Duration,
    /// The partner's caps; `None` if it has none.
    pub caps: Option<Arc<PartnerCaps>>,
}

/// An operator's command to cancel an order. The partner's time window does not apply; retrieved vouchers
/// stay.
#[derive(Debug, Clone)]
pub struct RevokeOrder {
    pub partner_id: PartnerId,
    pub order_id: OrderId,
    pub reason: String,
    pub operator: AuditActor,
}

/// Why an order was not cancelled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CancelError {
    #[error("order not found")]
    NotFound,
    #[error("a code of the order was retrieved")]
    Retrieved,
    #[error("the order could be cancelled until {0}")]
    TooLate(OffsetDateTime),
    #[error("a voucher of the order has expired")]
    Expired,
    /// Vouchers were bought for the order, and their product is not returnable.
    #[error("vouchers of product {0} were bought for the order and cannot be returned")]
    NotReturnable(ProductId),
    /// The order is refunded, or everything left of it was retrieved.
    #[error("nothing of the order is left to cancel")]
    NothingToCancel,
    #[error("the partner has reached a cap")]
    Cap(CapExceeded),
    #[error(transparent)]
    Flow(#[from] FlowError),
}

/// Cancels an order for its partner; an order that the partner has cancelled does not change. `is_returnable`
/// says whether bought vouchers of a product may be returned.
///
/// # Errors
/// [`CancelError`]. Nothing was written, except possibly with [`FlowError::OutcomeUnknown`].
pub async fn cancel_order(
    engine: &Engine,
    command: CancelOrder,
    is_returnable: impl Fn(&ProductId) -> bool,
) -> Result<Order, CancelError> {
    let cause = Cause {
        by: Actor::Partner,
        reason: command.reason.clone(),
    };
    let decide = async |stored: &StoredOrder, deadline: &DecisionDeadline| {
        let now = engine.clock.now();
        if is_cancelled_by_partner(&stored.order) {
            return Ok(OrderDecision::Unchanged(stored.order.clone()));
        }
        check_cancellable(&stored.order, command.window, now, &is_returnable)?;
        let mut transition = OrderTransition::new(stored.order.clone(), TransactionId::generate(), now);
        transition.cancel(&cause);
        let cap = command
            .caps
            .as_ref()
            .and_then(|caps| caps.cancellation_check(now));
        let checks: Vec<_> = cap.into_iter().collect();
        let used = caps::usage(engine, command.partner_id, &checks, deadline).await?;
        match CapCheck::first_exceeded(&checks, &used) {
            Some(exceeded) => Err(CancelError::Cap(exceeded)),
            None => Ok(OrderDecision::AdvanceWithin(transition, checks)),
        }
    };
    let (partner_id, order_id) = (command.partner_id, command.order_id);
    let order =
        change::change_order::<CancelError>(engine, partner_id, order_id, decide, |_, _| None).await?;
    order.ok_or(CancelError::NotFound)
}

/// Cancels for an operator the vouchers of an order that were not retrieved. An order of which an operator
/// has cancelled them does not change.
///
/// # Errors
/// [`CancelError::NotFound`], [`CancelError::NothingToCancel`] and [`CancelError::Flow`].
#[boxed(?Send)]
pub async fn revoke_order(engine: &Engine, command: RevokeOrder) -> Result<Order, CancelError> {
    let cause = Cause {
        by: Actor::Operator,
        reason: Some(command.reason.clone()),
    };
    let decide = async |stored: &StoredOrder, _: &_| {
        let now = engine.clock.now();
        let returned = returnable_vouchers(&stored.order, now);
        if returned.is_empty() && is_ended_by_operator(&stored.order) {
            return Ok(OrderDecision::Unchanged(stored.order.clone()));
        }
        if stored.order.status == OrderStatus::Refunded || (stored.order.closed && returned.is_empty()) {
            return Err(CancelError::NothingToCancel);
        }
        let mut transition = OrderTransition::new(stored.order.clone(), TransactionId::generate(), now);
        if returned.len() == stored.order.vouchers.len() {
            transition.cancel(&cause);
        } else {
            transition.revoke_vouchers(&returned, &cause);
        }
        Ok(OrderDecision::Advance(transition, Vec::new()))
    };
    let audit_entry = |before: &Order, after: &Order| {
        Some(AuditEntry::on_order(
            &command.operator,
            AuditAction::CancelOrder,
            &command.reason,
            before,
            after,
        ))
    };
    let (partner_id, order_id) = (command.partner_id, command.order_id);
    let order =
        change::change_order::<CancelError>(engine, partner_id, order_id, decide, audit_entry).await?;
    order.ok_or(CancelError::NotFound)
}

fn is_cancelled_by_partner(order: &Order) -> bool {
    let cancelled = |by: Actor, status| by == Actor::Partner && status == OrderStatus::Cancelled;
    order.status == OrderStatus::Refunded
        && order
            .timeline
            .iter()
            .any(|milestone| cancelled(milestone.by, milestone.status))
}

fn is_ended_by_operator(order: &Order) -> bool {
    let last = order.timeline.last();
    order.closed && last.is_some_and(|milestone| milestone.by == Actor::Operator)
}

fn check_cancellable(
    order: &Order,
    window: Duration,
    now: OffsetDateTime,
    is_returnable: &impl Fn(&ProductId) -> bool,
) -> Result<(), CancelError> {
    if order.status == OrderStatus::Refunded {
        return Err(CancelError::NothingToCancel);
    }
    if order
        .vouchers
        .iter()
        .any(|held| held.first_retrieved_at.is_some())
    {
        return Err(CancelError::Retrieved);
    }
    let until = order.created_at.checked_add(window);
    if let Some(until) = until.filter(|until| now > *until) {
        return Err(CancelError::TooLate(until));
    }
    if returnable_vouchers(order, now).len() < order.vouchers.len() {
        return Err(CancelError::Expired);
    }
    let unreturnable = order
        .lines
        .iter()
        .find(|line| line.bought > 0 && !is_returnable(&line.product_id));
    unreturnable.map_or(Ok(()), |line| {
        Err(CancelError::NotReturnable(line.product_id.clone()))
    })
}

/// The vouchers that were not retrieved and have not expired.
fn returnable_vouchers(order: &Order, now: OffsetDateTime) -> Vec<VoucherId> {
    let today = Expiry::with_remaining_days(now.date(), 0);
    let held = order.vouchers.iter();
    held.filter(|held| held.voucher.expiry >= today && held.first_retrieved_at.is_none())
        .map(|held| held.voucher_id)
        .collect()
}

#[cfg(test)]
mod tests;
