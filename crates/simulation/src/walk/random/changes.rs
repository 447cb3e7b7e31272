//! Steps that change existing orders and payouts: cancel, retrieve, decide, revoke, fulfil, pay out.
//!
//! Orders and payouts are chosen by reference, because ids are random and one seed must reproduce one run.

use std::sync::Arc;

use time::Duration;
use tokio::task::JoinHandle;
use vouchsafe_actors::flows::{
    CancelError, CancelOrder, DecideOrder, DecideOrderError, DecidePayout, DecidePayoutError,
    IdempotentResponse, ProcureError, RequestPayout, RevokeOrder, cancel_order, decide_order, decide_payout,
    deliver_reserved, request_payout, revoke_order,
};
use vouchsafe_actors::ports::vendors::ReservedDelivery;
use vouchsafe_domain::order::{FulfilmentSource, Order, OrderStatus, PendingReason};
use vouchsafe_domain::payout::{PayoutDecision, PayoutDestination, PayoutOutcome};

use super::rng::error_label;
use super::{Call, PARTNERS, Walk};
use crate::build;
use crate::walk::PlainTextResponses;

/// Cancellation window; the simulated clock jumps by more than this.
const WINDOW: Duration = Duration::hours(24);

impl Walk {
    /// A partner cancels one of its orders, with concurrent duplicates.
    pub(super) fn cancel(&mut self) {
        let Some(order) = self.random_recent_order(|_| true) else {
            return;
        };
        for _ in 0..1 + self.rng.below(3) {
            let command = CancelOrder {
                caps: None,
                partner_id: order.partner_id,
                order_id: order.order_id,
                reason: None,
                window: WINDOW,
            };
            let engine = Arc::clone(&self.random_node().engine);
            let task = self.random_node().spawn(async move {
                let cancelled = cancel_order(&engine, command, |_| true).await;
                cancelled.map_or_else(|error| cancel_error_label(&error), |_| "cancelled")
            });
            self.track("cancel", &order, task);
        }
    }

    /// An operator revokes the unretrieved vouchers of an order.
    pub(super) fn revoke(&mut self) {
        let Some(order) = self.random_recent_order(|_| true) else {
            return;
        };
        let command = RevokeOrder {
            partner_id: order.partner_id,
            order_id: order.order_id,
            reason: "walk".to_owned(),
            operator: build::operator(),
        };
        let engine = Arc::clone(&self.random_node().engine);
        let task = self.random_node().spawn(async move {
            let revoked = revoke_order(&engine, command).await;
            revoked.map_or_else(|error| cancel_error_label(&error), |_| "revoked")
        });
        self.track("revoke", &order, task);
    }

    /// Two operators decide concurrently on an order that waits for approval.
    pub(super) fn decide(&mut self) {
        let waits = |order: &Order| order.pending_reason == Some(PendingReason::Approval);
        let Some(order) = self.random_recent_order(waits) else {
            return;
        };
        for approved in [self.rng.percent(50), true] {
            let command = DecideOrder {
                partner_id: order.partner_id,
                order_id: order.order_id,
                approved,
                reason: "walk".to_owned(),
                operator: build::operator(),
            };
            let engine = Arc::clone(&self.random_node().engine);
            let task = self.random_node().spawn(async move {
                match decide_order(&engine, command).await {
                    Ok(order) if order.status == OrderStatus::Refunded => "rejected",
                    Ok(_) => "approved",
                    Err(DecideOrderError::NotAwaitingApproval) => "not awaiting approval",
                    Err(DecideOrderError::NotFound) => "no such order",
                    Err(DecideOrderError::Flow(reason)) => error_label(&reason),
                }
            });
            self.track("decide", &order, task);
        }
    }

    /// An operator supplies vouchers for an order's first line, sometimes only a part.
    pub(super) fn fulfil(&mut self) {
        let waits = |order: &Order| order.pending_reason == Some(PendingReason::Vendor) && !order.closed;
        let Some(order) = self.random_recent_order(waits) else {
            return;
        };
        let (partner_id, order_id) = (order.partner_id, order.order_id);
        let quantity = 1 + self.rng.below(3);
        let (simulation, engine) = (self.simulation.clone(), Arc::clone(&self.random_node().engine));
        let procurement = Arc::clone(&self.random_node().procurement);
        let task = self.random_node().spawn(async move {
            match procurement.start_order(partner_id, order_id).await {
                Ok(()) => {}
                Err(ProcureError::Flow(reason)) => return error_label(&reason),
                Err(ProcureError::Unavailable(_)) => return "unavailable",
            }
            let mut open = simulation.vendors.open_purchases_of(order_id).into_iter();
            let purchase = open
                .find(|(line, _)| *line == 0)
                .map(|(_, purchase_id)| purchase_id);
            let (Some(reservation_id), Some(order)) = (purchase, simulation.db.order(order_id)) else {
                return "nothing to supply";
            };
            let line = &order.lines[0];
            let expiries = vec![build::day(400); (line.pending().min(quantity)) as usize];
            if expiries.is_empty() || line.stock_only {
                return "nothing to supply";
            }
            simulation
                .db
                .add_reserved_stock(&line.sku(), &expiries, reservation_id);
            let delivery = ReservedDelivery {
                reservation_id,
                source: FulfilmentSource::Vendor,
                partner_id,
                order_id,
                line: 0,
            };
            match deliver_reserved(&engine, delivery).await {
                Err(reason) => error_label(&reason),
                Ok(_) => "supplied",
            }
        });
        let reference = format!("fulfil {partner_id} {quantity}");
        self.calls.push(Call::Change(reference, task));
    }

