//! Order transitions: events, refunds and pending amounts.

use time::macros::datetime;

use super::*;
use crate::fixtures::priced_lines;
use crate::ids::{ChunkId, OrderId, PartnerId, StockId};
use crate::voucher::{Expiry, StockVoucher};

const AT: OffsetDateTime = datetime!(2030-01-01 12:00 UTC);
const LATER: OffsetDateTime = datetime!(2030-01-01 12:01 UTC);

/// A pending order with these line quantities, at 5.00 per voucher.
fn pending(quantities: &[u32]) -> Order {
    Order::pending(
        OrderId::generate_at(AT),
        PartnerId::generate(),
        &priced_lines(quantities),
        PendingReason::Vendor,
        AT,
    )
}

fn vouchers(order: &Order, lines: &[u16]) -> Vec<Allocation> {
    let stocked = StockVoucher {
        expiry: Expiry::NEVER,
        stock_id: StockId(1),
        chunk_id: ChunkId(1),
    };
    let sku = |line: u16| order.lines[usize::from(line)].sku();
    let voucher = |&line: &u16| Allocation::new(VoucherId::generate(), line, sku(line), stocked);
    lines.iter().map(voucher).collect()
}

fn start_transition(order: &Order) -> OrderTransition {
    OrderTransition::new(order.clone(), TransactionId::generate(), LATER)
}

/// The effects of issuing vouchers for these lines, all from one source.
fn issued(order: &Order, lines: &[u16], source: FulfilmentSource) -> TransitionEffects {
    let mut transition = start_transition(order);
    transition.start_processing(&Cause::SYSTEM, Some(PendingReason::Vendor));
    transition.issue(vouchers(order, lines), source);
    transition.finish(1)
}

fn statuses(order: &Order) -> Vec<&'static str> {
    order.timeline.iter().map(|m| m.status.into_str()).collect()
}

/// Refund, change of the pending amount, number of events.
fn effects(effects: &TransitionEffects) -> (i64, i64, u32) {
    let refund = effects.movement.as_ref().map_or(0, |m| m.amount.minor());
    let shift = effects.pending_delta.map_or(0, |shift| shift.orders.minor());
    (refund, shift, effects.events.count())
}

#[test]
fn order_filled_at_once_is_processed_and_delivered() {
    let result = issued(&pending(&[2, 1]), &[0, 0, 1], FulfilmentSource::Cache);
    assert_eq!(statuses(&result.order), ["PENDING", "PROCESSING", "DELIVERED"]);
    assert_eq!(effects(&result), (0, -1_500, 5));
    assert!(result.order.closed && result.order.pending_reason.is_none());
    assert_eq!(result.order.fulfilled_from, Some(FulfilmentSource::Cache));
    assert_eq!(result.order.updated_at, LATER);
    assert_eq!(
        (result.events.first_sequence, result.events.vouchers.len()),
        (2, 3)
    );
}

#[test]
fn partial_delivery_leaves_the_rest_pending_and_emits_an_event() {
    let first = issued(&pending(&[3]), &[0], FulfilmentSource::Cache);
    assert_eq!(
        statuses(&first.order),
        ["PENDING", "PROCESSING", "PARTIALLY_DELIVERED"]
    );
    assert_eq!(effects(&first), (0, -500, 3));
    assert!(!first.order.closed);
    let second = issued(&first.order, &[0], FulfilmentSource::Vendor);
    assert_eq!(
        statuses(&second.order).len(),
        4,
        "the same status again, with an event"
    );
    assert_eq!(second.events.steps[0], EventStep::Issued { first: 1, count: 1 });
    assert_eq!(second.order.fulfilled_from, Some(FulfilmentSource::Mixed));
    let last = issued(&second.order, &[0], FulfilmentSource::Vendor);
    assert_eq!(last.order.status, OrderStatus::Delivered);
    assert_eq!(effects(&last), (0, -500, 2));
}

#[test]
fn order_of_bought_vouchers_only_has_source_vendor() {
    let result = issued(&pending(&[2]), &[0, 0], FulfilmentSource::Vendor);
    assert_eq!(result.order.fulfilled_from, Some(FulfilmentSource::Vendor));
}

