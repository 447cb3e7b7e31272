//! What do a partner's observations say of each point? Pure.
//!
//! Rule: a point is tried as often as the partner likes, and the newest trial that is decided counts. One that is not
//! decided yet says nothing, and neither does what belongs to no trial.

use std::collections::HashMap;

use serde::Serialize;
use time::{Duration, OffsetDateTime};
use vouchsafe_actors::domain::ids::OrderId;

use super::observation::{Observation, RequestHash, ObservationKind};
use super::session::Pause;
use super::check::Check;

/// For how long the same order under another key is taken for a client that has given up the first one. A client that asks
/// for the same again on another day orders anew.
pub const SAME_ORDER_WINDOW: Duration = Duration::minutes(10);

/// How long after its delivery the codes of an order may be fetched again: longer than any sensible polling.
pub const REFETCH_WINDOW: Duration = Duration::minutes(10);

/// How a point stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CheckState {
    /// Nothing that decides it was seen.
    NotSeen,
    /// It was seen as it shall be.
    Passed,
    /// It was seen as it shall not be.
    Failed,
}

impl CheckState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NotSeen, Self::Passed, Self::Failed];

    /// Its name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSeen => "NOT_SEEN",
            Self::Passed => "PASSED",
            Self::Failed => "FAILED",
        }
    }
}

/// What is found of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckResult {
    pub check: Check,
    pub state: CheckState,
    /// When that was seen.
    pub at: Option<OffsetDateTime>,
    pub reason: &'static str,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TrialOutcome {
    passed: bool,
    at: OffsetDateTime,
    reason: &'static str,
}

/// Judges every point by what was seen until `now`, oldest first.
#[must_use]
pub fn evaluate(observations: &[Observation], now: OffsetDateTime) -> Vec<CheckResult> {
    let of = |point: Check| {
        let trials = match point {
            Check::LostAnswer => lost_response_trials(observations),
            Check::WrongSignature => wrong_signature_trials(observations),
            Check::PartialCodes => partial_code_trials(observations, now),
            Check::RateLimit => pause_trials(observations, now),
            Check::WebhookSignature => webhook_test_trials(observations),
            Check::DuplicateEvent => duplicate_event_trials(observations),
        };
        check_result(point, trials.into_iter().flatten().next_back())
    };
    Check::ALL.iter().map(|point| of(*point)).collect()
}

fn check_result(point: Check, newest: Option<TrialOutcome>) -> CheckResult {
    let state = match newest {
        None => CheckState::NotSeen,
        Some(TrialOutcome { passed: true, .. }) => CheckState::Passed,
        Some(_) => CheckState::Failed,
    };
    CheckResult {
        check: point,
        state,
        at: newest.map(|outcome| outcome.at),
        reason: newest.map_or("nothing that decides it was seen yet", |outcome| outcome.reason),
    }
}

const fn passed(at: OffsetDateTime, why: &'static str) -> TrialOutcome {
    TrialOutcome {
        passed: true,
        at,
        reason: why,
    }
}

const fn failed(at: OffsetDateTime, why: &'static str) -> TrialOutcome {
    TrialOutcome {
        passed: false,
        at,
        reason: why,
    }
}

/// Each with what was seen after it.
fn with_later(observations: &[Observation]) -> impl Iterator<Item = (&Observation, &[Observation])> {
    observations
        .iter()
        .enumerate()
        .map(|(index, one)| (one, &observations[index + 1..]))
}

/// A trial is an order whose answer was lost.
fn lost_response_trials(observations: &[Observation]) -> Vec<Option<TrialOutcome>> {
    let trial = |(lost, later): (&Observation, &[Observation])| {
        let ObservationKind::AnswerLost { key, request } = &lost.kind else {
            return None;
        };
        later.iter().find_map(|next| match &next.kind {
            ObservationKind::AnswerRepeated { key: same } if same == key => {
                Some(passed(next.at, "the same order came again under its key"))
            }
            ObservationKind::AnswerLost { request: same, .. }
                if same == request && next.at <= lost.at + SAME_ORDER_WINDOW =>
            {
                Some(failed(
                    next.at,
                    "the same order came under another key, before its own key came again",
                ))
            }
            _ => None,
        })
    };
    with_later(observations).map(trial).collect()
}