    /// A partner retrieves the codes of an order.
    pub(super) fn retrieve(&mut self) {
        let holds = |order: &Order| !order.vouchers.is_empty();
        if let Some(order) = self.random_recent_order(holds) {
            let simulation = self.simulation.clone();
            // Not joined: a slow commit may hold the order's lock.
            #[allow(clippy::disallowed_methods)]
            drop(tokio::task::spawn_local(async move {
                simulation.db.retrieve(order.order_id).await
            }));
        }
    }

    /// A partner requests a payout, possibly under a key used before.
    pub(super) fn request_payout(&mut self) {
        let (partner_id, _) = self.rng.choose(&PARTNERS);
        let reference = format!("payout {} {}@{}", partner_id, self.rng.below(6), self.epoch);
        let command = RequestPayout {
            partner_id,
            key: build::key(&reference),
            fingerprint: build::fingerprint(&reference),
            money: build::minor(self.rng.choose(&[500, 3_000, 90_000])).of(build::usd()),
            destination: PayoutDestination {
                masked: "{}".into(),
                sealed: bytes::Bytes::new(),
            },
            reference: Some(reference.clone()),
        };
        let engine = Arc::clone(&self.random_node().engine);
        let task = self.random_node().spawn(async move {
            match request_payout(&engine, command, &PlainTextResponses).await {
                Ok(IdempotentResponse::Fresh(_)) => "payout requested",
                Ok(IdempotentResponse::Replayed(_)) => "payout replayed",
                Err(reason) => error_label(&reason),
            }
        });
        self.calls.push(Call::Change(reference, task));
    }

    /// Operators and the partner decide concurrently on a payout.
    pub(super) fn decide_payout(&mut self) {
        let mut payouts = self.simulation.db.payouts();
        payouts.sort_by(|a, b| a.reference.cmp(&b.reference));
        if payouts.is_empty() {
            return;
        }
        let count = u32::try_from(payouts.len()).unwrap_or(1);
        let payout = payouts.swap_remove(self.rng.below(count) as usize);
        for _ in 0..2 {
            let ends = [
                PayoutOutcome::Paid,
                PayoutOutcome::Rejected,
                PayoutOutcome::Failed,
                PayoutOutcome::Cancelled,
            ];
            let command = DecidePayout {
                partner_id: payout.partner_id,
                payout_id: payout.payout_id,
                decision: PayoutDecision {
                    outcome: self.rng.choose(&ends),
                    reason: None,
                    reference: None,
                },
                author: build::operator(),
            };
            let engine = Arc::clone(&self.random_node().engine);
            let task = self.random_node().spawn(async move {
                match decide_payout(&engine, command).await {
                    Ok(_) => "payout decided",
                    Err(DecidePayoutError::AlreadyDecided(_)) => "payout already decided",
                    Err(DecidePayoutError::NotFound) => "no such payout",
                    Err(DecidePayoutError::Flow(reason)) => error_label(&reason),
                }
            });
            let reference = payout.reference.clone().unwrap_or_default();
            self.calls.push(Call::Change(reference, task));
        }
    }

    fn track(&mut self, operation: &str, order: &Order, task: JoinHandle<&'static str>) {
        if self.rng.percent(15) {
            task.abort();
        }
        let reference = order.reference.clone().unwrap_or_default();
        self.calls
            .push(Call::Change(format!("{operation} {reference}"), task));
    }

    /// One of the 30 newest matching orders.
    fn random_recent_order(&mut self, matches: impl Fn(&Order) -> bool) -> Option<Order> {
        let mut orders: Vec<Order> = self.simulation.db.orders().into_iter().filter(matches).collect();
        orders.sort_by_key(|order| (order.created_at, order.partner_id, order.reference.clone()));
        let last = orders.len().saturating_sub(30);
        let count = u32::try_from(orders.len() - last)
            .ok()
            .filter(|count| *count > 0)?;
        Some(orders.swap_remove(last + self.rng.below(count) as usize))
    }
}

fn cancel_error_label(error: &CancelError) -> &'static str {
    match error {
        CancelError::NotFound => "no such order",
        CancelError::Retrieved => "already retrieved",
        CancelError::TooLate(_) => "too late to cancel",
        CancelError::Expired => "already expired",
        CancelError::NotReturnable(_) => "not returnable",
        CancelError::NothingToCancel => "nothing to cancel",
        CancelError::Cap(_) => "over a cap",
        CancelError::Flow(reason) => error_label(reason),
    }
}
