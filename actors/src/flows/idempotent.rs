//! Idempotent execution: acquire the key or replay its response, decide, commit, and decide again after a
//! conflict.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | acquire the key | key, admission permit | nothing |
//! | (the flow decides) | holds | nothing |
//! | commit | the lane owns record, holds, key and permit | the record, or nothing |
//!
//! A replay is not decided on current state (contract §5): a concurrent request with the same key is waited
//! for, a recent response comes from the cache, and before any refusal the key is looked up in the store.

use std::time::Duration;

use tokio::time::Instant;
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response, StoredResponse};
use vouchsafe_domain::ids::PartnerId;

use crate::engine::Engine;
use crate::idempotency::{KeyOutcome, KeyStatus};
use crate::journal::{Hold, RecordOutcome, Ticket};
use crate::ports::record::{Record, StaleReason};
use crate::supervisor::{DecisionDeadline, DecisionError};

/// How often a request is decided if each commit finds a conflict.
const MAX_DECISIONS: u32 = 4;

/// How long a request waits for an earlier one with its key (contract §5).
pub(super) const KEY_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a request waits for its commit: long enough for a slow disk, short enough for a client. After
/// that the record continues without it, and the key is reported as in progress until its outcome is known.
pub(super) const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The response stored under a key.
pub(super) struct KeyedResponse {
    pub(super) response: Response,
    /// Whether it was stored by an earlier request.
    pub(super) replayed: bool,
}

/// A flow's decision, ready to commit.
pub(super) struct FlowDecision {
    pub(super) record: Record,
    /// The holds it rests on.
    pub(super) holds: Vec<Box<dyn Hold>>,
    /// Whether the record is a refusal, which is stored only if the key has no response yet.
    pub(super) is_refusal: bool,
}

/// The circumstances of a decision.
pub(super) struct DecisionAttempt {
    /// Bounds the wait for actors over all attempts.
    pub(super) deadline: DecisionDeadline,
    /// How often a commit found that held vouchers were gone.
    pub(super) stock_conflicts: u32,
    /// How often a commit found a cap of the partner exceeded.
    pub(super) cap_conflicts: u32,
}

/// The state of an acquired key.
enum KeyState {
    Run(Ticket),
    /// An earlier request stored this response.
    Answered(Response),
}

/// Why a flow has no stored response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// The key was used with another request.
    #[error("this Idempotency-Key was used with another request; use a new key for a new request")]
    KeyReused,
    /// An earlier request with this key is in flight.
    #[error("an earlier request with this Idempotency-Key is in progress; send the same request again")]
    KeyInFlight,
    /// Too many records of the partner's lane are in flight.
    #[error("too many requests are in progress; send the same request again")]
    Overloaded,
    /// Nothing was done because of a transient condition.
    #[error("the service cannot decide now; send the same request again")]
    Unavailable,
    /// The vouchers that the order needs are quarantined. Nothing was done.
    #[error("the vouchers of this order are held back for a check; send the same request again later")]
    StockQuarantined,
    /// The record was submitted, and its outcome is not known yet.
    #[error("the outcome is not known yet; send the same request with the same Idempotency-Key again")]
    OutcomeUnknown,
    /// The record cannot be written; nothing was done.
    #[error("the request could not be stored and had no effect; contact support")]
    Poisoned,
}

/// The outcome of a submitted record.
enum CommitResult {
    /// This record's response was stored.
    Committed(Response),
    /// The key had an earlier response.
    Replayed(Response),
    Stale(StaleReason, Ticket),
}

impl From<DecisionError> for FlowError {
    fn from(_: DecisionError) -> Self {
        Self::Unavailable
    }
}