#[test]
fn unavailable_rest_is_refunded_and_closes_the_order() {
    let first = issued(&pending(&[3, 2]), &[0, 1], FulfilmentSource::Cache);
    let mut rest = start_transition(&first.order);
    rest.fail_pending(&Cause::SYSTEM);
    let rest = rest.finish(4);
    assert_eq!(rest.order.status, OrderStatus::PartiallyDelivered);
    assert_eq!(effects(&rest), (1_500, -1_500, 2));
    assert!(rest.order.closed && rest.order.pending_reason.is_none());
    assert_eq!(
        (rest.order.refunded, rest.order.owed()),
        (Amount::from_minor(1_500), Amount::from_minor(1_000))
    );
    assert_eq!(
        rest.events.steps[0],
        EventStep::PartiallyDelivered {
            delivered: 2,
            pending: 0,
            failed: 3
        }
    );
}

#[test]
fn unavailable_order_is_cancelled_and_refunded() {
    let mut transition = start_transition(&pending(&[2]));
    transition.start_processing(&Cause::SYSTEM, Some(PendingReason::Vendor));
    transition.fail_pending(&Cause::SYSTEM);
    let over = transition.finish(1);
    assert_eq!(
        statuses(&over.order),
        ["PENDING", "PROCESSING", "CANCELLED", "REFUNDED"]
    );
    assert_eq!(effects(&over), (1_000, -1_000, 3));
    assert!(over.order.closed);
}

#[test]
fn cancelled_order_has_no_vouchers_and_is_refunded_in_full() {
    let first = issued(&pending(&[3]), &[0, 0], FulfilmentSource::Cache);
    let mut rest = start_transition(&first.order);
    rest.fail_pending(&Cause::SYSTEM);
    let closed = rest.finish(4).order;
    let cause = Cause {
        by: Actor::Partner,
        reason: Some("wrong one".to_owned()),
    };
    let mut cancelled = start_transition(&closed);
    cancelled.cancel(&cause);
    let over = cancelled.finish(6);
    assert_eq!(effects(&over), (1_000, 0, 2));
    assert_eq!(over.returned.len(), 2);
    assert!(over.order.vouchers.is_empty() && over.events.vouchers.is_empty());
    assert_eq!(over.order.refunded, over.order.total.amount);
    assert_eq!(over.order.returned, over.returned);
    assert_eq!(over.order.source_of_returned(), closed.fulfilled_from);
    // What could not be had before is not cancelled.
    for (line, before) in over.order.lines.iter().zip(&closed.lines) {
        assert_eq!((line.failed, line.cancelled), (line.quantity, before.delivered));
    }
    let reasons: Vec<_> = over
        .order
        .timeline
        .iter()
        .rev()
        .take(2)
        .map(|m| m.reason.as_deref())
        .collect();
    assert_eq!(reasons, [None, Some("wrong one")]);
}

#[test]
fn partially_revoked_order_fails_and_refunds_the_revoked_units() {
    let result = issued(&pending(&[2, 1]), &[0, 0, 1], FulfilmentSource::Cache);
    let back = [
        result.order.vouchers[0].voucher_id,
        result.order.vouchers[2].voucher_id,
    ];
    let mut revoked = start_transition(&result.order);
    revoked.revoke_vouchers(&back, &Cause::SYSTEM);
    let revoked = revoked.finish(5);
    assert_eq!(revoked.order.status, OrderStatus::PartiallyDelivered);
    assert_eq!((revoked.returned.len(), revoked.order.vouchers.len()), (2, 1));
    assert_eq!(effects(&revoked), (1_000, 0, 2));
    let failed: Vec<_> = revoked
        .order
        .lines
        .iter()
        .map(|line| (line.delivered, line.failed))
        .collect();
    assert_eq!(failed, [(1, 1), (0, 1)]);
}

#[test]
fn every_transition_is_allowed() {
    let first = issued(&pending(&[2]), &[0], FulfilmentSource::Cache);
    let mut cancelled = start_transition(&first.order);
    cancelled.cancel(&Cause::SYSTEM);
    let order = cancelled.finish(4).order;
    assert!(
        order
            .timeline
            .windows(2)
            .all(|pair| pair[0].status.can_become(pair[1].status))
    );
}
