//! Changes of existing orders and payouts: read, decide, commit, and decide again if another change was
//! faster.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | read | the order and the sequence number of its last event | nothing |
//! | (the flow decides) | holds | nothing |
//! | acquire the key of this change: the subject's id and the sequence number | key, admission permit | nothing |
//! | commit | holds settled, long polls notified | the change, or nothing on a conflict |
//!
//! The sequence number decides. Two flows that read the same state use the same key and expect the same
//! number: one of them commits, on whichever node, and the other reads again.

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;
use vouchsafe_domain::audit::AuditEntry;
use vouchsafe_domain::cap::CapCheck;
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response, Retention};
use vouchsafe_domain::ids::{OrderId, PartnerId, StockId};
use vouchsafe_domain::order::{Order, StoredOrder};
use vouchsafe_domain::stock::CHUNK_VOUCHERS;
use vouchsafe_domain::transition::{OrderTransition, TransitionEffects};
use vouchsafe_domain::voucher::Allocation;

use super::idempotent::{COMMIT_TIMEOUT, FlowError, KEY_TIMEOUT};
use crate::engine::Engine;
use crate::idempotency::KeyStatus;
use crate::journal::{Hold, RecordOutcome, Ticket};
use crate::ports::record::{KeyClaim, OrderChange, Record, ReturnedVoucher};
use crate::supervisor::DecisionDeadline;
use crate::wallet::Funds;
use crate::wallet::purse::ReserveRequest;

/// How often a change is decided if another one is faster each time.
pub(super) const MAX_DECISIONS: u32 = 5;

/// Identifies a change by its subject and the subject's state.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChangeKey {
    pub(super) partner_id: PartnerId,
    pub(super) subject_id: Uuid,
    pub(super) expected_sequence: u32,
}

impl ChangeKey {
    fn key(self) -> KeyHash {
        let mut digest = Sha256::new();
        digest.update(b"step");
        digest.update(self.subject_id.as_bytes());
        digest.update(self.expected_sequence.to_be_bytes());
        let digest = digest.finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        KeyHash(Uuid::from_bytes(bytes))
    }

