//! From one state to the next: what is told, paid back and still pending.

use time::macros::datetime;

use super::*;
use crate::domain::ids::{ChunkId, OrderId, PartnerId, StockId};
use crate::domain::order::{Fulfilment, PricedLine, PricedOrder};
use crate::domain::product::{Approval, Route, Sku};
use crate::domain::voucher::{Expiry, Shelved};

const AT: OffsetDateTime = datetime!(2030-01-01 12:00 UTC);
const LATER: OffsetDateTime = datetime!(2030-01-01 12:01 UTC);

/// An order of lines of this many vouchers at 5.00 each, that waits.
fn pending(quantities: &[u32]) -> Order {
    let line = |(index, quantity): (usize, &u32)| PricedLine {
        sku: Sku {
            product_id: format!("p{index}").parse().unwrap(),
            denomination: Amount::from_minor(500),
        },
        quantity: *quantity,
        unit_price: Amount::from_minor(500),
        route: Route::Vendor,
        min_validity_days: 0,
        approval: Approval::Rule,
    };
    let total = i64::from(quantities.iter().sum::<u32>()) * 500;
    let priced = PricedOrder {
        lines: quantities.iter().enumerate().map(line).collect(),
        total: Amount::from_minor(total).of("USD".parse().unwrap()),
        fulfilment: Fulfilment::Auto,
        reference: None,
        metadata: None,
    };
    Order::pending(
        OrderId::at(AT),
        PartnerId::generate(),
        &priced,
        PendingReason::Vendor,
        AT,
    )
}

fn vouchers(order: &Order, lines: &[u16]) -> Vec<Allocation> {
    let voucher = |&line: &u16| Allocation {
        voucher_id: VoucherId::generate(),
        line,
        sku: order.lines[usize::from(line)].sku(),
        voucher: Shelved {
            expiry: Expiry::NEVER,
            stock_id: StockId(1),
            chunk_id: ChunkId(1),
        },
    };
    lines.iter().map(voucher).collect()
}

fn progress(order: &Order) -> Progress {
    Progress::of(order.clone(), TransactionId::generate(), LATER)
}

/// The order after vouchers for these lines, all held or all bought.
fn issued(order: &Order, lines: &[u16], source: Source) -> Progressed {
    let mut progress = progress(order);
    progress.process(&Cause::SERVICE, Some(PendingReason::Vendor));
    progress.issue(vouchers(order, lines), source);
    progress.finish(1)
}

fn statuses(order: &Order) -> Vec<&'static str> {
    order.timeline.iter().map(|m| m.status.as_str()).collect()
}

/// What is refunded, by how much less the order waits for, how many events are told.
fn effects(progressed: &Progressed) -> (i64, i64, u32) {
    let refund = progressed.movement.as_ref().map_or(0, |m| m.amount.minor());
    let shift = progressed.pending.map_or(0, |shift| shift.orders.minor());
    (refund, shift, progressed.events.count())
}

#[test]
fn what_comes_at_once_is_processed_and_delivered() {
    let done = issued(&pending(&[2, 1]), &[0, 0, 1], Source::Cache);
    assert_eq!(statuses(&done.order), ["PENDING", "PROCESSING", "DELIVERED"]);
    assert_eq!(effects(&done), (0, -1_500, 5));
    assert!(done.order.closed && done.order.pending_reason.is_none());
    assert_eq!(done.order.fulfilled_from, Some(Source::Cache));
    assert_eq!(done.order.updated_at, LATER);
    assert_eq!((done.events.first_sequence, done.events.vouchers.len()), (2, 3));
}

