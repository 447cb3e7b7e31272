//! Evaluation of a partner's observations, check by check. Pure.
//!
//! A partner may repeat a trial; the newest decided trial counts, until the certification is passed.
//! Undecided trials and observations outside a trial are ignored.

use std::collections::HashMap;

use strum::VariantArray as _;
use time::{Duration, OffsetDateTime};
use vouchsafe_domain::certification::check::Check;
use vouchsafe_domain::certification::observation::{Observation, ObservationKind, RequestHash};
use vouchsafe_domain::certification::result::{CertificationResult, CheckResult, CheckState, CheckWarning};
use vouchsafe_domain::ids::OrderId;

use super::session::Pause;

/// Within this time the same order under another key counts as a client that abandoned the first key; later
/// it is a new order.
pub const SAME_ORDER_WINDOW: Duration = Duration::minutes(10);

/// How long after its delivery the codes of an order may be fetched again: longer than any sensible polling
/// interval.
pub const REFETCH_WINDOW: Duration = Duration::minutes(10);

/// Reason of a check that passed in a trial that is no longer stored.
const FORMER_PASS: &str = "the check was passed before";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TrialOutcome {
    passed: bool,
    at: OffsetDateTime,
    reason: &'static str,
}

/// Evaluates the certification by the observations until `now`, oldest first.
///
/// The newest decided trial of a check counts, until all checks are passed at the same time. From then on the
/// certification stays passed, and failed trials are warnings.
#[must_use]
pub fn evaluate(observations: &[Observation], now: OffsetDateTime) -> CertificationResult {
    let trials = Check::VARIANTS
        .iter()
        .map(|check| (*check, decided_trials(*check, observations, now)));
    let trials: Vec<(Check, Vec<TrialOutcome>)> = trials.collect();
    let stored = observations
        .iter()
        .find(|observation| observation.kind == ObservationKind::CertificationPassed);
    let first_passed_at = [stored.map(|observation| observation.at), first_pass(&trials)];
    let first_passed_at = first_passed_at.into_iter().flatten().min();
    let results = trials.iter().map(|(check, outcomes)| match first_passed_at {
        None => check_result(*check, outcomes.last().copied()),
        Some(at) => check_result(
            *check,
            Some(
                outcomes
                    .iter()
                    .rfind(|outcome| outcome.passed)
                    .copied()
                    .unwrap_or(passed(at, FORMER_PASS)),
            ),
        ),
    });
    let warnings = trials.iter().filter_map(|(check, outcomes)| {
        let newest = outcomes
            .last()
            .filter(|outcome| !outcome.passed && first_passed_at.is_some())?;
        Some(CheckWarning {
            check: *check,
            at: newest.at,
            reason: newest.reason,
        })
    });
    CertificationResult {
        first_passed_at,
        checks: results.collect(),
        warnings: warnings.collect(),
    }
}

fn decided_trials(check: Check, observations: &[Observation], now: OffsetDateTime) -> Vec<TrialOutcome> {
    let trials = match check {
        Check::LostResponse => lost_response_trials(observations),
        Check::WrongSignature => wrong_signature_trials(observations),
        Check::PartialCodes => partial_code_trials(observations, now),
        Check::RateLimit => pause_trials(observations, now),
        Check::WebhookSignature => webhook_test_trials(observations),
        Check::DuplicateEvent => duplicate_event_trials(observations),
    };
    trials.into_iter().flatten().collect()
}

/// The first time at which the newest decided trial of each check was passed.
fn first_pass(trials: &[(Check, Vec<TrialOutcome>)]) -> Option<OffsetDateTime> {
    let decided = trials.iter().enumerate();
    let mut decided: Vec<(OffsetDateTime, usize, usize)> = decided
        .flat_map(|(check, (_, outcomes))| {
            let outcomes = outcomes.iter().enumerate();
            outcomes.map(move |(trial, outcome)| (outcome.at, check, trial))
        })
        .collect();
    decided.sort_unstable();
    let mut newest: Vec<Option<usize>> = vec![None; trials.len()];
    for (at, check, trial) in decided {
        newest[check] = newest[check].max(Some(trial));
        let is_passed = |(newest, (_, outcomes)): (&Option<usize>, &(Check, Vec<TrialOutcome>))| {
            newest.is_some_and(|trial| outcomes[trial].passed)
        };
        if newest.iter().zip(trials).all(is_passed) {
            return Some(at);
        }
    }
    None
}

