//! Payouts: the wallet is debited at acceptance; an operator pays the payout or reverses it, or the partner
//! cancels it.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | acquire the key, hold the money | key, admission permit, hold | nothing |
//! | commit | the wallet knows its balance | payout, ledger entry, response under its key |
//! | an operator or the partner decides | hold, if money is returned | the payout's final status and its reversal |
//!
//! A payout is decided once: the commit finds it pending or writes nothing.

use async_recursion::async_recursion as boxed;
use vouchsafe_domain::audit::AuditEntry;
use vouchsafe_domain::audit_log::AuditActor;
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response, Retention};
use vouchsafe_domain::ids::{PartnerId, PayoutId, TransactionId};
use vouchsafe_domain::ledger::{LedgerKind, Movement, PendingDelta};
use vouchsafe_domain::money::{Amount, Money};
use vouchsafe_domain::order::Actor;
use vouchsafe_domain::payout::{
    Payout, PayoutDecision, PayoutDestination, PayoutMilestone, PayoutOutcome, PayoutStatus,
};

use super::change::{self, ChangeKey, CommitAttempt};
use super::idempotent::{self, FlowDecision, FlowError};
use crate::engine::Engine;
use crate::flows::place_order::IdempotentResponse;
use crate::journal::Hold;
use crate::ports::record::{KeyClaim, PayoutChange, Record};
use crate::supervisor::DecisionDeadline;
use crate::wallet::Funds;
use crate::wallet::purse::ReserveRequest;

/// A partner's command to request a payout.
#[derive(Debug, Clone)]
pub struct RequestPayout {
    pub partner_id: PartnerId,
    pub key: KeyHash,
    /// Fingerprint of the request that the key belongs to.
    pub fingerprint: Fingerprint,
    pub money: Money,
    pub destination: PayoutDestination,
    pub reference: Option<String>,
}

/// Encodes the responses to a payout; the engine stores their bytes without interpreting them.
pub trait PayoutResponseEncoder {
    /// The response to an accepted payout.
    fn accepted(&self, payout: &Payout) -> Response;

    /// The response if the balance is too low.
    fn insufficient_funds(&self, needed: Money, available: Amount) -> Response;
}

/// Requests a payout, or replays the response stored under its key.
///
/// # Errors
/// [`FlowError`].
#[boxed(?Send)]
pub async fn request_payout(
    engine: &Engine,
    command: RequestPayout,
    encoder: &dyn PayoutResponseEncoder,
) -> Result<IdempotentResponse, FlowError> {
    let decide = async |attempt: &idempotent::DecisionAttempt| {
        let Money { amount, currency } = command.money;
        let held = engine.wallets.hold(
            command.partner_id,
            currency,
            ReserveRequest::Debit(amount),
            &attempt.deadline,
        );
        Ok::<_, FlowError>(match held.await? {
            Funds::Held(hold) => FlowDecision {
                record: payout_record(&command, engine.clock.now(), encoder),
                holds: vec![Box::new(hold)],
                is_refusal: false,
            },
            Funds::Refused(available) => FlowDecision {
                record: response_record(&command, encoder.insufficient_funds(command.money, available)),
                holds: Vec::new(),
                is_refusal: true,
            },
        })
    };
    let keyed = idempotent::run(
        engine,
        command.partner_id,
        command.key,
        command.fingerprint,
        decide,
    )
    .await?;
    Ok(if keyed.replayed {
        IdempotentResponse::Replayed(keyed.response)
    } else {
        IdempotentResponse::Fresh(keyed.response)
    })
}

fn payout_record(
    command: &RequestPayout,
    at: time::OffsetDateTime,
    encoder: &dyn PayoutResponseEncoder,
) -> Record {
    let payout = Payout {
        payout_id: PayoutId::generate(),
        partner_id: command.partner_id,
        status: PayoutStatus::Pending,
        money: command.money,
        destination: command.destination.clone(),
        reference: command.reference.clone(),
        timeline: vec![PayoutMilestone {
            status: PayoutStatus::Pending,
            at,
            by: Actor::Partner,
            reason: None,
            reference: None,
        }],
        created_at: at,
        updated_at: at,
    };
    Record {
        movement: Some(movement(&payout, LedgerKind::Payout)),
        pending_delta: Some(pending_delta(&payout, payout.money.amount)),
        payout: Some(PayoutChange::Requested(payout.clone())),
        ..response_record(command, encoder.accepted(&payout))
    }
}

