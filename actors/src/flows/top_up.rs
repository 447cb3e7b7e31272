//! Top-ups and balance adjustments by operators.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | acquire the reference as the key | key, admission permit | nothing |
//! | hold a debit, or check the room for a credit | hold | nothing |
//! | commit | the wallet knows its balance | ledger entry, balance, the entry's id under its reference |
//!
//! The reference is stored forever: it is never posted twice.

use async_recursion::async_recursion as boxed;
use tracing::instrument;
use vouchsafe_domain::audit_log::AuditActor;
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response, Retention};
use vouchsafe_domain::ids::{PartnerId, TransactionId};
use vouchsafe_domain::ledger::{LedgerKind, Movement};
use vouchsafe_domain::money::{Amount, Money};

use super::idempotent::{self, FlowDecision, FlowError};
use crate::engine::Engine;
use crate::ports::record::{KeyClaim, Record};
use crate::wallet::Funds;
use crate::wallet::purse::{MAX_BALANCE, ReserveRequest};
use vouchsafe_domain::spans::SPANS;

/// An operator's command to post a ledger entry.
#[derive(Debug, Clone)]
pub struct TopUp {
    pub partner_id: PartnerId,
    /// The amount; negative for an adjustment that debits.
    pub money: Money,
    pub kind: LedgerKind,
    /// The operator's reference; posted once.
    pub reference: String,
    pub operator: AuditActor,
    /// The key derived from the reference.
    pub key: KeyHash,
    /// Covers partner, kind, amount and reference.
    pub fingerprint: Fingerprint,
}

/// A committed ledger entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopUpResult {
    pub transaction_id: TransactionId,
    /// Whether an earlier command posted it.
    pub replayed: bool,
}

/// Why nothing was posted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopUpError {
    /// The balance is less than the debit. Contains the balance in minor units.
    #[error("the wallet's balance is less than the debit")]
    InsufficientBalance(Amount),
    /// The balance would exceed [`MAX_BALANCE`], or the amount overflows.
    #[error("a wallet's balance is at most {} minor units; post less, or debit the wallet first", MAX_BALANCE.minor())]
    TooLarge,
    #[error(transparent)]
    Flow(#[from] FlowError),
}

/// Posts a top-up or an adjustment, or returns the entry that its reference posted before.
///
/// # Errors
/// [`TopUpError`]. Nothing was written, except possibly with [`FlowError::OutcomeUnknown`].
#[instrument(target = SPANS, level = "debug", skip_all)]
#[boxed(?Send)]
pub async fn top_up(engine: &Engine, command: TopUp) -> Result<TopUpResult, TopUpError> {
    let Money { amount, currency } = command.money;
    let request = if amount < Amount::ZERO {
        ReserveRequest::Debit(amount.checked_neg().ok_or(TopUpError::TooLarge)?)
    } else {
        ReserveRequest::Credit(amount)
    };
    let decide = async |attempt: &idempotent::DecisionAttempt| {
        let held = engine
            .wallets
            .hold(command.partner_id, currency, request, &attempt.deadline);
        match (held.await.map_err(FlowError::from)?, request) {
            (Funds::Held(hold), _) => Ok(FlowDecision {
                record: record(&command),
                holds: vec![Box::new(hold)],
                is_refusal: false,
            }),
            (Funds::Refused(balance), ReserveRequest::Debit(_)) => {
                Err(TopUpError::InsufficientBalance(balance))
            }
            (Funds::Refused(_), ReserveRequest::Credit(_)) => Err(TopUpError::TooLarge),
        }
    };
    let keyed = idempotent::run(
        engine,
        command.partner_id,
        command.key,
        command.fingerprint,
        decide,
    )
    .await?;
    Ok(TopUpResult {
        transaction_id: parse_transaction_id(&keyed.response)?,
        replayed: keyed.replayed,
    })
}

/// The stored response is the entry's id: its balance is known only in the commit, and is read from the
/// ledger.
fn record(command: &TopUp) -> Record {
    let transaction_id = TransactionId::generate();
    let response = Response {
        status: 201,
        body: transaction_id.to_string().into(),
    };
    let claim = KeyClaim {
        key: command.key,
        fingerprint: command.fingerprint,
        response,
        retention: Retention::Forever,
    };
    let movement = Movement {
        transaction_id,
        currency: command.money.currency,
        kind: command.kind,
        amount: command.money.amount,
        order_id: None,
        payout_id: None,
        reference: Some(command.reference.clone()),
        booked_by: Some(command.operator.clone()),
    };
    Record {
        movement: Some(movement),
        ..Record::new(command.partner_id, claim)
    }
}

/// Parses the stored id. An unreadable one proves that something was posted, but not what.
fn parse_transaction_id(response: &Response) -> Result<TransactionId, FlowError> {
    let text = std::str::from_utf8(&response.body).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or(FlowError::OutcomeUnknown)
}