fn check_result(check: Check, deciding: Option<TrialOutcome>) -> CheckResult {
    let state = match deciding {
        None => CheckState::NotSeen,
        Some(TrialOutcome { passed: true, .. }) => CheckState::Passed,
        Some(_) => CheckState::Failed,
    };
    CheckResult {
        check,
        state,
        at: deciding.map(|outcome| outcome.at),
        reason: deciding.map_or("no deciding trial was observed yet", |outcome| outcome.reason),
    }
}

const fn passed(at: OffsetDateTime, reason: &'static str) -> TrialOutcome {
    TrialOutcome {
        passed: true,
        at,
        reason,
    }
}

const fn failed(at: OffsetDateTime, reason: &'static str) -> TrialOutcome {
    TrialOutcome {
        passed: false,
        at,
        reason,
    }
}

/// Each observation with those after it.
fn with_later(observations: &[Observation]) -> impl Iterator<Item = (&Observation, &[Observation])> {
    observations
        .iter()
        .enumerate()
        .map(|(index, observation)| (observation, &observations[index + 1..]))
}

/// A trial is an order whose response was lost.
fn lost_response_trials(observations: &[Observation]) -> Vec<Option<TrialOutcome>> {
    let trial = |(lost, later): (&Observation, &[Observation])| {
        let ObservationKind::ResponseDropped { key, request } = &lost.kind else {
            return None;
        };
        later.iter().find_map(|next| match &next.kind {
            ObservationKind::ResponseReplayed { key: same } if same == key => {
                Some(passed(next.at, "the client repeated the order under its key"))
            }
            ObservationKind::ResponseDropped { request: same, .. }
                if same == request && next.at <= lost.at + SAME_ORDER_WINDOW =>
            {
                Some(failed(
                    next.at,
                    "the client sent the order under another key before it repeated the first one",
                ))
            }
            _ => None,
        })
    };
    with_later(observations).map(trial).collect()
}

/// A trial is a request with a wrong signature, however often it was repeated before the next valid one.
fn wrong_signature_trials(observations: &[Observation]) -> Vec<Option<TrialOutcome>> {
    let mut closed = Vec::new();
    let mut open: Vec<(&RequestHash, Option<TrialOutcome>)> = Vec::new();
    for Observation { at, kind } in observations {
        match kind {
            ObservationKind::SignatureRefused { request } => {
                match open.iter_mut().find(|(known, _)| *known == request) {
                    None => open.push((request, None)),
                    Some((_, outcome)) => {
                        *outcome = Some(failed(
                            *at,
                            "a request with a wrong signature was repeated unchanged",
                        ));
                    }
                }
            }
            ObservationKind::SignatureValid => {
                let right = passed(*at, "the next request after a wrong signature had a valid one");
                closed.extend(open.drain(..).map(|(_, outcome)| outcome.or(Some(right))));
            }
            _ => {}
        }
    }
    closed.extend(open.into_iter().map(|(_, outcome)| outcome));
    closed
}

