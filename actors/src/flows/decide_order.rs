//! An operator's word on an order that waits for approval: it goes on, or it is cancelled and paid back.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | read the order | the order | nothing |
//! | approved: set aside what is in stock, SKU by SKU | holds | nothing |
//! | the lane commits | holds settled | PROCESSING and what is delivered of it, or the refund |
//!
//! Rule: nothing is allocated before approval. What is short then is bought where it can be; else what is there is
//! delivered, and the rest paid back.

use super::change::{self, Turn};
use super::fulfil_order::give_up_what_nobody_buys;
use super::keyed::Unanswered;
use super::picking::pick;
use crate::domain::deed::{Action, Deed};
use crate::domain::ids::{OrderId, PartnerId, TransactionId};
use crate::domain::ledger::BookedBy;
use crate::domain::order::{Actor, Order, OrderStatus, PendingReason, Source, StoredOrder};
use crate::domain::progress::{Cause, Progress};
use crate::engine::Engine;
use crate::supervisor::Patience;

/// What an operator says of an order.
#[derive(Debug, Clone)]
pub struct DecideOrder {
    pub partner_id: PartnerId,
    pub order_id: OrderId,
    /// Whether it goes on.
    pub approved: bool,
    pub reason: String,
    pub by: BookedBy,
}

/// Why an order was not decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotDecided {
    /// This partner has no such order.
    #[error("there is no such order")]
    NotFound,
    /// It does not wait for approval.
    #[error("the order does not wait for approval")]
    NotWaiting,
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// Lets an order go on, or ends it.
///
/// # Errors
/// [`NotDecided`]; then nothing was written, or it says that this is not known yet.
pub async fn decide_order(engine: &Engine, command: DecideOrder) -> Result<Order, NotDecided> {
    let cause = Cause {
        by: Actor::Operator,
        reason: Some(command.reason.clone()),
    };
    let decide = async |stored: &StoredOrder, patience: &Patience| {
        let order = &stored.order;
        if order.status != OrderStatus::Pending || order.pending_reason != Some(PendingReason::Approval) {
            return Err(NotDecided::NotWaiting);
        }
        let mut progress = Progress::of(order.clone(), TransactionId::generate(), engine.clock.now());
        if !command.approved {
            progress.cancel(&cause);
            return Ok(Turn::Move(progress, Vec::new()));
        }
        let picked = pick(engine, order, |_, line| line.pending(), patience).await?;
        if picked.elsewhere {
            return Err(Unanswered::Unavailable.into());
        }
        progress.process(&cause, picked.leaves(order));
        progress.issue(picked.vouchers.clone(), Source::Cache);
        give_up_what_nobody_buys(&mut progress);
        Ok(Turn::Move(progress, picked.holds()))
    };
    let action = if command.approved {
        Action::ApproveOrder
    } else {
        Action::RejectOrder
    };
    let deed = |before: &Order, after: &Order| {
        Some(Deed::on_order(
            &command.by,
            action,
            &command.reason,
            before,
            after,
        ))
    };
    let (partner_id, order_id) = (command.partner_id, command.order_id);
    let order = change::order::<NotDecided>(engine, partner_id, order_id, decide, deed).await?;
    order.ok_or(NotDecided::NotFound)
}
