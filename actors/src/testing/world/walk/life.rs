//! The later steps of an order's life, and money on its way out: cancelled, read, approved, taken back; paid or not.
//!
//! What is chosen is chosen by its reference: ids are made by chance, and one seed gives one history.

use std::sync::Arc;

use time::Duration;
use tokio::task::JoinHandle;

use super::dice::name_of_reason;
use super::{Call, PARTNERS, Walk};
use crate::domain::answer::Answer;
use crate::domain::money::{Amount, Money};
use crate::domain::order::{Order, OrderStatus, PendingReason, Source};
use crate::domain::payout::{Destination, Payout, PayoutDecision, PayoutEnd};
use crate::flows::{
    CancelOrder, DecideOrder, DecidePayout, Delivery, NotCancelled, NotDecided, PayoutNotDecided,
    PayoutWording, Placed, RequestPayout, RevokeOrder, Stuck, cancel_order, decide_order, decide_payout,
    deliver, request_payout, revoke_order,
};
use crate::testing::build;

/// How long a partner of a walk may cancel: its clock jumps by thirty hours.
const WINDOW: Duration = Duration::hours(24);

/// How answers about payouts are worded.
struct PlainPayout;

impl PayoutWording for PlainPayout {
    fn accepted(&self, payout: &Payout) -> Answer {
        build::answer(&payout.payout_id.to_string())
    }

    fn short(&self, needed: Money, available: Amount) -> Answer {
        build::answer(&format!("{needed:?} of {available:?}"))
    }
}

impl Walk {
    /// A partner cancels one of its orders, several times at once.
    pub(super) fn cancel(&mut self) {
        let Some(order) = self.any_order(|_| true) else {
            return;
        };
        for _ in 0..1 + self.dice.roll(3) {
            let command = CancelOrder {
                partner_id: order.partner_id,
                order_id: order.order_id,
                reason: None,
                window: WINDOW,
            };
            let engine = Arc::clone(&self.any_node().engine);
            let task = self.any_node().spawn(async move {
                let cancelled = cancel_order(&engine, command, |_| true).await;
                cancelled.map_or_else(|error| not_cancelled(&error), |_| "cancelled")
            });
            self.follow("cancel", &order, task);
        }
    }

    /// An operator takes back what of an order was not read.
    pub(super) fn revoke(&mut self) {
        let Some(order) = self.any_order(|_| true) else {
            return;
        };
        let command = RevokeOrder {
            partner_id: order.partner_id,
            order_id: order.order_id,
            reason: "walk".to_owned(),
            by: build::somebody(),
        };
        let engine = Arc::clone(&self.any_node().engine);
        let task = self.any_node().spawn(async move {
            let revoked = revoke_order(&engine, command).await;
            revoked.map_or_else(|error| not_cancelled(&error), |_| "revoked")
        });
        self.follow("revoke", &order, task);
    }

    /// Operators approve and reject an order that waits for it, at once.
    pub(super) fn decide(&mut self) {
        let waits = |order: &Order| order.pending_reason == Some(PendingReason::Approval);
        let Some(order) = self.any_order(waits) else {
            return;
        };
        for approved in [self.dice.percent(50), true] {
            let command = DecideOrder {
                partner_id: order.partner_id,
                order_id: order.order_id,
                approved,
                reason: "walk".to_owned(),
                by: build::somebody(),
            };
            let engine = Arc::clone(&self.any_node().engine);
            let task = self.any_node().spawn(async move {
                match decide_order(&engine, command).await {
                    Ok(order) if order.status == OrderStatus::Refunded => "decided against",
                    Ok(_) => "approved",
                    Err(NotDecided::NotWaiting) => "not to be approved",
                    Err(NotDecided::NotFound) => "no such order",
                    Err(NotDecided::Unanswered(reason)) => name_of_reason(&reason),
                }
            });
            self.follow("decide", &order, task);
        }
    }

    /// An operator brings in what the first line of an order waits for, not always all of it, whoever its vendor is.
    pub(super) fn fulfil(&mut self) {
        let waits = |order: &Order| order.pending_reason == Some(PendingReason::Vendor) && !order.closed;
        let Some(order) = self.any_order(waits) else {
            return;
        };
        let (partner_id, order_id) = (order.partner_id, order.order_id);
        let some = 1 + self.dice.roll(3);
        let (world, engine) = (self.world.clone(), Arc::clone(&self.any_node().engine));
        let procurement = Arc::clone(&self.any_node().procurement);
        let task = self.any_node().spawn(async move {
            match procurement.take_up(partner_id, order_id).await {
                Ok(()) => {}
                Err(Stuck::Unanswered(reason)) => return name_of_reason(&reason),
                Err(Stuck::Unavailable(_)) => return "unavailable",
            }
            let mut open = world.market.open_purchases_of(order_id).into_iter();
            let purchase = open
                .find(|(line, _)| *line == 0)
                .map(|(_, purchase_id)| purchase_id);
            let (Some(kept_id), Some(order)) = (purchase, world.db.order(order_id)) else {
                return "nothing to bring in";
            };
            let line = &order.lines[0];
            let expiries = vec![build::day(400); (line.pending().min(some)) as usize];
            if expiries.is_empty() || line.stock_only {
                return "nothing to bring in";
            }
            world.db.add_bought(&line.sku(), &expiries, kept_id);
            let delivery = Delivery {
                kept_id,
                source: Source::Vendor,
                partner_id,
                order_id,
                line: 0,
            };
            match deliver(&engine, delivery).await {
                Err(reason) => name_of_reason(&reason),
                Ok(_) => "delivered to",
            }
        });
        let reference = format!("fulfil {partner_id} {some}");
        self.calls.push(Call::Change(reference, task));
    }

