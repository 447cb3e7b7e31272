//! What every flow with an idempotency key does: take the key or give the answer that was given, decide, make it durable,
//! and decide again when the world has moved on.
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
use crate::journal::{Hold, Outcome, Record, Stale, Ticket};
use crate::keys::{Begun, Ended};
use crate::supervisor::{Patience, Undecided};

/// How often a request is decided when its commit finds each time that the world has moved on.
const MAX_DECISIONS: u32 = 3;

/// How long a request waits for the one that came first with its key (contract §5).
pub(super) const KEY_PATIENCE: Duration = Duration::from_secs(2);

/// How long a request waits for its commit. Long enough for a slow disk, short enough that a client hears of it; the
/// record goes on without it, and the key answers "in progress" until its fate is known.
pub(super) const COMMIT_PATIENCE: Duration = Duration::from_secs(10);

/// The answer under a key.
pub(super) struct Given {
    pub(super) answer: Answer,
    /// Whether it was given before.
    pub(super) replayed: bool,
}

/// What a flow has decided, to be made durable.
pub(super) struct Decided {
    pub(super) record: Record,
    /// What it rests on.
    pub(super) holds: Vec<Box<dyn Hold>>,
    /// Whether the record is a refusal, which is kept only if the key was not answered before.
    pub(super) refuses: bool,
}

/// What a flow decides under.
pub(super) struct Attempt {
    /// How long it may wait for decisions, over all attempts.
    pub(super) patience: Patience,
    /// How often a commit has found vouchers gone that it rested on.
    pub(super) refuted_stock: u32,
}

/// Whose turn it is.
enum Turn {
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
enum Finished {
    /// With the answer of this record.
    Committed(Answer),
    /// With the answer that was given before.
    Replayed(Answer),
    Stale(Stale, Ticket),
}

impl From<Undecided> for Unanswered {
    fn from(_: Undecided) -> Self {
        Self::Unavailable
    }
}

/// Answers the request that has this key: as before, or by what `decide` says. What it refuses with an error is kept
/// nowhere.
///
/// # Errors
/// Those of `decide`, and [`Unanswered`]; then nothing was written, or it says that this is not known yet.
pub(super) async fn answer<E: From<Unanswered>>(
    engine: &Engine,
    key: KeyHash,
    request: Fingerprint,
    decide: impl AsyncFn(&Attempt) -> Result<Decided, E>,
) -> Result<Given, E> {
    let mut ticket = match begin(engine, key, request).await? {
        Turn::Answered(answer) => return Ok(Given::before(answer)),
        Turn::Run(ticket) => ticket,
    };
    let mut attempt = Attempt {
        patience: Patience::begin(),
        refuted_stock: 0,
    };
    for _ in 0..MAX_DECISIONS {
        let decided = decide(&attempt).await;
        if decided.as_ref().map_or(true, |decided| decided.refuses) {
            ticket = match look_up(engine, ticket, request).await? {
                Turn::Answered(answer) => return Ok(Given::before(answer)),
                Turn::Run(same) => same,
            };
        }
        let Decided { record, holds, .. } = decided?;
        ticket = match finish(engine, record, holds, ticket).await? {
            Finished::Committed(answer) => return Ok(Given::now(answer)),
            Finished::Replayed(answer) => return Ok(Given::before(answer)),
            Finished::Stale(stale, same) => {
                attempt.refuted_stock += u32::from(stale.doubts_stock());
                same
            }
        };
    }
    match look_up(engine, ticket, request).await? {
        Turn::Answered(answer) => Ok(Given::before(answer)),
        Turn::Run(_) => Err(Unanswered::Unavailable.into()),
    }
}

impl Given {
    const fn now(answer: Answer) -> Self {
        Self {
            answer,
            replayed: false,
        }
    }

    const fn before(answer: Answer) -> Self {
        Self {
            answer,
            replayed: true,
        }
    }
}

/// Takes the key, or says what it was answered.
async fn begin(engine: &Engine, key: KeyHash, request: Fingerprint) -> Result<Turn, Unanswered> {
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
async fn look_up(engine: &Engine, ticket: Ticket, request: Fingerprint) -> Result<Turn, Unanswered> {
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
async fn finish(
    engine: &Engine,
    record: Record,
    holds: Vec<Box<dyn Hold>>,
    ticket: Ticket,
) -> Result<Finished, Unanswered> {
    let request = record.claim.fingerprint;
    let outcome = engine.journal.submit(record, holds, ticket);
    match tokio::time::timeout(COMMIT_PATIENCE, outcome).await {
        Ok(Ok(Outcome::Committed(record))) => Ok(Finished::Committed(record.claim.answer)),
        Ok(Ok(Outcome::KeyKnown(known))) => replay(known, request).map(Finished::Replayed),
        Ok(Ok(Outcome::Stale(stale, ticket))) => Ok(Finished::Stale(stale, ticket)),
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
