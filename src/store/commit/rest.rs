//! What few records of a batch have, as one JSON text: orders that move on, vouchers that come back, payouts, what wallets'
//! money waits for, and what operators decided.
//!
//! Rule: where no record has any of it there is no text, and the statement does not look.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::domain::deed::{Deed, Standing};
use vouchsafe_actors::domain::event::EventBundle;
use vouchsafe_actors::domain::ledger::PendingShift;
use vouchsafe_actors::domain::order::{Milestone, OrderLine};
use vouchsafe_actors::domain::payout::{Payout, PayoutMilestone};
use vouchsafe_actors::journal::{OrderChange, PayoutChange, Record, Return};

/// The rest of a batch.
#[derive(Debug, Default, Serialize)]
pub(super) struct Rest<'a> {
    shifts: Vec<Shift<'a>>,
    changes: Vec<Change<'a>>,
    returns: Vec<Back>,
    payouts: Vec<PayoutRow<'a>>,
    deeds: Vec<DeedRow<'a>>,
}

#[derive(Debug, Serialize)]
struct Shift<'a> {
    record: i32,
    currency: &'a str,
    orders: i64,
    payouts: i64,
}

#[derive(Debug, Serialize)]
struct Change<'a> {
    record: i32,
    order_id: Uuid,
    since: u32,
    status: &'static str,
    source: Option<&'static str>,
    pending_reason: Option<&'static str>,
    closed: bool,
    refunded: i64,
    last_sequence: u32,
    lines: &'a [OrderLine],
    timeline: &'a [Milestone],
    #[serde(with = "vouchsafe_actors::domain::moment")]
    updated_at: OffsetDateTime,
}

#[derive(Debug, Serialize)]
struct Back {
    record: i32,
    stock_id: i64,
    voucher_id: Uuid,
    new_id: i64,
    begins: i64,
}

#[derive(Debug, Serialize)]
struct PayoutRow<'a> {
    record: i32,
    payout_id: Uuid,
    new: bool,
    status: &'static str,
    currency: &'a str,
    amount: i64,
    destination: &'a str,
    sealed: String,
    reference: Option<&'a str>,
    timeline: &'a [PayoutMilestone],
    #[serde(with = "vouchsafe_actors::domain::moment")]
    at: OffsetDateTime,
}

#[derive(Debug, Serialize)]
struct DeedRow<'a> {
    record: i32,
    operator: &'a str,
    action: &'static str,
    subject: &'a str,
    before: &'a Standing,
    after: After<'a>,
    trace_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct After<'a> {
    #[serde(flatten)]
    standing: &'a Standing,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a str>,
}

impl<'a> Rest<'a> {
    pub(super) fn push(&mut self, number: i32, record: &'a Record) {
        self.shifts
            .extend(record.pending.iter().map(|shift| Shift::of(number, shift)));
        let last = record.events.as_ref().map_or(0, EventBundle::last_sequence);
        self.changes.extend(
            record
                .change
                .iter()
                .map(|change| Change::of(number, change, last)),
        );
        self.returns
            .extend(record.returned().map(|back| Back::of(number, back)));
        self.payouts
            .extend(record.payout.iter().map(|change| PayoutRow::of(number, change)));
        self.deeds
            .extend(record.deed.iter().map(|deed| DeedRow::of(number, deed)));
    }

    /// The text, if there is anything to tell.
    pub(super) fn text(&self) -> Result<Option<String>, sqlx::Error> {
        // What comes back belongs to a change, and a decision is one on an order or a payout.
        if self.shifts.is_empty() && self.changes.is_empty() && self.payouts.is_empty() {
            return Ok(None);
        }
        super::json(self).map(Some)
    }
}

impl<'a> Shift<'a> {
    fn of(record: i32, shift: &'a PendingShift) -> Self {
        Self {
            record,
            currency: shift.currency.as_str(),
            orders: shift.orders.minor(),
            payouts: shift.payouts.minor(),
        }
    }
}

impl<'a> Change<'a> {
    fn of(record: i32, change: &'a OrderChange, last_sequence: u32) -> Self {
        let after = &change.after;
        Self {
            record,
            order_id: after.order_id.as_uuid(),
            since: change.since,
            status: after.status.as_str(),
            source: after.fulfilled_from.map(|source| source.as_str()),
            pending_reason: after.pending_reason.map(|reason| reason.as_str()),
            closed: after.closed,
            refunded: after.refunded.minor(),
            last_sequence,
            lines: &after.lines,
            timeline: &after.timeline,
            updated_at: after.updated_at,
        }
    }
}

impl Back {
    fn of(record: i32, back: &Return) -> Self {
        Self {
            record,
            stock_id: back.allocation.voucher.stock_id.0,
            voucher_id: back.allocation.voucher_id.as_uuid(),
            new_id: back.stock_id.0,
            begins: back.chunk_begins.0,
        }
    }
}

impl<'a> PayoutRow<'a> {
    fn of(record: i32, change: &'a PayoutChange) -> Self {
        let (new, payout): (bool, &Payout) = match change {
            PayoutChange::Requested(payout) => (true, payout),
            PayoutChange::Decided(payout) => (false, payout),
        };
        Self {
            record,
            payout_id: payout.payout_id.as_uuid(),
            new,
            status: payout.status.as_str(),
            currency: payout.money.currency.as_str(),
            amount: payout.money.amount.minor(),
            destination: &payout.destination.shown,
            sealed: STANDARD.encode(&payout.destination.sealed),
            reference: payout.reference.as_deref(),
            timeline: &payout.timeline,
            at: payout.updated_at,
        }
    }
}

impl<'a> DeedRow<'a> {
    fn of(record: i32, deed: &'a Deed) -> Self {
        Self {
            record,
            operator: &deed.by.operator,
            action: deed.action.as_str(),
            subject: &deed.subject,
            before: &deed.before,
            after: After {
                standing: &deed.after,
                reason: deed.reason.as_deref(),
                reference: deed.reference.as_deref(),
            },
            trace_id: deed.by.trace_id.as_deref(),
        }
    }
}
