//! Fulfilment of an order that was not fully in stock: deliver what is in stock, then what is bought, and
//! refund the rest (contract §4).
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | start fulfilment | holds on what is in stock | PROCESSING, and the delivered vouchers |
//! | (a purchase succeeded and is stock by now) | | new stock |
//! | deliver reserved stock | holds | vouchers issued; DELIVERED if nothing is missing any more |
//! | end fulfilment | holds, money | the rest refunded, the order closed |

use async_recursion::async_recursion as boxed;
use time::Date;
use vouchsafe_domain::ids::{OrderId, PartnerId, TransactionId, VoucherId};
use vouchsafe_domain::order::{
    Actor, FulfilmentSource, Order, OrderLine, OrderStatus, PendingReason, StoredOrder,
};
use vouchsafe_domain::transition::{Cause, OrderTransition};
use vouchsafe_domain::voucher::{Allocation, Expiry, StockVoucher};

use super::change::{self, OrderDecision};
use super::hold_for_order::hold_for_order;
use super::idempotent::FlowError;
use crate::engine::Engine;
use crate::ports::vendors::ReservedDelivery;
use crate::supervisor::DecisionDeadline;

/// The timeline's reason for a refunded rest.
const UNAVAILABLE_REST: &str = "the rest is not available";

/// The timeline's reason for an order that is refunded because nothing of it can be had.
const UNAVAILABLE_ORDER: &str = "no voucher of the order is available";

/// Starts an order that waits for its vendor: delivers what is in stock. `is_purchasable` says whether the
/// rest is bought now; if it is not, and nothing is in stock, the order keeps waiting. An order that was
/// started does not change. Returns `None` if there is no such order.
///
/// # Errors
/// [`FlowError`]. Nothing was written, except possibly with [`FlowError::OutcomeUnknown`].
#[boxed(?Send)]
pub async fn start_fulfilment(
    engine: &Engine,
    partner_id: PartnerId,
    order_id: OrderId,
    is_purchasable: bool,
) -> Result<Option<Order>, FlowError> {
    let decide = async |stored: &StoredOrder, deadline: &DecisionDeadline| {
        let order = &stored.order;
        if order.status != OrderStatus::Pending || order.pending_reason != Some(PendingReason::Vendor) {
            return Ok(OrderDecision::Unchanged(order.clone()));
        }
        let picked = hold_for_order(engine, order, |_, line| line.pending(), deadline).await?;
        if !is_purchasable && picked.vouchers.is_empty() {
            return Ok(OrderDecision::Unchanged(order.clone()));
        }
        let pending_reason = picked.pending_reason_after(order);
        if pending_reason.is_none() && picked.has_reserved {
            // The missing vouchers may not be bought, but some are reserved: give nothing up.
            return Err(FlowError::Unavailable);
        }
        let mut transition = start_transition(engine, order);
        transition.start_processing(&Cause::SYSTEM, pending_reason);
        transition.issue(picked.vouchers.clone(), FulfilmentSource::Cache);
        fail_unpurchasable(&mut transition);
        Ok(OrderDecision::Advance(transition, picked.holds()))
    };
    change::change_order::<FlowError>(engine, partner_id, order_id, decide, |_, _| None).await
}

