//! Summary table of a crash run: faults, responses and recovery times.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::history::{Call, Event, EventKind, History, Op};

use crate::processes::Fault;
use crate::resolution::ReplayOutcomes;

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
        let mut responses = Self::default();
        let ops = history
            .ops()
            .filter(|op| op.invoke.op_id >= first && op.invoke.f == Call::Order);
        ops.for_each(|op| responses.count(op));
        responses
    }

    fn count(&mut self, op: &Op) {
        let counter = match op.completion.as_ref().map(|event| (event.kind, event.status)) {
            Some((EventKind::Ok, _)) => &mut self.acknowledged,
            Some((EventKind::Fail, None)) => &mut self.not_sent,
            Some((EventKind::Fail, _)) if op.completion.as_ref().is_some_and(is_in_progress) => {
                &mut self.postponed
            }
            Some((EventKind::Fail, _)) => &mut self.refused,
            Some((EventKind::Info, Some(_))) => &mut self.unavailable,
            Some((EventKind::Info | EventKind::Invoke, _)) | None => &mut self.unanswered,
        };
        *counter += 1;
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
    pub(crate) fn add(
        &mut self,
        fault: Fault,
        responses: ResponseCounts,
        replays: ReplayOutcomes,
        downtime: Duration,
    ) {
        let summary = self.0.entry(fault).or_default();
        summary.rounds += 1;
        summary.slowest = summary.slowest.max(downtime);
        for (sum, more) in [
            (&mut summary.responses.acknowledged, responses.acknowledged),
            (&mut summary.responses.refused, responses.refused),
            (&mut summary.responses.postponed, responses.postponed),
            (&mut summary.responses.unavailable, responses.unavailable),
            (&mut summary.responses.unanswered, responses.unanswered),
            (&mut summary.responses.not_sent, responses.not_sent),
            (&mut summary.replays.committed, replays.committed),
            (&mut summary.replays.not_written, replays.not_written),
        ] {
            *sum += more;
        }
    }

    pub(crate) fn unused_faults(&self) -> Vec<Fault> {
        Fault::ALL
            .into_iter()
            .filter(|fault| !self.0.contains_key(fault))
            .collect()
    }

    /// Returns the sum of all replay outcomes.
    pub(crate) fn replays(&self) -> ReplayOutcomes {
        let sum =
            |of: fn(&ReplayOutcomes) -> usize| self.0.values().map(|summary| of(&summary.replays)).sum();
        ReplayOutcomes {
            committed: sum(|replays| replays.committed),
            not_written: sum(|replays| replays.not_written),
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
        for (fault, summary) in &self.0 {
            let FaultSummary {
                rounds,
                responses: a,
                replays: s,
                slowest,
            } = summary;
            writeln!(
                f,
                "{:22}{rounds:>7}{:>7}{:>9}{:>11}{:>6}{:>11}{:>10}   {:>11}{:>13}{:>12}",
                format!("{fault:?}"),
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
