//! What every flow with an idempotency key does first and last: take the key, or give the answer that was given.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | begin | the key is taken, one admission is taken | nothing |
//! | (the flow decides) | holds | nothing |
//! | finish | the lane has record, holds, key and admission | the record, or nothing |
//!
//! Rule (contract §5): a replay is not decided on today's world. Whoever runs at the same time is waited for; what was
//! answered lately is answered from memory; and before anything is refused, the key is looked up in the store.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::answer::{Answer, Fingerprint, KeyHash, KnownAnswer};
use crate::engine::Engine;
use crate::journal::{Hold, Outcome, Record, Ticket};
use crate::keys::{Begun, Ended};

/// How long a request waits for the one that came first with its key (contract §5).
const KEY_PATIENCE: Duration = Duration::from_secs(2);

/// How long a request waits for its commit. Long enough for a slow disk, short enough that a client hears of it; the
/// record goes on without it, and the key answers "in progress" until its fate is known.
const COMMIT_PATIENCE: Duration = Duration::from_secs(10);

/// Whose turn it is.
pub(super) enum Turn {
    /// This request runs.
    Run(Ticket),
    /// It was answered before.
    Answered(Answer),
}

/// Why a request with a key got no answer that is kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// The key was used with another request.
    #[error("this Idempotency-Key was used with another request; use a new key for a new request")]
    KeyReused,
    /// The request that came first with this key is still under way.
    #[error("the first request with this Idempotency-Key is still under way; send the same request again")]
    KeyBusy,
    /// Too much is under way.
    #[error("too many requests are under way; send the same request again")]
    Overloaded,
    /// Nothing was done, for a reason that passes.
    #[error("the service cannot decide now; send the same request again")]
    Unavailable,
    /// It was handed to the disk, and nobody can say yet what became of it.
    #[error("the outcome is not known yet; send the same request with the same Idempotency-Key again")]
    OutcomeUnknown,
    /// It cannot be written. Nothing was done.
    #[error("the request could not be stored, nothing was done")]
    Poisoned,
}

/// How a record that was submitted ended, where it ended.
pub(super) enum Finished {
    /// With the answer of this record.
    Committed(Answer),
    /// With the answer that was given before.
    Replayed(Answer),
    /// Undecided: decide again.
    Stale(Ticket),
}

/// Takes the key, or says what it was answered.
pub(super) async fn begin(engine: &Engine, key: KeyHash, request: Fingerprint) -> Result<Turn, Unanswered> {
    let patience_ends = Instant::now() + KEY_PATIENCE;
    loop {
        let waiter = match engine.keys.begin(key) {
            Begun::Known(known) => return replay(known, request).map(Turn::Answered),
            Begun::First(guard) => {
                let admission = Arc::clone(&engine.admission).try_acquire_owned();
                let admission = admission.map_err(|_| Unanswered::Overloaded)?;
                return Ok(Turn::Run(Ticket {
                    key: guard,
                    admission,
                }));
            }
            Begun::Running(waiter) => waiter,
            Begun::Crowded => return Err(Unanswered::KeyBusy),
        };
        match tokio::time::timeout_at(patience_ends, waiter.ended()).await {
            Ok(Ended::Kept(known)) => return replay(known, request).map(Turn::Answered),
            Ok(Ended::Unkept) => {}
            Err(_) => return Err(Unanswered::KeyBusy),
        }
    }
}

/// Looks the key up in the store before something is refused: the answer that was given before, or the ticket back.
pub(super) async fn look_up(
    engine: &Engine,
    ticket: Ticket,
    request: Fingerprint,
) -> Result<Turn, Unanswered> {
    match engine.store.find_answer(ticket.key.key()).await {
        Ok(None) => Ok(Turn::Run(ticket)),
        Ok(Some(known)) => {
            ticket.key.found(known.clone());
            replay(known, request).map(Turn::Answered)
        }
        Err(error) => {
            tracing::warn!(%error, "a key cannot be looked up");
            Err(Unanswered::Unavailable)
        }
    }
}

/// Hands the record over and waits for its fate.
pub(super) async fn finish(
    engine: &Engine,
    record: Record,
    holds: Vec<Box<dyn Hold>>,
    ticket: Ticket,
) -> Result<Finished, Unanswered> {
    let request = record.claim.fingerprint;
    let outcome = engine.journal.submit(record, holds, ticket);
    match tokio::time::timeout(COMMIT_PATIENCE, outcome).await {
        Ok(Ok(Outcome::Committed(answer))) => Ok(Finished::Committed(answer)),
        Ok(Ok(Outcome::KeyKnown(known))) => replay(known, request).map(Finished::Replayed),
        Ok(Ok(Outcome::Stale(_, ticket))) => Ok(Finished::Stale(ticket)),
        Ok(Ok(Outcome::Poisoned)) => Err(Unanswered::Poisoned),
        Ok(Ok(Outcome::Busy)) => Err(Unanswered::Unavailable),
        // The lane is gone, and what was under way in it with it: the next start finds out.
        Ok(Err(_)) | Err(_) => Err(Unanswered::OutcomeUnknown),
    }
}

fn replay(known: KnownAnswer, request: Fingerprint) -> Result<Answer, Unanswered> {
    if known.fingerprint == request {
        Ok(known.answer)
    } else {
        Err(Unanswered::KeyReused)
    }
}
