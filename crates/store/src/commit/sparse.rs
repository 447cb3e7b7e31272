//! Columns that few records of a batch have, as one JSON text: order changes, returned vouchers, payouts,
//! changes of the wallets' pending amounts, operators' decisions, and partners' caps.
//!
//! A batch without any of them sends null, and `commit_batch` skips these steps.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::ports::record::{OrderChange, PayoutChange, Record, ReturnedVoucher};
use vouchsafe_domain::audit::{AuditEntry, AuditState};
use vouchsafe_domain::cap::CapCheck;
use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_domain::ledger::PendingDelta;
use vouchsafe_domain::money::Currency;
use vouchsafe_domain::order::{Milestone, OrderLine};
use vouchsafe_domain::payout::{Payout, PayoutMilestone};

#[derive(Debug, Default, Serialize)]
pub(super) struct SparseColumns<'a> {
    pending_deltas: Vec<PendingDeltaRow<'a>>,
    changes: Vec<OrderChangeRow<'a>>,
    returns: Vec<ReturnRow>,
    payouts: Vec<PayoutRow<'a>>,
    audit_entries: Vec<DecisionRow<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    caps: Vec<CapRow>,
}

#[derive(Debug, Serialize)]
struct PendingDeltaRow<'a> {
    record: i32,
    currency: &'a str,
    orders: i64,
    payouts: i64,
}

#[derive(Debug, Serialize)]
struct OrderChangeRow<'a> {
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
    #[serde(with = "vouchsafe_domain::timestamp")]
    updated_at: OffsetDateTime,
}

#[derive(Debug, Serialize)]
struct ReturnRow {
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
    #[serde(with = "vouchsafe_domain::timestamp")]
    at: OffsetDateTime,
}

#[derive(Debug, Serialize)]
struct DecisionRow<'a> {
    record: i32,
    operator: &'a str,
    action: &'static str,
    subject: &'a str,
    before: &'a AuditState,
    after: DecisionAfter<'a>,
    trace_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct CapRow {
    record: i32,
    kind: &'static str,
    currency: Option<Currency>,
    credential: Option<Uuid>,
    day: Option<String>,
    within_s: Option<u32>,
    added: i64,
    cap: Option<i64>,
}

#[derive(Debug, Serialize)]
struct DecisionAfter<'a> {
    #[serde(flatten)]
    state: &'a AuditState,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a str>,
}

impl<'a> SparseColumns<'a> {
    pub(super) fn push(&mut self, number: i32, record: &'a Record) {
        self.pending_deltas.extend(
            record
                .pending_delta
                .iter()
                .map(|delta| PendingDeltaRow::of(number, delta)),
        );
        let last = record.events.as_ref().map_or(0, EventBundle::last_sequence);
        self.changes.extend(
            record
                .change
                .iter()
                .map(|change| OrderChangeRow::of(number, change, last)),
        );
        self.returns
            .extend(record.returned().map(|returned| ReturnRow::of(number, returned)));
        self.payouts
            .extend(record.payout.iter().map(|change| PayoutRow::of(number, change)));
        self.audit_entries.extend(
            record
                .audit_entry
                .iter()
                .map(|entry| DecisionRow::of(number, entry)),
        );
        self.caps
            .extend(record.caps.iter().map(|check| CapRow::of(number, check)));
    }

    /// Serializes the columns; `None` if they are empty.
    pub(super) fn to_json(&self) -> Result<Option<String>, sqlx::Error> {
        // A returned voucher always comes with an order change, and a decision with a change of an order or
        // payout.
        if self.pending_deltas.is_empty()
            && self.changes.is_empty()
            && self.payouts.is_empty()
            && self.caps.is_empty()
        {
            return Ok(None);
        }
        super::to_json(self).map(Some)
    }
}

impl<'a> PendingDeltaRow<'a> {
    fn of(record: i32, delta: &'a PendingDelta) -> Self {
        Self {
            record,
            currency: delta.currency.as_str(),
            orders: delta.orders.minor(),
            payouts: delta.payouts.minor(),
        }
    }
}

impl<'a> OrderChangeRow<'a> {
    fn of(record: i32, change: &'a OrderChange, last_sequence: u32) -> Self {
        let after = &change.after;
        Self {
            record,
            order_id: after.order_id.as_uuid(),
            since: change.expected_sequence,
            status: after.status.into_str(),
            source: after.fulfilled_from.map(|source| source.into_str()),
            pending_reason: after.pending_reason.map(|reason| reason.into_str()),
            closed: after.closed,
            refunded: after.refunded.minor(),
            last_sequence,
            lines: &after.lines,
            timeline: &after.timeline,
            updated_at: after.updated_at,
        }
    }
}

impl ReturnRow {
    fn of(record: i32, returned: &ReturnedVoucher) -> Self {
        Self {
            record,
            stock_id: returned.allocation.voucher.stock_id.0,
            voucher_id: returned.allocation.voucher_id.as_uuid(),
            new_id: returned.stock_id.0,
            begins: returned.chunk_first_id.0,
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
            status: payout.status.into_str(),
            currency: payout.money.currency.as_str(),
            amount: payout.money.amount.minor(),
            destination: &payout.destination.masked,
            sealed: STANDARD.encode(&payout.destination.sealed),
            reference: payout.reference.as_deref(),
            timeline: &payout.timeline,
            at: payout.updated_at,
        }
    }
}

impl CapRow {
    fn of(record: i32, check: &CapCheck) -> Self {
        let counter = check.counter.columns();
        Self {
            record,
            kind: counter.kind,
            currency: counter.currency,
            credential: counter.credential_id.map(CredentialId::as_uuid),
            day: counter.day.map(|day| day.to_string()),
            within_s: counter.within_s,
            added: check.added,
            cap: check.cap,
        }
    }
}

impl<'a> DecisionRow<'a> {
    fn of(record: i32, entry: &'a AuditEntry) -> Self {
        Self {
            record,
            operator: &entry.operator.operator,
            action: entry.action.into_str(),
            subject: &entry.subject,
            before: &entry.before,
            after: DecisionAfter {
                state: &entry.after,
                reason: entry.reason.as_deref(),
                reference: entry.reference.as_deref(),
            },
            trace_id: entry.operator.trace_id.as_deref(),
        }
    }
}