/// Runs `decide` under an idempotency key, or replays the stored response. An error of `decide` is not
/// stored.
///
/// # Errors
/// The errors of `decide`, and [`FlowError`]. Nothing was written, except possibly with
/// [`FlowError::OutcomeUnknown`].
pub(super) async fn run<E: From<FlowError>>(
    engine: &Engine,
    partner_id: PartnerId,
    key: KeyHash,
    request: Fingerprint,
    decide: impl AsyncFn(&DecisionAttempt) -> Result<FlowDecision, E>,
) -> Result<KeyedResponse, E> {
    engine.drop_stale_caches();
    let mut ticket = match acquire_key(engine, partner_id, key, request).await? {
        KeyState::Answered(response) => return Ok(KeyedResponse::replayed(response)),
        KeyState::Run(ticket) => ticket,
    };
    let mut attempt = DecisionAttempt {
        deadline: DecisionDeadline::start(),
        stock_conflicts: 0,
        cap_conflicts: 0,
    };
    for _ in 0..MAX_DECISIONS {
        let decision = decide(&attempt).await;
        if decision.as_ref().map_or(true, |decision| decision.is_refusal) {
            ticket = match find_stored_response(engine, ticket, request).await? {
                KeyState::Answered(response) => return Ok(KeyedResponse::replayed(response)),
                KeyState::Run(returned) => returned,
            };
        }
        let FlowDecision { record, holds, .. } = decision?;
        ticket = match commit(engine, record, holds, ticket, request).await? {
            CommitResult::Committed(response) => return Ok(KeyedResponse::fresh(response)),
            CommitResult::Replayed(response) => return Ok(KeyedResponse::replayed(response)),
            CommitResult::Stale(stale, returned) => {
                if stale == StaleReason::Cap && attempt.cap_conflicts == 0 {
                    // The counters are read only now, and the commit may have taken as long as all decisions
                    // may.
                    attempt.deadline = DecisionDeadline::start();
                }
                attempt.stock_conflicts += u32::from(stale.is_stock_suspect());
                attempt.cap_conflicts += u32::from(stale == StaleReason::Cap);
                returned
            }
        };
    }
    match find_stored_response(engine, ticket, request).await? {
        KeyState::Answered(response) => Ok(KeyedResponse::replayed(response)),
        KeyState::Run(_) => Err(FlowError::Unavailable.into()),
    }
}

impl KeyedResponse {
    const fn fresh(response: Response) -> Self {
        Self {
            response,
            replayed: false,
        }
    }

    const fn replayed(response: Response) -> Self {
        Self {
            response,
            replayed: true,
        }
    }
}

/// Acquires the key, or replays its response.
async fn acquire_key(
    engine: &Engine,
    partner_id: PartnerId,
    key: KeyHash,
    request: Fingerprint,
) -> Result<KeyState, FlowError> {
    let deadline = Instant::now() + KEY_TIMEOUT;
    loop {
        let waiter = match engine.keys.begin(key) {
            KeyStatus::Known(stored) => return replay(stored, request).map(KeyState::Answered),
            KeyStatus::First(guard) => {
                let admission = engine.journal.try_admit(partner_id);
                let admission = admission.ok_or(FlowError::Overloaded)?;
                return Ok(KeyState::Run(Ticket {
                    key: guard,
                    admission,
                }));
            }
            KeyStatus::InFlight(waiter) => waiter,
            KeyStatus::TooManyWaiters => return Err(FlowError::KeyInFlight),
        };
        match tokio::time::timeout_at(deadline, waiter.outcome()).await {
            Ok(KeyOutcome::Stored(stored)) => return replay(stored, request).map(KeyState::Answered),
            Ok(KeyOutcome::Released) => {}
            Err(_) => return Err(FlowError::KeyInFlight),
        }
    }
}

/// Looks the key up in the store before a refusal: returns the stored response, or the ticket.
async fn find_stored_response(
    engine: &Engine,
    ticket: Ticket,
    request: Fingerprint,
) -> Result<KeyState, FlowError> {
    match engine.store.find_response(ticket.key.key()).await {
        Ok(None) => Ok(KeyState::Run(ticket)),
        Ok(Some(stored)) => {
            ticket.key.resolve(stored.clone());
            replay(stored, request).map(KeyState::Answered)
        }
        Err(error) => {
            tracing::warn!(error.message = %error, "cannot look up idempotency key");
            Err(FlowError::Unavailable)
        }
    }
}

/// Submits the record and waits for its outcome.
async fn commit(
    engine: &Engine,
    record: Record,
    holds: Vec<Box<dyn Hold>>,
    ticket: Ticket,
    request: Fingerprint,
) -> Result<CommitResult, FlowError> {
    let outcome = engine.journal.submit(record, holds, ticket);
    match tokio::time::timeout(COMMIT_TIMEOUT, outcome).await {
        Ok(Ok(RecordOutcome::Committed(record))) => Ok(CommitResult::Committed(record.claim.response)),
        Ok(Ok(RecordOutcome::KeyKnown(stored))) => replay(stored, request).map(CommitResult::Replayed),
        Ok(Ok(RecordOutcome::Stale(stale, ticket))) => Ok(CommitResult::Stale(stale, ticket)),
        Ok(Ok(RecordOutcome::Poisoned)) => Err(FlowError::Poisoned),
        Ok(Ok(RecordOutcome::Busy)) => Err(FlowError::Unavailable),
        // The lane ended or the wait timed out; the outcome is resolved later.
        Ok(Err(_)) | Err(_) => Err(FlowError::OutcomeUnknown),
    }
}

fn replay(stored: StoredResponse, request: Fingerprint) -> Result<Response, FlowError> {
    if stored.fingerprint == request {
        Ok(stored.response)
    } else {
        Err(FlowError::KeyReused)
    }
}
