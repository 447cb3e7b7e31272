//! Order state machine: computes the next state of an order with its events, refund and pending amounts.
//! Pure.
//!
//! ```text
//! PENDING ──► PROCESSING ──► PARTIALLY_DELIVERED ⟲ ──► DELIVERED
//!    │            │                  │                     │
//!    └────────────┴───────┬──────────┴─────────────────────┘
//!                     CANCELLED ──► REFUNDED
//! ```
//!
//! Invariant: an order owes its partner the debited amount less refunds and failed units. Whatever it stops
//! owing is refunded in the same commit, so no unit is refunded twice and none is lost.

use time::OffsetDateTime;

use super::event::{EventBundle, EventStep};
use super::ids::{TransactionId, VoucherId};
use super::ledger::{LedgerKind, Movement, PendingDelta};
use super::money::Amount;
use super::order::{Actor, FulfilmentSource, Milestone, Order, OrderStatus, PendingReason};
use super::voucher::Allocation;

/// Who changes an order, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    pub by: Actor,
    pub reason: Option<String>,
}

impl Cause {
    /// The service, without a reason.
    pub const SYSTEM: Self = Self {
        by: Actor::System,
        reason: None,
    };
}

/// A transition of an order that is being computed.
#[derive(Debug, Clone)]
pub struct OrderTransition {
    order: Order,
    owed_before: Amount,
    pending_before: Amount,
    refund_id: TransactionId,
    steps: Vec<EventStep>,
    issued: Vec<Allocation>,
    returned: Vec<Allocation>,
    at: OffsetDateTime,
}

/// The effects of a transition, to be written in one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionEffects {
    /// The order after the transition.
    pub order: Order,
    /// Vouchers allocated to the order.
    pub issued: Vec<Allocation>,
    /// Vouchers taken back from the order.
    pub returned: Vec<Allocation>,
    /// The refund, if any.
    pub movement: Option<Movement>,
    /// Change of the wallet's pending amount; `None` if it does not change.
    pub pending_delta: Option<PendingDelta>,
    pub events: EventBundle,
}

impl OrderTransition {
    /// Starts a transition of `order` at time `at`. A refund gets the transaction id `refund_id`.
    #[must_use]
    pub fn new(order: Order, refund_id: TransactionId, at: OffsetDateTime) -> Self {
        Self {
            owed_before: order.owed(),
            pending_before: order.outstanding(),
            order,
            refund_id,
            steps: Vec::new(),
            issued: Vec::new(),
            returned: Vec::new(),
            at,
        }
    }

    /// The order in its current intermediate state.
    #[must_use]
    pub const fn order(&self) -> &Order {
        &self.order
    }

    /// Starts allocation or records the approval, and sets what the order waits for. The status of an order
    /// that has left `PENDING` does not change.
    pub fn start_processing(&mut self, cause: &Cause, pending_reason: Option<PendingReason>) {
        self.order.pending_reason = pending_reason;
        if self.order.status == OrderStatus::Pending {
            self.enter_status(OrderStatus::Processing, cause);
            self.steps.push(EventStep::Processing);
        }
    }

    /// Allocates vouchers, each to a line with pending units. All of them come from `source`.
    pub fn issue(&mut self, vouchers: Vec<Allocation>, source: FulfilmentSource) {
        if vouchers.is_empty() {
            return;
        }
        for allocation in &vouchers {
            let line = &mut self.order.lines[usize::from(allocation.line)];
            assert!(
                line.pending() > 0,
                "a voucher is allocated to a line without pending units"
            );
            line.delivered += 1;
            line.bought += u32::from(source == FulfilmentSource::Vendor);
        }
        self.steps.push(EventStep::Issued {
            first: count(&self.order.vouchers),
            count: count(&vouchers),
        });
        self.order.vouchers.extend(vouchers.iter().cloned());
        self.issued.extend(vouchers);
        self.order.fulfilled_from = self.order.source();
        if self
            .order
            .lines
            .iter()
            .all(|line| line.delivered == line.quantity)
        {
            self.enter_status(OrderStatus::Delivered, &Cause::SYSTEM);
            self.steps.push(EventStep::Delivered);
            self.close();
        } else {
            self.enter_partially_delivered(&Cause::SYSTEM);
        }
    }

    /// Fails all pending units, refunds them and closes the order. An order with nothing delivered is
    /// cancelled.
    pub fn fail_pending(&mut self, cause: &Cause) {
        for line in &mut self.order.lines {
            line.failed += line.pending();
        }
        if self.order.lines.iter().all(|line| line.delivered == 0) {
            return self.cancel_and_refund(cause);
        }
        self.enter_partially_delivered(cause);
        self.record_refund();
        self.close();
    }