    /// A partner reads the codes of an order, whatever it holds by then.
    pub(super) fn retrieve(&mut self) {
        let holds = |order: &Order| !order.vouchers.is_empty();
        if let Some(order) = self.any_order(holds) {
            let world = self.world.clone();
            // A commit may hold the order for long.
            #[allow(clippy::disallowed_methods)]
            drop(tokio::task::spawn_local(async move {
                world.db.retrieve(order.order_id).await
            }));
        }
    }

    /// A partner asks for a payout, under a key that it may have used before.
    pub(super) fn pay_out(&mut self) {
        let (partner_id, _) = self.dice.pick(&PARTNERS);
        let reference = format!("payout {} {}@{}", partner_id, self.dice.roll(6), self.epoch);
        let command = RequestPayout {
            partner_id,
            key: build::key(&reference),
            fingerprint: build::fingerprint(&reference),
            money: build::minor(self.dice.pick(&[500, 3_000, 90_000])).of(build::usd()),
            destination: Destination {
                shown: "{}".into(),
                sealed: bytes::Bytes::new(),
            },
            reference: Some(reference.clone()),
        };
        let engine = Arc::clone(&self.any_node().engine);
        let task = self.any_node().spawn(async move {
            match request_payout(&engine, command, &PlainPayout).await {
                Ok(Placed::Fresh(_)) => "paid out",
                Ok(Placed::Replayed(_)) => "paid out before",
                Err(reason) => name_of_reason(&reason),
            }
        });
        self.calls.push(Call::Change(reference, task));
    }

    /// Operators decide on a payout, each in its own way, at once.
    pub(super) fn end_payout(&mut self) {
        let mut payouts = self.world.db.payouts();
        payouts.sort_by(|a, b| a.reference.cmp(&b.reference));
        if payouts.is_empty() {
            return;
        }
        let count = u32::try_from(payouts.len()).unwrap_or(1);
        let payout = payouts.swap_remove(self.dice.roll(count) as usize);
        for _ in 0..2 {
            let ends = [PayoutEnd::Paid, PayoutEnd::Rejected, PayoutEnd::Failed];
            let command = DecidePayout {
                partner_id: payout.partner_id,
                payout_id: payout.payout_id,
                decision: PayoutDecision {
                    end: self.dice.pick(&ends),
                    reason: None,
                    reference: None,
                },
                by: build::somebody(),
            };
            let engine = Arc::clone(&self.any_node().engine);
            let task = self.any_node().spawn(async move {
                match decide_payout(&engine, command).await {
                    Ok(_) => "payout decided",
                    Err(PayoutNotDecided::Over(_)) => "payout over",
                    Err(PayoutNotDecided::NotFound) => "no such payout",
                    Err(PayoutNotDecided::Unanswered(reason)) => name_of_reason(&reason),
                }
            });
            let reference = payout.reference.clone().unwrap_or_default();
            self.calls.push(Call::Change(reference, task));
        }
    }

    fn follow(&mut self, what: &str, order: &Order, task: JoinHandle<&'static str>) {
        if self.dice.percent(15) {
            task.abort();
        }
        let reference = order.reference.clone().unwrap_or_default();
        self.calls.push(Call::Change(format!("{what} {reference}"), task));
    }

    /// One of the last orders that are so.
    fn any_order(&mut self, such: impl Fn(&Order) -> bool) -> Option<Order> {
        let mut orders: Vec<Order> = self.world.db.orders().into_iter().filter(such).collect();
        orders.sort_by_key(|order| (order.created_at, order.partner_id, order.reference.clone()));
        let last = orders.len().saturating_sub(30);
        let count = u32::try_from(orders.len() - last)
            .ok()
            .filter(|count| *count > 0)?;
        Some(orders.swap_remove(last + self.dice.roll(count) as usize))
    }
}

fn not_cancelled(error: &NotCancelled) -> &'static str {
    match error {
        NotCancelled::NotFound => "no such order",
        NotCancelled::Retrieved => "retrieved before",
        NotCancelled::TooLate(_) => "too late to cancel",
        NotCancelled::Expired => "expired before",
        NotCancelled::NotReturnable(_) => "not returnable",
        NotCancelled::Over => "nothing to cancel",
        NotCancelled::Unanswered(reason) => name_of_reason(reason),
    }
}
