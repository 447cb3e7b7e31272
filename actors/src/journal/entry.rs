//! A record on its way to the disk, with everything that waits for its fate.
//!
//! Rule: holds, key and admission are moved in here and live as long as the record's fate is open; the request that sent
//! it may go away at any time.

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::Span;

use super::record::{Record, Stale, Verdict};
use crate::domain::answer::KnownAnswer;
use crate::domain::ledger::Receipt;
use crate::keys::KeyGuard;

/// Something in memory that was set aside for a record. Dropping it gives it back.
pub trait Hold: Send {
    /// The record is durable; `receipt` is the newest state of the wallet it moved money in.
    fn settle(self: Box<Self>, receipt: Option<Receipt>);

    /// The commit found that what the record rested on is no longer so.
    fn refute(self: Box<Self>, stale: Stale);
}

/// What lives as long as a record's fate is open: its key, and its place among the admitted.
#[derive(Debug)]
pub struct Ticket {
    /// The key that is being answered.
    pub key: KeyGuard,
    /// One of the places that bound how much is open at once.
    pub admission: OwnedSemaphorePermit,
}

/// How it ended, for the flow that submitted it.
#[derive(Debug)]
pub enum Outcome {
    /// It is durable. It comes back, with its answer, to be freed by the thread that made it: another one's memory is dear
    /// to free.
    Committed(Box<Record>),
    /// Its key was known, with this answer.
    KeyKnown(KnownAnswer),
    /// Nothing was written, decide again; the ticket comes back for that.
    Stale(Stale, Ticket),
    /// Nothing was written, and writing it again would fail again.
    Poisoned,
    /// Nothing was written, for a reason that passes.
    Busy,
}

/// A record that was submitted.
pub(super) struct Entry {
    pub(super) record: Record,
    pub(super) open: Open,
}

/// What waits for the record's fate.
pub(super) struct Open {
    pub(super) holds: Vec<Box<dyn Hold>>,
    pub(super) ticket: Ticket,
    pub(super) reply: oneshot::Sender<Outcome>,
    /// The request that submitted it, as log lines show it.
    pub(super) span: Span,
    /// From here to the verdict.
    pub(super) commit: Span,
}

impl Open {
    /// Whether the flow has stopped waiting.
    pub(super) fn abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    /// Which batch of its lane had the record, and how large it was.
    pub(super) fn was_in(&self, batch: i64, records: i64) {
        self.commit.record("batch.number", batch);
        self.commit.record("batch.records", records);
    }

    /// The batch committed and said this of the record.
    pub(super) fn settle(self, record: Record, verdict: Verdict) {
        let Self {
            holds,
            ticket,
            reply,
            span,
            commit,
        } = self;
        let _about_it = span.enter();
        commit.record("verdict", verdict.word());
        drop(commit);
        let outcome = match verdict {
            Verdict::Committed(receipt) => {
                holds.into_iter().for_each(|hold| hold.settle(receipt));
                let known = KnownAnswer {
                    fingerprint: record.claim.fingerprint,
                    answer: record.claim.answer.clone(),
                };
                ticket.key.keep(known);
                Outcome::Committed(Box::new(record))
            }
            Verdict::KeyKnown(known) => {
                drop(holds);
                ticket.key.found(known.clone());
                Outcome::KeyKnown(known)
            }
            Verdict::Stale(stale) => {
                holds.into_iter().for_each(|hold| hold.refute(stale));
                Outcome::Stale(stale, ticket)
            }
        };
        // A flow that no longer waits has nothing to lose: what is durable is found under its key.
        drop(reply.send(outcome));
    }

    /// The record was not written, for certain: holds and key are free before the flow hears of it.
    pub(super) fn give_up(self, outcome: Outcome) {
        let Self {
            holds,
            ticket,
            reply,
            span,
            commit,
        } = self;
        let _about_it = span.enter();
        commit.record("verdict", "not_written");
        drop(commit);
        drop((holds, ticket));
        drop(reply.send(outcome));
    }
}
