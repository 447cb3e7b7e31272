//! Cancelling an order: what it holds goes back to stock, what it cost back to the wallet, in one commit (contract §4).
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | read the order, see whether it may be cancelled | the order | nothing |
//! | find room in the wallet, numbers for the vouchers that come back | hold | numbers taken |
//! | the lane commits | the wallet knows its balance, shelves know of new stock | refund, vouchers back, both stages, both events |
//!
//! Retrieval and cancellation lock the order's row: whichever commits first wins, and the other one sees it.

use time::{Duration, OffsetDateTime};

use super::change::{self, Turn};
use super::keyed::Unanswered;
use crate::domain::deed::{Action, Deed};
use crate::domain::ids::{OrderId, PartnerId, TransactionId, VoucherId};
use crate::domain::ledger::BookedBy;
use crate::domain::order::{Actor, Order, OrderStatus, StoredOrder};
use crate::domain::product::ProductId;
use crate::domain::progress::{Cause, Progress};
use crate::domain::voucher::Expiry;
use crate::engine::Engine;

/// A partner's wish to cancel.
#[derive(Debug, Clone)]
pub struct CancelOrder {
    pub partner_id: PartnerId,
    pub order_id: OrderId,
    /// Why, if it was said.
    pub reason: Option<String>,
    /// For how long after acceptance this partner may cancel.
    pub window: Duration,
}

/// An operator's wish to cancel: the window does not bind it, and what was retrieved stays.
#[derive(Debug, Clone)]
pub struct RevokeOrder {
    pub partner_id: PartnerId,
    pub order_id: OrderId,
    pub reason: String,
    pub by: BookedBy,
}

/// Why an order is not cancelled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCancelled {
    /// This partner has no such order.
    #[error("there is no such order")]
    NotFound,
    /// A code of it was retrieved.
    #[error("a code of the order was retrieved")]
    Retrieved,
    /// It was accepted too long ago.
    #[error("the time to cancel it ended at {0}")]
    TooLate(OffsetDateTime),
    /// A voucher of it has expired.
    #[error("a voucher of the order has expired")]
    Expired,
    /// Vouchers were bought for it, and their product takes none back.
    #[error("vouchers of product {0} were bought for the order and cannot be returned")]
    NotReturnable(ProductId),
    /// It is over: refunded already, or all that is left of it was retrieved.
    #[error("there is nothing left of the order to cancel")]
    Over,
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// Cancels an order for its partner; one that the partner has cancelled stays as it is. `returnable` says whether bought
/// vouchers of a product may come back.
///
/// # Errors
/// [`NotCancelled`]; then nothing was written, or it says that this is not known yet.
pub async fn cancel_order(
    engine: &Engine,
    command: CancelOrder,
    returnable: impl Fn(&ProductId) -> bool,
) -> Result<Order, NotCancelled> {
    let cause = Cause {
        by: Actor::Partner,
        reason: command.reason.clone(),
    };
    let decide = async |stored: &StoredOrder, _: &_| {
        let now = engine.clock.now();
        if was_cancelled_by_partner(&stored.order) {
            return Ok(Turn::Rest(stored.order.clone()));
        }
        may_cancel(stored, command.window, now, &returnable)?;
        let mut progress = Progress::of(stored.order.clone(), TransactionId::generate(), now);
        progress.cancel(&cause);
        Ok(Turn::Move(progress, Vec::new()))
    };
    let (partner_id, order_id) = (command.partner_id, command.order_id);
    let order = change::order::<NotCancelled>(engine, partner_id, order_id, decide, |_, _| None).await?;
    order.ok_or(NotCancelled::NotFound)
}

/// Cancels for an operator what of an order was not retrieved. One of which an operator has cancelled that stays as it is.
///
/// # Errors
/// [`NotCancelled::NotFound`], [`NotCancelled::Over`], and [`NotCancelled::Unanswered`].
pub async fn revoke_order(engine: &Engine, command: RevokeOrder) -> Result<Order, NotCancelled> {
    let cause = Cause {
        by: Actor::Operator,
        reason: Some(command.reason.clone()),
    };
    let decide = async |stored: &StoredOrder, _: &_| {
        let now = engine.clock.now();
        let back = may_come_back(stored, now);
        if back.is_empty() && was_ended_by_operator(&stored.order) {
            return Ok(Turn::Rest(stored.order.clone()));
        }
        if stored.order.status == OrderStatus::Refunded || (stored.order.closed && back.is_empty()) {
            return Err(NotCancelled::Over);
        }
        let mut progress = Progress::of(stored.order.clone(), TransactionId::generate(), now);
        if back.len() == stored.order.vouchers.len() {
            progress.cancel(&cause);
        } else {
            progress.take_back(&back, &cause);
        }
        Ok(Turn::Move(progress, Vec::new()))
    };
    let deed = |before: &Order, after: &Order| {
        Some(Deed::on_order(
            &command.by,
            Action::CancelOrder,
            &command.reason,
            before,
            after,
        ))
    };
    let (partner_id, order_id) = (command.partner_id, command.order_id);
    let order = change::order::<NotCancelled>(engine, partner_id, order_id, decide, deed).await?;
    order.ok_or(NotCancelled::NotFound)
}

fn was_cancelled_by_partner(order: &Order) -> bool {
    let cancelled = |by: Actor, status| by == Actor::Partner && status == OrderStatus::Cancelled;
    order.status == OrderStatus::Refunded
        && order
            .timeline
            .iter()
            .any(|milestone| cancelled(milestone.by, milestone.status))
}

fn was_ended_by_operator(order: &Order) -> bool {
    let last = order.timeline.last();
    order.closed && last.is_some_and(|milestone| milestone.by == Actor::Operator)
}

fn may_cancel(
    stored: &StoredOrder,
    window: Duration,
    now: OffsetDateTime,
    returnable: &impl Fn(&ProductId) -> bool,
) -> Result<(), NotCancelled> {
    let order = &stored.order;
    if order.status == OrderStatus::Refunded {
        return Err(NotCancelled::Over);
    }
    if !stored.retrieved.is_empty() {
        return Err(NotCancelled::Retrieved);
    }
    let until = order.created_at.checked_add(window);
    if let Some(until) = until.filter(|until| now > *until) {
        return Err(NotCancelled::TooLate(until));
    }
    if may_come_back(stored, now).len() < order.vouchers.len() {
        return Err(NotCancelled::Expired);
    }
    let kept = order
        .lines
        .iter()
        .find(|line| line.bought > 0 && !returnable(&line.product_id));
    kept.map_or(Ok(()), |line| {
        Err(NotCancelled::NotReturnable(line.product_id.clone()))
    })
}

/// The vouchers that nobody has read and that are still worth something.
fn may_come_back(stored: &StoredOrder, now: OffsetDateTime) -> Vec<VoucherId> {
    let today = Expiry::leaving(now.date(), 0);
    let held = stored.order.vouchers.iter();
    held.filter(|held| held.voucher.expiry >= today && !stored.retrieved.contains(&held.voucher_id))
        .map(|held| held.voucher_id)
        .collect()
}

#[cfg(test)]
mod tests;
