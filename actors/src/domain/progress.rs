//! How does an order move on? From one state to the next, with what is told of it and what it does to the wallet. Pure.
//!
//! ```text
//! PENDING ──► PROCESSING ──► PARTIALLY_DELIVERED ⟲ ──► DELIVERED
//!    │            │                  │                     │
//!    └────────────┴───────┬──────────┴─────────────────────┘
//!                     CANCELLED ──► REFUNDED
//! ```
//!
//! Rule: an order owes its partner what was debited for it and neither paid back nor given up. What it stops to owe is
//! refunded in the same commit: so no unit is refunded twice, and none is lost.

use time::OffsetDateTime;

use super::event::{EventBundle, Step};
use super::ids::{TransactionId, VoucherId};
use super::ledger::{LedgerKind, Movement, PendingShift};
use super::money::Amount;
use super::order::{Actor, Milestone, Order, OrderStatus, PendingReason, Source};
use super::voucher::Allocation;

/// Who moves an order, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    pub by: Actor,
    /// Why, where somebody said so.
    pub reason: Option<String>,
}

impl Cause {
    /// The service itself, without more words.
    pub const SERVICE: Self = Self {
        by: Actor::System,
        reason: None,
    };
}

/// An order on its way to its next state.
#[derive(Debug, Clone)]
pub struct Progress {
    order: Order,
    owed_before: Amount,
    pending_before: Amount,
    refund: TransactionId,
    steps: Vec<Step>,
    issued: Vec<Allocation>,
    returned: Vec<Allocation>,
    at: OffsetDateTime,
}

/// What one commit does to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progressed {
    /// The order after it.
    pub order: Order,
    /// The vouchers that it gets.
    pub issued: Vec<Allocation>,
    /// The vouchers that leave it.
    pub returned: Vec<Allocation>,
    /// What is paid back, if anything is.
    pub movement: Option<Movement>,
    /// By how much less, or more, it waits for; `None` where that stays.
    pub pending: Option<PendingShift>,
    pub events: EventBundle,
}

impl Progress {
    /// The order as it is; everything happens at this moment. A refund, if there is one, is booked under `refund`.
    #[must_use]
    pub fn of(order: Order, refund: TransactionId, at: OffsetDateTime) -> Self {
        Self {
            owed_before: order.owed(),
            pending_before: order.outstanding(),
            order,
            refund,
            steps: Vec::new(),
            issued: Vec::new(),
            returned: Vec::new(),
            at,
        }
    }

    /// The order as it stands now.
    #[must_use]
    pub const fn order(&self) -> &Order {
        &self.order
    }

    /// Allocation begins, or approval was given. What has begun already stays as it is.
    pub fn process(&mut self, cause: &Cause, waits_for: Option<PendingReason>) {
        self.order.pending_reason = waits_for;
        if self.order.status == OrderStatus::Pending {
            self.enter(OrderStatus::Processing, cause);
            self.steps.push(Step::Processing);
        }
    }