/// A trial is a request that was signed wrongly, however often it came.
fn wrong_signature_trials(observations: &[Observation]) -> Vec<Option<TrialOutcome>> {
    let mut trials: Vec<(&RequestHash, Option<TrialOutcome>)> = Vec::new();
    for Observation { at, kind: seen } in observations {
        match seen {
            ObservationKind::SignatureRefused { request } => {
                match trials.iter_mut().find(|(known, _)| *known == request) {
                    None => trials.push((request, None)),
                    Some((_, outcome)) => {
                        *outcome = Some(failed(
                            *at,
                            "a request with a wrong signature came again unchanged",
                        ));
                    }
                }
            }
            ObservationKind::SignedRight => {
                let right = passed(*at, "after a wrong signature the next request was signed rightly");
                for (_, outcome) in &mut trials {
                    outcome.get_or_insert(right);
                }
            }
            _ => {}
        }
    }
    trials.into_iter().map(|(_, outcome)| outcome).collect()
}

/// A trial is an order whose codes were fetched while it waited for some.
fn partial_code_trials(observations: &[Observation], now: OffsetDateTime) -> Vec<Option<TrialOutcome>> {
    let mut delivered: HashMap<OrderId, OffsetDateTime> = HashMap::new();
    let mut begun = Vec::new();
    for Observation { at, kind: seen } in observations {
        match seen {
            ObservationKind::OrderDelivered { order_id } => drop(delivered.insert(*order_id, *at)),
            ObservationKind::CodesInPart { order_id } if !begun.contains(order_id) => begun.push(*order_id),
            _ => {}
        }
    }
    let trial = |order_id: OrderId| {
        let whole = ObservationKind::CodesInFull { order_id };
        let fetched = observations.iter().find(|one| one.kind == whole);
        let until = delivered.get(&order_id).map(|at| *at + REFETCH_WINDOW);
        match (fetched, until) {
            (Some(fetched), until) if until.is_none_or(|until| fetched.at <= until) => Some(passed(
                fetched.at,
                "the codes were fetched in part, and again when the order was delivered",
            )),
            (_, Some(until)) if until <= now => Some(failed(
                until,
                "the codes were fetched in part, and not again within ten minutes of the delivery",
            )),
            _ => None,
        }
    };
    begun.into_iter().map(trial).collect()
}

/// A trial is a 429; one is passed when its time is over and nothing came meanwhile.
fn pause_trials(observations: &[Observation], now: OffsetDateTime) -> Vec<Option<TrialOutcome>> {
    let trial = |(asked, later): (&Observation, &[Observation])| {
        let ObservationKind::PauseAsked {
            credential_id,
            class,
            pause_s,
        } = asked.kind
        else {
            return None;
        };
        let pause = Pause::new(asked.at, pause_s);
        let broken = ObservationKind::PauseBroken { credential_id, class };
        let broken = later
            .iter()
            .find(|next| next.kind == broken && pause.is_broken_at(next.at));
        match broken {
            Some(broken) => Some(failed(
                broken.at,
                "a request of the same key and class came before Retry-After was over",
            )),
            None if pause.until() <= now => Some(passed(
                pause.until(),
                "nothing of the same key and class came before Retry-After was over",
            )),
            None => None,
        }
    };
    with_later(observations).map(trial).collect()
}

/// Whether it is the status of an answer of this hundred: 2 for 2xx.
fn is_status_class(hundred: u16, status: Option<u16>) -> bool {
    status.is_some_and(|status| status / 100 == hundred)
}

/// A trial is a test of an endpoint.
fn webhook_test_trials(observations: &[Observation]) -> Vec<Option<TrialOutcome>> {
    let trial = |Observation { at, kind: seen }: &Observation| {
        let ObservationKind::WebhookTested { wrong, right, .. } = *seen else {
            return None;
        };
        Some(match (is_status_class(4, wrong), is_status_class(2, right)) {
            (true, true) => passed(*at, "a wrong signature was answered 4xx, and the right one 2xx"),
            (false, _) if is_status_class(2, wrong) => failed(
                *at,
                "a wrong signature was answered 2xx: verify every signature before you answer, and answer 401 to a wrong one",
            ),
            (false, _) => failed(
                *at,
                "a wrong signature was not answered 4xx within five seconds: answer 401 to it",
            ),
            (true, false) => failed(
                *at,
                "the right signature was not answered 2xx within five seconds: verify it over the bytes as they came, \
                 answer, and work afterwards",
            ),
        })
    };
    observations.iter().map(trial).collect()
}

/// A trial is an event that an endpoint had taken and that came to it again.
fn duplicate_event_trials(observations: &[Observation]) -> Vec<Option<TrialOutcome>> {
    let trial = |Observation { at, kind: seen }: &Observation| {
        let ObservationKind::EventAgain { status, .. } = *seen else {
            return None;
        };
        Some(if is_status_class(2, status) {
            passed(*at, "an event came twice, and was answered 2xx both times")
        } else {
            failed(
                *at,
                "an event that was taken came again and was not answered 2xx within five seconds: remember event_id, \
                 and answer 2xx to one that you know",
            )
        })
    };
    observations.iter().map(trial).collect()
}

#[cfg(test)]
mod tests;