#[test]
fn a_part_leaves_the_rest_pending_and_each_part_is_told() {
    let first = issued(&pending(&[3]), &[0], Source::Cache);
    assert_eq!(
        statuses(&first.order),
        ["PENDING", "PROCESSING", "PARTIALLY_DELIVERED"]
    );
    assert_eq!(effects(&first), (0, -500, 3));
    assert!(!first.order.closed);
    let second = issued(&first.order, &[0], Source::Vendor);
    assert_eq!(statuses(&second.order).len(), 4, "to itself, with an event");
    assert_eq!(second.events.steps[0], Step::Issued { first: 1, count: 1 });
    assert_eq!(second.order.fulfilled_from, Some(Source::Mixed));
    let last = issued(&second.order, &[0], Source::Vendor);
    assert_eq!(last.order.status, OrderStatus::Delivered);
    assert_eq!(effects(&last), (0, -500, 2));
}

#[test]
fn what_was_bought_alone_came_from_the_vendor() {
    let done = issued(&pending(&[2]), &[0, 0], Source::Vendor);
    assert_eq!(done.order.fulfilled_from, Some(Source::Vendor));
}

#[test]
fn a_rest_that_can_never_be_had_is_paid_back_and_the_order_closed() {
    let first = issued(&pending(&[3, 2]), &[0, 1], Source::Cache);
    let mut rest = progress(&first.order);
    rest.give_up_rest(&Cause::SERVICE);
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
        Step::PartiallyDelivered {
            delivered: 2,
            pending: 0,
            failed: 3
        }
    );
}

#[test]
fn nothing_to_be_had_at_all_is_cancelled_and_refunded() {
    let mut progress = progress(&pending(&[2]));
    progress.process(&Cause::SERVICE, Some(PendingReason::Vendor));
    progress.give_up_rest(&Cause::SERVICE);
    let over = progress.finish(1);
    assert_eq!(
        statuses(&over.order),
        ["PENDING", "PROCESSING", "CANCELLED", "REFUNDED"]
    );
    assert_eq!(effects(&over), (1_000, -1_000, 3));
    assert!(over.order.closed);
}

#[test]
fn a_cancelled_order_holds_nothing_and_gets_all_back_that_it_has_not_got_back_yet() {
    let first = issued(&pending(&[3]), &[0, 0], Source::Cache);
    let mut rest = progress(&first.order);
    rest.give_up_rest(&Cause::SERVICE);
    let closed = rest.finish(4).order;
    let cause = Cause {
        by: Actor::Partner,
        reason: Some("wrong one".to_owned()),
    };
    let mut cancelled = progress(&closed);
    cancelled.cancel(&cause);
    let over = cancelled.finish(6);
    assert_eq!(effects(&over), (1_000, 0, 2));
    assert_eq!(over.returned.len(), 2);
    assert!(over.order.vouchers.is_empty() && over.events.vouchers.is_empty());
    assert_eq!(over.order.refunded, over.order.total.amount);
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
fn what_is_taken_back_in_part_is_a_rest_that_can_never_be_had() {
    let done = issued(&pending(&[2, 1]), &[0, 0, 1], Source::Cache);
    let back = [
        done.order.vouchers[0].voucher_id,
        done.order.vouchers[2].voucher_id,
    ];
    let mut taken = progress(&done.order);
    taken.take_back(&back, &Cause::SERVICE);
    let taken = taken.finish(5);
    assert_eq!(taken.order.status, OrderStatus::PartiallyDelivered);
    assert_eq!((taken.returned.len(), taken.order.vouchers.len()), (2, 1));
    assert_eq!(effects(&taken), (1_000, 0, 2));
    let failed: Vec<_> = taken
        .order
        .lines
        .iter()
        .map(|line| (line.delivered, line.failed))
        .collect();
    assert_eq!(failed, [(1, 1), (0, 1)]);
}

#[test]
fn every_step_is_along_an_allowed_edge() {
    let first = issued(&pending(&[2]), &[0], Source::Cache);
    let mut cancelled = progress(&first.order);
    cancelled.cancel(&Cause::SERVICE);
    let order = cancelled.finish(4).order;
    assert!(
        order
            .timeline
            .windows(2)
            .all(|pair| pair[0].status.leads_to(pair[1].status))
    );
}