    /// Vouchers are allocated, each to a line that waits for one; all were held, or all were bought for the order.
    pub fn issue(&mut self, vouchers: Vec<Allocation>, source: Source) {
        if vouchers.is_empty() {
            return;
        }
        for allocation in &vouchers {
            let line = &mut self.order.lines[usize::from(allocation.line)];
            assert!(line.pending() > 0, "a voucher goes to a line that waits for one");
            line.delivered += 1;
            line.bought += u32::from(source == Source::Vendor);
        }
        self.steps.push(Step::Issued {
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
            self.enter(OrderStatus::Delivered, &Cause::SERVICE);
            self.steps.push(Step::Delivered);
            self.close();
        } else {
            self.deliver_partly(&Cause::SERVICE);
        }
    }

    /// What is pending can never be had: it is paid back, and the order closed. With nothing delivered it is cancelled.
    pub fn give_up_rest(&mut self, cause: &Cause) {
        for line in &mut self.order.lines {
            line.failed += line.pending();
        }
        if self.order.lines.iter().all(|line| line.delivered == 0) {
            return self.end(cause);
        }
        self.deliver_partly(cause);
        self.pay_back();
        self.close();
    }

    /// All of it is taken back and paid back.
    pub fn cancel(&mut self, cause: &Cause) {
        self.returned.append(&mut self.order.vouchers);
        for line in &mut self.order.lines {
            line.delivered = 0;
            line.bought = 0;
            line.failed = line.quantity;
        }
        self.order.fulfilled_from = None;
        self.end(cause);
    }

    /// These vouchers are taken back and paid back with whatever is pending, as if they could never be had.
    pub fn take_back(&mut self, vouchers: &[VoucherId], cause: &Cause) {
        let (returned, kept) = std::mem::take(&mut self.order.vouchers)
            .into_iter()
            .partition(|held| vouchers.contains(&held.voucher_id));
        self.order.vouchers = kept;
        self.returned = returned;
        for allocation in &self.returned {
            let line = &mut self.order.lines[usize::from(allocation.line)];
            line.delivered -= 1;
            line.failed += 1;
        }
        self.order.fulfilled_from = self.order.source();
        self.give_up_rest(cause);
    }

    /// What a commit writes of it. `since` is the number of the order's last event before.
    #[must_use]
    pub fn finish(mut self, since: u32) -> Progressed {
        self.order.updated_at = self.at;
        let refunded = minus(self.owed_before, self.order.owed());
        let shift = minus(self.order.outstanding(), self.pending_before);
        let currency = self.order.total.currency;
        let movement = (refunded != Amount::ZERO).then(|| Movement {
            transaction_id: self.refund,
            currency,
            kind: LedgerKind::Refund,
            amount: refunded,
            order_id: Some(self.order.order_id),
            payout_id: None,
            reference: self.order.reference.clone(),
            booked_by: None,
        });
        let pending = (shift != Amount::ZERO).then_some(PendingShift {
            currency,
            orders: shift,
            payouts: Amount::ZERO,
        });
        Progressed {
            events: EventBundle::progressed(&self.order, since + 1, self.steps),
            issued: self.issued,
            returned: self.returned,
            movement,
            pending,
            order: self.order,
        }
    }

    fn deliver_partly(&mut self, cause: &Cause) {
        self.enter(OrderStatus::PartiallyDelivered, cause);
        let sum = |of: fn(&super::order::OrderLine) -> u32| self.order.lines.iter().map(of).sum();
        self.steps.push(Step::PartiallyDelivered {
            delivered: sum(|line| line.delivered),
            pending: sum(|line| line.pending()),
            failed: sum(|line| line.failed),
        });
    }

    /// Nothing stays delivered: cancelled, and paid back at once.
    fn end(&mut self, cause: &Cause) {
        self.enter(OrderStatus::Cancelled, cause);
        self.steps.push(Step::Cancelled {
            by: cause.by,
            reason: cause.reason.clone(),
        });
        self.enter(
            OrderStatus::Refunded,
            &Cause {
                reason: None,
                ..cause.clone()
            },
        );
        self.pay_back();
        self.close();
    }

    fn pay_back(&mut self) {
        let amount = minus(self.owed_before, self.order.owed());
        if amount == Amount::ZERO {
            return;
        }
        self.order.refunded = plus(self.order.refunded, amount);
        self.steps.push(Step::Refunded {
            transaction_id: self.refund,
            amount,
        });
    }

    fn close(&mut self) {
        self.order.closed = true;
        self.order.pending_reason = None;
    }

    fn enter(&mut self, status: OrderStatus, cause: &Cause) {
        self.order.status = status;
        self.order.timeline.push(Milestone {
            status,
            at: self.at,
            by: cause.by,
            reason: cause.reason.clone(),
        });
    }
}

/// An order has a thousand vouchers at most.
fn count(vouchers: &[Allocation]) -> u32 {
    u32::try_from(vouchers.len()).unwrap_or(u32::MAX)
}

/// Parts of an order's total, which fits.
fn plus(one: Amount, other: Amount) -> Amount {
    Amount::from_minor(one.minor() + other.minor())
}

fn minus(one: Amount, other: Amount) -> Amount {
    Amount::from_minor(one.minor() - other.minor())
}

#[cfg(test)]
mod tests;