/// Delivers reserved stock to an order line, as far as the line still needs it.
///
/// # Errors
/// [`FlowError`], as for [`start_fulfilment`].
#[boxed(?Send)]
pub async fn deliver_reserved(
    engine: &Engine,
    delivery: ReservedDelivery,
) -> Result<Option<Order>, FlowError> {
    let ReservedDelivery {
        reservation_id,
        source,
        partner_id,
        order_id,
        line: number,
    } = delivery;
    let decide = async |stored: &StoredOrder, _: &DecisionDeadline| {
        let order = &stored.order;
        let Some(line) = order.lines.get(usize::from(number)).filter(|_| !order.closed) else {
            return Ok(OrderDecision::Unchanged(order.clone()));
        };
        let reserved = engine.store.claim_reserved(reservation_id).await;
        let reserved = reserved.map_err(|error| change::log_unavailable(&error))?;
        let first = first_valid(&reserved, line, engine.clock.now().date());
        let vouchers: Vec<_> = reserved[first..]
            .iter()
            .take(line.pending() as usize)
            .map(|voucher| Allocation::new(VoucherId::generate(), number, line.sku(), *voucher))
            .collect();
        if vouchers.is_empty() {
            return Ok(OrderDecision::Unchanged(order.clone()));
        }
        Ok(OrderDecision::Advance(
            issue_transition(engine, order, vouchers, source),
            Vec::new(),
        ))
    };
    change::change_order::<FlowError>(engine, partner_id, order_id, decide, |_, _| None).await
}

/// The index of the first of these vouchers, sorted by expiry, that is valid for long enough for an order
/// line.
pub(super) fn first_valid(vouchers: &[StockVoucher], line: &OrderLine, today: Date) -> usize {
    let days = u16::try_from(line.min_validity_days).unwrap_or(u16::MAX);
    let not_before = Expiry::with_remaining_days(today, days);
    vouchers.partition_point(|voucher| voucher.expiry < not_before)
}

/// The order with these reserved vouchers. It needs no hold: no shelf sells reserved stock, and the commit
/// verifies each voucher.
pub(super) fn issue_transition(
    engine: &Engine,
    order: &Order,
    vouchers: Vec<Allocation>,
    source: FulfilmentSource,
) -> OrderTransition {
    let mut transition = start_transition(engine, order);
    transition.start_processing(&Cause::SYSTEM, order.pending_reason);
    transition.issue(vouchers, source);
    transition
}

/// Ends an order with no more purchases: delivers stock that arrived meanwhile and refunds the rest.
///
/// # Errors
/// [`FlowError`], as for [`start_fulfilment`].
#[boxed(?Send)]
pub async fn end_fulfilment(
    engine: &Engine,
    partner_id: PartnerId,
    order_id: OrderId,
) -> Result<Option<Order>, FlowError> {
    let decide = async |stored: &StoredOrder, deadline: &DecisionDeadline| {
        let order = &stored.order;
        if order.closed || order.pending_reason != Some(PendingReason::Vendor) {
            return Ok(OrderDecision::Unchanged(order.clone()));
        }
        let picked = hold_for_order(engine, order, |_, line| line.pending(), deadline).await?;
        if picked.has_reserved && picked.vouchers.is_empty() {
            return Err(FlowError::Unavailable);
        }
        let mut transition = start_transition(engine, order);
        transition.start_processing(&Cause::SYSTEM, order.pending_reason);
        transition.issue(picked.vouchers.clone(), FulfilmentSource::Cache);
        // Reserved stock that other orders leave is delivered before anything is refunded.
        if !transition.order().closed && !picked.has_reserved {
            fail_unavailable(&mut transition);
        }
        Ok(OrderDecision::Advance(transition, picked.holds()))
    };
    change::change_order::<FlowError>(engine, partner_id, order_id, decide, |_, _| None).await
}

/// Refunds a rest that may not be bought, unless the order waits for something else.
pub(super) fn fail_unpurchasable(transition: &mut OrderTransition) {
    if !transition.order().closed && transition.order().pending_reason.is_none() {
        fail_unavailable(transition);
    }
}

/// Refunds what cannot be had.
fn fail_unavailable(transition: &mut OrderTransition) {
    let has_delivered = transition.order().lines.iter().any(|line| line.delivered > 0);
    let reason = if has_delivered {
        UNAVAILABLE_REST
    } else {
        UNAVAILABLE_ORDER
    };
    transition.fail_pending(&Cause {
        by: Actor::System,
        reason: Some(reason.to_owned()),
    });
}

fn start_transition(engine: &Engine, order: &Order) -> OrderTransition {
    OrderTransition::new(order.clone(), TransactionId::generate(), engine.clock.now())
}