    /// Takes all vouchers back and refunds the whole order.
    pub fn cancel(&mut self, cause: &Cause) {
        let returned = std::mem::take(&mut self.order.vouchers);
        self.take_back(returned);
        for line in &mut self.order.lines {
            line.delivered = 0;
            line.cancelled += line.quantity - line.failed;
            line.failed = line.quantity;
        }
        self.order.fulfilled_from = None;
        self.cancel_and_refund(cause);
    }

    /// Takes `vouchers` back, fails them and all pending units, and refunds both.
    pub fn revoke_vouchers(&mut self, vouchers: &[VoucherId], cause: &Cause) {
        let (returned, remaining) = std::mem::take(&mut self.order.vouchers)
            .into_iter()
            .partition(|held| vouchers.contains(&held.voucher_id));
        self.order.vouchers = remaining;
        self.take_back(returned);
        for allocation in &self.returned {
            let line = &mut self.order.lines[usize::from(allocation.line)];
            line.delivered -= 1;
            line.failed += 1;
        }
        self.order.fulfilled_from = self.order.source();
        self.fail_pending(cause);
    }

    /// The order remembers the vouchers that it returns, in the order in which it is read.
    fn take_back(&mut self, returned: Vec<Allocation>) {
        self.order.returned.extend(returned.iter().cloned());
        let position = |held: &Allocation| (held.line, held.voucher.expiry, held.voucher.stock_id);
        self.order.returned.sort_unstable_by_key(position);
        self.returned.extend(returned);
    }

    /// Finishes the transition. `last_sequence` is the sequence number of the order's last event before it.
    #[must_use]
    pub fn finish(mut self, last_sequence: u32) -> TransitionEffects {
        self.order.updated_at = self.at;
        let refunded = subtract(self.owed_before, self.order.owed());
        let shift = subtract(self.order.outstanding(), self.pending_before);
        let currency = self.order.total.currency;
        let movement = (refunded != Amount::ZERO).then(|| Movement {
            transaction_id: self.refund_id,
            currency,
            kind: LedgerKind::Refund,
            amount: refunded,
            order_id: Some(self.order.order_id),
            payout_id: None,
            reference: self.order.reference.clone(),
            booked_by: None,
        });
        let pending = (shift != Amount::ZERO).then_some(PendingDelta {
            currency,
            orders: shift,
            payouts: Amount::ZERO,
        });
        TransitionEffects {
            events: EventBundle::for_changed_order(&self.order, last_sequence + 1, self.steps),
            issued: self.issued,
            returned: self.returned,
            movement,
            pending_delta: pending,
            order: self.order,
        }
    }

    fn enter_partially_delivered(&mut self, cause: &Cause) {
        self.enter_status(OrderStatus::PartiallyDelivered, cause);
        let sum = |of: fn(&super::order::OrderLine) -> u32| self.order.lines.iter().map(of).sum();
        self.steps.push(EventStep::PartiallyDelivered {
            delivered: sum(|line| line.delivered),
            pending: sum(|line| line.pending()),
            failed: sum(|line| line.failed),
        });
    }

    /// Cancels the order and refunds it at once.
    fn cancel_and_refund(&mut self, cause: &Cause) {
        self.enter_status(OrderStatus::Cancelled, cause);
        self.steps.push(EventStep::Cancelled {
            by: cause.by,
            reason: cause.reason.clone(),
        });
        self.enter_status(
            OrderStatus::Refunded,
            &Cause {
                reason: None,
                ..cause.clone()
            },
        );
        self.record_refund();
        self.close();
    }

    fn record_refund(&mut self) {
        let amount = subtract(self.owed_before, self.order.owed());
        if amount == Amount::ZERO {
            return;
        }
        self.order.refunded = add(self.order.refunded, amount);
        self.steps.push(EventStep::Refunded {
            transaction_id: self.refund_id,
            amount,
        });
    }

    fn close(&mut self) {
        self.order.closed = true;
        self.order.pending_reason = None;
    }

    fn enter_status(&mut self, status: OrderStatus, cause: &Cause) {
        self.order.status = status;
        self.order.timeline.push(Milestone {
            status,
            at: self.at,
            by: cause.by,
            reason: cause.reason.clone(),
        });
    }
}

/// Cannot saturate: an order has at most 1,000 vouchers.
fn count(vouchers: &[Allocation]) -> u32 {
    u32::try_from(vouchers.len()).unwrap_or(u32::MAX)
}

/// Cannot overflow: both are parts of an order's total.
fn add(left: Amount, right: Amount) -> Amount {
    Amount::from_minor(left.minor() + right.minor())
}

fn subtract(left: Amount, right: Amount) -> Amount {
    Amount::from_minor(left.minor() - right.minor())
}

#[cfg(test)]
mod tests;