    /// The key claim of one attempt. Its fingerprint is random, so that no other attempt matches it.
    fn claim(self) -> KeyClaim {
        let mut fingerprint = [0; 32];
        fingerprint[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        fingerprint[16..].copy_from_slice(Uuid::new_v4().as_bytes());
        KeyClaim {
            key: self.key(),
            fingerprint: Fingerprint(fingerprint),
            response: Response {
                status: 200,
                body: Bytes::new(),
            },
            retention: Retention::Day,
        }
    }
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitAttempt {
    Done,
    /// Another change was faster, or a hold was stale: read again.
    Retry,
}

/// Commits a change unless another one was faster.
pub(super) async fn commit_change(
    engine: &Engine,
    change_key: ChangeKey,
    fill: impl FnOnce(Record) -> Record,
    holds: Vec<Box<dyn Hold>>,
) -> Result<CommitAttempt, FlowError> {
    // A change that the store has lost would be taken for one that another request has made.
    engine.drop_stale_caches();
    let key = match engine.keys.begin(change_key.key()) {
        KeyStatus::First(key) => key,
        KeyStatus::Known(_) => return Ok(CommitAttempt::Retry),
        KeyStatus::TooManyWaiters => return Err(FlowError::KeyInFlight),
        KeyStatus::InFlight(other) => {
            drop(holds);
            let result = timeout_at(Instant::now() + KEY_TIMEOUT, other.outcome()).await;
            return result
                .map(|_| CommitAttempt::Retry)
                .map_err(|_| FlowError::KeyInFlight);
        }
    };
    let admission = engine.journal.try_admit(change_key.partner_id);
    let admission = admission.ok_or(FlowError::Overloaded)?;
    let record = fill(Record::new(change_key.partner_id, change_key.claim()));
    let outcome = engine.journal.submit(record, holds, Ticket { key, admission });
    match timeout(COMMIT_TIMEOUT, outcome).await {
        Ok(Ok(RecordOutcome::Committed(_))) => Ok(CommitAttempt::Done),
        Ok(Ok(RecordOutcome::KeyKnown(_) | RecordOutcome::Stale(..))) => Ok(CommitAttempt::Retry),
        Ok(Ok(RecordOutcome::Poisoned)) => Err(FlowError::Poisoned),
        Ok(Ok(RecordOutcome::Busy)) => Err(FlowError::Unavailable),
        Ok(Err(_)) | Err(_) => Err(FlowError::OutcomeUnknown),
    }
}

/// A flow's decision on an order.
pub(super) enum OrderDecision {
    Unchanged(Order),
    /// Commit this transition with these holds.
    Advance(OrderTransition, Vec<Box<dyn Hold>>),
    /// Commit this transition within these caps.
    AdvanceWithin(OrderTransition, Vec<CapCheck>),
}

/// Changes an order as `decide` says and returns the order after it; `None` if the partner has no such order.
/// `audit` builds the audit entry from the order before and after.
///
/// # Errors
/// The errors of `decide`, and [`FlowError`]. Nothing was written, except possibly with
/// [`FlowError::OutcomeUnknown`].
pub(super) async fn change_order<E: From<FlowError>>(
    engine: &Engine,
    partner_id: PartnerId,
    order_id: OrderId,
    decide: impl AsyncFn(&StoredOrder, &DecisionDeadline) -> Result<OrderDecision, E>,
    audit_entry: impl Fn(&Order, &Order) -> Option<AuditEntry>,
) -> Result<Option<Order>, E> {
    let deadline = DecisionDeadline::start();
    for _ in 0..MAX_DECISIONS {
        let stored = engine.store.load_order(partner_id, order_id).await;
        let Some(stored) = stored.map_err(|error| log_unavailable(&error))? else {
            return Ok(None);
        };
        let (transition, holds, caps) = match decide(&stored, &deadline).await? {
            OrderDecision::Unchanged(order) => return Ok(Some(order)),
            OrderDecision::Advance(transition, holds) => (transition, holds, Vec::new()),
            OrderDecision::AdvanceWithin(transition, caps) => (transition, Vec::new(), caps),
        };
        let effects = transition.finish(stored.last_sequence);
        let order = effects.order.clone();
        let audit_entry = audit_entry(&stored.order, &order);
        let written = commit_transition(
            engine,
            stored.last_sequence,
            effects,
            audit_entry,
            (holds, caps),
            &deadline,
        );
        if written.await? == CommitAttempt::Done {
            return Ok(Some(order));
        }
    }
    Err(FlowError::Unavailable.into())
}

/// Commits a transition of an order as it was read, unless another change was faster.
pub(super) async fn commit_decision(
    engine: &Engine,
    stored: &StoredOrder,
    transition: OrderTransition,
    holds: Vec<Box<dyn Hold>>,
) -> Result<CommitAttempt, FlowError> {
    let effects = transition.finish(stored.last_sequence);
    let deadline = DecisionDeadline::start();
    commit_transition(
        engine,
        stored.last_sequence,
        effects,
        None,
        (holds, Vec::new()),
        &deadline,
    )
    .await
}

/// Commits a transition and notifies long polls and shelves.
async fn commit_transition(
    engine: &Engine,
    expected_sequence: u32,
    effects: TransitionEffects,
    audit_entry: Option<AuditEntry>,
    (mut holds, caps): (Vec<Box<dyn Hold>>, Vec<CapCheck>),
    deadline: &DecisionDeadline,
) -> Result<CommitAttempt, FlowError> {
    let TransitionEffects {
        order,
        issued,
        returned,
        movement,
        pending_delta,
        events,
    } = effects;
    let (order_id, partner_id) = (order.order_id, order.partner_id);
    if let Some(refund) = &movement {
        let held = ReserveRequest::Credit(refund.amount);
        let held = engine.wallets.hold(partner_id, refund.currency, held, deadline);
        match held.await? {
            Funds::Held(hold) => holds.push(Box::new(hold)),
            Funds::Refused(_) => return Err(FlowError::Poisoned),
        }
    }
    let returned = assign_stock_ids(engine, returned).await?;
    let restocked: Vec<_> = returned
        .iter()
        .map(|returned_voucher| {
            (
                returned_voucher.allocation.sku.clone(),
                returned_voucher.allocation.voucher.expiry,
            )
        })
        .collect();
    let change_key = ChangeKey {
        partner_id,
        subject_id: order_id.as_uuid(),
        expected_sequence,
    };
    let fill = |record| Record {
        change: Some(OrderChange {
            after: order,
            expected_sequence,
            issued,
            returned,
        }),
        movement,
        pending_delta,
        events: Some(events),
        audit_entry,
        caps,
        ..record
    };
    let outcome = commit_change(engine, change_key, fill, holds).await?;
    if outcome == CommitAttempt::Done {
        engine.long_polls.notify(order_id);
        for (sku, expiry) in restocked {
            engine.inventory.notify_restocked(&sku, expiry);
        }
    }
    Ok(outcome)
}

/// Assigns returned vouchers new stock rows, in chunks of neighbours.
async fn assign_stock_ids(
    engine: &Engine,
    mut vouchers: Vec<Allocation>,
) -> Result<Vec<ReturnedVoucher>, FlowError> {
    if vouchers.is_empty() {
        return Ok(Vec::new());
    }
    vouchers.sort_by(|a, b| (&a.sku, a.voucher).cmp(&(&b.sku, b.voucher)));
    let stock_ids = engine.store.allocate_stock_ids(vouchers.len()).await;
    let stock_ids = stock_ids.map_err(|error| log_unavailable(&error))?;
    Ok(group_into_chunks(vouchers, &stock_ids))
}

/// Assigns the ids in order. A chunk ends with its SKU, at a gap between ids, and when it is full.
fn group_into_chunks(vouchers: Vec<Allocation>, stock_ids: &[StockId]) -> Vec<ReturnedVoucher> {
    let mut returned: Vec<ReturnedVoucher> = Vec::with_capacity(vouchers.len());
    let max_chunk_length = i64::try_from(CHUNK_VOUCHERS).unwrap_or(i64::MAX);
    for (allocation, &stock_id) in vouchers.into_iter().zip(stock_ids) {
        let chunk_first_id = match returned.last() {
            Some(previous)
                if previous.allocation.sku == allocation.sku
                    && previous.stock_id.0 + 1 == stock_id.0
                    && stock_id.0 - previous.chunk_first_id.0 < max_chunk_length =>
            {
                previous.chunk_first_id
            }
            _ => stock_id,
        };
        returned.push(ReturnedVoucher {
            allocation,
            stock_id,
            chunk_first_id,
        });
    }
    returned
}

/// Logs a failed read and maps it to a flow error.
pub(super) fn log_unavailable(error: &vouchsafe_domain::store_error::Unavailable) -> FlowError {
    tracing::warn!(error.message = %error, "cannot read order or payout for a change");
    FlowError::Unavailable
}
