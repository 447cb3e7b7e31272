//! Summary table of a crash run: faults, responses and recovery times.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use vouchsafe_load::history::{Call, Event, EventKind, History, Op};

use crate::resolution::ReplayOutcomes;
use crate::processes::Fault;

/// Responses to order calls while the load ran.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResponseCounts {
    acknowledged: usize,
    refused: usize,
    postponed: usize,
    unavailable: usize,
    unanswered: usize,
    not_sent: usize,
}

impl ResponseCounts {
    /// Counts the order calls from this operation on.
    pub(crate) fn since(history: &History, first: u64) -> Self {
        let mut answers = Self::default();
        let ops = history
            .ops()
            .filter(|op| op.invoke.op_id >= first && op.invoke.f == Call::Order);
        ops.for_each(|op| answers.count(op));
        answers
    }

    fn count(&mut self, op: &Op) {
        let place = match op.completion.as_ref().map(|event| (event.kind, event.status)) {
            Some((EventKind::Ok, _)) => &mut self.acknowledged,
            Some((EventKind::Fail, None)) => &mut self.not_sent,
            Some((EventKind::Fail, _)) if op.completion.as_ref().is_some_and(is_in_progress) => {
                &mut self.postponed
            }
            Some((EventKind::Fail, _)) => &mut self.refused,
            Some((EventKind::Info, Some(_))) => &mut self.unavailable,
            Some((EventKind::Info | EventKind::Invoke, _)) | None => &mut self.unanswered,
        };
        *place += 1;
    }
}

fn is_in_progress(event: &Event) -> bool {
    event.code.as_deref() == Some("IDEMPOTENCY_IN_PROGRESS")
}

#[derive(Debug, Clone, Copy, Default)]
struct FaultSummary {
    rounds: usize,
    responses: ResponseCounts,
    replays: ReplayOutcomes,
    slowest: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<Fault, FaultSummary>);

impl Tally {
    pub(crate) fn add(&mut self, strike: Fault, answers: ResponseCounts, settled: ReplayOutcomes, away: Duration) {
        let line = self.0.entry(strike).or_default();
        line.rounds += 1;
        line.slowest = line.slowest.max(away);
        for (sum, more) in [
            (&mut line.responses.acknowledged, answers.acknowledged),
            (&mut line.responses.refused, answers.refused),
            (&mut line.responses.postponed, answers.postponed),
            (&mut line.responses.unavailable, answers.unavailable),
            (&mut line.responses.unanswered, answers.unanswered),
            (&mut line.responses.not_sent, answers.not_sent),
            (&mut line.replays.committed, settled.committed),
            (&mut line.replays.not_written, settled.not_written),
        ] {
            *sum += more;
        }
    }

    pub(crate) fn unused_faults(&self) -> Vec<Fault> {
        Fault::ALL
            .into_iter()
            .filter(|strike| !self.0.contains_key(strike))
            .collect()
    }

    /// Returns the sum of all replay outcomes.
    pub(crate) fn replays(&self) -> ReplayOutcomes {
        let sum = |of: fn(&ReplayOutcomes) -> usize| self.0.values().map(|line| of(&line.replays)).sum();
        ReplayOutcomes {
            committed: sum(|settled| settled.committed),
            not_written: sum(|settled| settled.not_written),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:22}{:>7}{:>7}{:>9}{:>11}{:>6}{:>11}{:>10}   {:>11}{:>13}{:>12}",
            "fault",
            "rounds",
            "acked",
            "refused",
            "409 busy",
            "5xx",
            "no response",
            "not sent",
            "committed",
            "not committed",
            "ready after"
        )?;
        for (strike, line) in &self.0 {
            let FaultSummary {
                rounds,
                responses: a,
                replays: s,
                slowest,
            } = line;
            writeln!(
                f,
                "{:22}{rounds:>7}{:>7}{:>9}{:>11}{:>6}{:>11}{:>10}   {:>11}{:>13}{:>12}",
                format!("{strike:?}"),
                a.acknowledged,
                a.refused,
                a.postponed,
                a.unavailable,
                a.unanswered,
                a.not_sent,
                s.committed,
                s.not_written,
                format!("{} ms", slowest.as_millis()),
            )?;
        }
        Ok(())
    }
}