/// A trial is an order whose codes were fetched while it was partially delivered.
fn partial_code_trials(observations: &[Observation], now: OffsetDateTime) -> Vec<Option<TrialOutcome>> {
    let mut delivered: HashMap<OrderId, OffsetDateTime> = HashMap::new();
    let mut partial = Vec::new();
    for Observation { at, kind } in observations {
        match kind {
            ObservationKind::OrderDelivered { order_id } => drop(delivered.insert(*order_id, *at)),
            ObservationKind::PartialCodesFetched { order_id } if !partial.contains(order_id) => {
                partial.push(*order_id)
            }
            _ => {}
        }
    }
    let trial = |order_id: OrderId| {
        let fetched_in_full = ObservationKind::AllCodesFetched { order_id };
        let fetched = observations
            .iter()
            .find(|observation| observation.kind == fetched_in_full);
        let until = delivered.get(&order_id).map(|at| *at + REFETCH_WINDOW);
        match (fetched, until) {
            (Some(fetched), until) if until.is_none_or(|until| fetched.at <= until) => Some(passed(
                fetched.at,
                "the client fetched the codes of the partial delivery, and again after the delivery",
            )),
            (_, Some(until)) if until <= now => Some(failed(
                until,
                "the client fetched the codes of the partial delivery, but not again within ten minutes of the delivery",
            )),
            _ => None,
        }
    };
    partial.into_iter().map(trial).collect()
}

/// A trial is a 429; it passes if no request arrives before its Retry-After ends.
fn pause_trials(observations: &[Observation], now: OffsetDateTime) -> Vec<Option<TrialOutcome>> {
    let trial = |(limited, later): (&Observation, &[Observation])| {
        let ObservationKind::RateLimited {
            credential_id,
            class,
            pause_s,
        } = limited.kind
        else {
            return None;
        };
        let pause = Pause::new(limited.at, pause_s);
        let broken = ObservationKind::RetryAfterIgnored { credential_id, class };
        let broken = later
            .iter()
            .find(|next| next.kind == broken && pause.is_broken_at(next.at));
        match broken {
            Some(broken) => Some(failed(
                broken.at,
                "a request of the same key and class arrived before Retry-After had passed",
            )),
            None if pause.until() <= now => Some(passed(
                pause.until(),
                "no request of the same key and class arrived before Retry-After had passed",
            )),
            None => None,
        }
    };
    with_later(observations).map(trial).collect()
}

/// Whether the status belongs to this class: 2 for 2xx.
fn is_status_class(class: u16, status: Option<u16>) -> bool {
    status.is_some_and(|status| status / 100 == class)
}

/// A trial is a test of an endpoint.
fn webhook_test_trials(observations: &[Observation]) -> Vec<Option<TrialOutcome>> {
    let trial = |Observation { at, kind }: &Observation| {
        let ObservationKind::WebhookTested { wrong, right, .. } = *kind else {
            return None;
        };
        Some(match (is_status_class(4, wrong), is_status_class(2, right)) {
            (true, true) => passed(
                *at,
                "the endpoint responded 4xx to a wrong signature and 2xx to a valid one",
            ),
            (false, _) if is_status_class(2, wrong) => failed(
                *at,
                "the endpoint responded 2xx to a wrong signature: verify every signature before you \
                 respond, and respond 401 to a wrong one",
            ),
            (false, _) => failed(
                *at,
                "the endpoint did not respond 4xx to a wrong signature within five seconds: respond 401",
            ),
            (true, false) => failed(
                *at,
                "the endpoint did not respond 2xx to a valid signature within five seconds: verify it over the received \
                 bytes, respond, and process the event afterwards",
            ),
        })
    };
    observations.iter().map(trial).collect()
}

/// A trial is a repeated delivery of an event that the endpoint accepted before.
fn duplicate_event_trials(observations: &[Observation]) -> Vec<Option<TrialOutcome>> {
    let trial = |Observation { at, kind }: &Observation| {
        let ObservationKind::EventRedelivered { status, .. } = *kind else {
            return None;
        };
        Some(if is_status_class(2, status) {
            passed(*at, "the endpoint responded 2xx to both deliveries of an event")
        } else {
            failed(
                *at,
                "the endpoint did not respond 2xx to a repeated event within five seconds: store event_id, and respond 2xx \
                 to a known one",
            )
        })
    };
    observations.iter().map(trial).collect()
}

#[cfg(test)]
mod tests;