fn response_record(command: &RequestPayout, response: Response) -> Record {
    let claim = KeyClaim {
        key: command.key,
        fingerprint: command.fingerprint,
        response,
        retention: Retention::Day,
    };
    Record::new(command.partner_id, claim)
}

/// A command to decide a payout, of an operator or of its partner.
#[derive(Debug, Clone)]
pub struct DecidePayout {
    pub partner_id: PartnerId,
    pub payout_id: PayoutId,
    pub decision: PayoutDecision,
    pub author: AuditActor,
}

/// Why a payout was not decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecidePayoutError {
    #[error("payout not found")]
    NotFound,
    /// It was decided before.
    #[error("the payout is already {}", .0.into_str())]
    AlreadyDecided(PayoutStatus),
    #[error(transparent)]
    Flow(#[from] FlowError),
}

/// Marks a payout as paid, or returns its money. A repeated cancellation returns the cancelled payout.
///
/// # Errors
/// [`DecidePayoutError`]. Nothing was written, except possibly with [`FlowError::OutcomeUnknown`].
#[boxed(?Send)]
pub async fn decide_payout(engine: &Engine, command: DecidePayout) -> Result<Payout, DecidePayoutError> {
    let deadline = DecisionDeadline::start();
    for _ in 0..change::MAX_DECISIONS {
        let stored = engine
            .store
            .load_payout(command.partner_id, command.payout_id)
            .await;
        let stored = stored.map_err(|error| change::log_unavailable(&error))?;
        let before = stored.ok_or(DecidePayoutError::NotFound)?;
        if command.decision.outcome == PayoutOutcome::Cancelled && before.is_cancelled() {
            return Ok(before);
        }
        if before.status != PayoutStatus::Pending {
            return Err(DecidePayoutError::AlreadyDecided(before.status));
        }
        let payout = before
            .clone()
            .apply_decision(command.decision.clone(), engine.clock.now());
        let audit_entry = AuditEntry::on_payout(&command.author, &command.decision, &before, &payout);
        if commit_decision(engine, payout.clone(), audit_entry, &deadline).await? == CommitAttempt::Done {
            return Ok(payout);
        }
    }
    Err(FlowError::Unavailable.into())
}

async fn commit_decision(
    engine: &Engine,
    payout: Payout,
    audit_entry: AuditEntry,
    deadline: &DecisionDeadline,
) -> Result<CommitAttempt, FlowError> {
    let mut holds: Vec<Box<dyn Hold>> = Vec::new();
    let mut reversal = None;
    if payout.status != PayoutStatus::Paid {
        let Money { amount, currency } = payout.money;
        let held = engine.wallets.hold(
            payout.partner_id,
            currency,
            ReserveRequest::Credit(amount),
            deadline,
        );
        match held.await? {
            Funds::Held(hold) => holds.push(Box::new(hold)),
            Funds::Refused(_) => return Err(FlowError::Poisoned),
        }
        reversal = Some(movement(&payout, LedgerKind::PayoutReversal));
    }
    let step = ChangeKey {
        partner_id: payout.partner_id,
        subject_id: payout.payout_id.as_uuid(),
        expected_sequence: 0,
    };
    let fill = |record| Record {
        movement: reversal,
        pending_delta: Some(pending_delta(&payout, negate(payout.money.amount))),
        payout: Some(PayoutChange::Decided(payout)),
        audit_entry: Some(audit_entry),
        ..record
    };
    change::commit_change(engine, step, fill, holds).await
}

fn movement(payout: &Payout, kind: LedgerKind) -> Movement {
    let amount = payout.money.amount;
    Movement {
        transaction_id: TransactionId::generate(),
        currency: payout.money.currency,
        kind,
        amount: if kind == LedgerKind::Payout {
            negate(amount)
        } else {
            amount
        },
        order_id: None,
        payout_id: Some(payout.payout_id),
        reference: payout.reference.clone(),
        booked_by: None,
    }
}

fn pending_delta(payout: &Payout, payouts: Amount) -> PendingDelta {
    PendingDelta {
        currency: payout.money.currency,
        orders: Amount::ZERO,
        payouts,
    }
}

/// Cannot overflow: `amount` is positive.
const fn negate(amount: Amount) -> Amount {
    Amount::from_minor(-amount.minor())
}
