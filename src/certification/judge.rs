//! What do a partner's observations say of each point? Pure.
//!
//! Rule: a point is tried as often as the partner likes, and the newest trial that is decided counts. One that is not
//! decided yet says nothing, and neither does what belongs to no trial.

use std::collections::HashMap;

use serde::Serialize;
use time::{Duration, OffsetDateTime};
use vouchsafe_actors::domain::ids::OrderId;

use super::observation::{Observation, RequestHash, Seen};
use super::open::Pause;
use super::point::Point;

/// For how long the same order under another key is taken for a client that has given up the first one. A client that asks
/// for the same again on another day orders anew.
pub const SAME_ORDER_WITHIN: Duration = Duration::minutes(10);

/// How long after its delivery the codes of an order may be fetched again: longer than any sensible polling.
pub const FETCHED_WITHIN: Duration = Duration::minutes(10);

/// How a point stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// Nothing that decides it was seen.
    NotSeen,
    /// It was seen as it shall be.
    Passed,
    /// It was seen as it shall not be.
    Failed,
}

impl State {
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
pub struct Finding {
    pub point: Point,
    pub state: State,
    /// When that was seen.
    pub at: Option<OffsetDateTime>,
    pub why: &'static str,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outcome {
    passed: bool,
    at: OffsetDateTime,
    why: &'static str,
}

/// Judges every point by what was seen until `now`, oldest first.
#[must_use]
pub fn judge(observations: &[Observation], now: OffsetDateTime) -> Vec<Finding> {
    let of = |point: Point| {
        let trials = match point {
            Point::LostAnswer => lost_answers(observations),
            Point::WrongSignature => wrong_signatures(observations),
            Point::PartialCodes => partial_codes(observations, now),
            Point::RateLimit => pauses(observations, now),
            Point::WebhookSignature => endpoints_tested(observations),
            Point::DuplicateEvent => events_again(observations),
        };
        finding(point, trials.into_iter().flatten().next_back())
    };
    Point::ALL.iter().map(|point| of(*point)).collect()
}

fn finding(point: Point, newest: Option<Outcome>) -> Finding {
    let state = match newest {
        None => State::NotSeen,
        Some(Outcome { passed: true, .. }) => State::Passed,
        Some(_) => State::Failed,
    };
    Finding {
        point,
        state,
        at: newest.map(|outcome| outcome.at),
        why: newest.map_or("nothing that decides it was seen yet", |outcome| outcome.why),
    }
}

const fn passed(at: OffsetDateTime, why: &'static str) -> Outcome {
    Outcome {
        passed: true,
        at,
        why,
    }
}

const fn failed(at: OffsetDateTime, why: &'static str) -> Outcome {
    Outcome {
        passed: false,
        at,
        why,
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
fn lost_answers(observations: &[Observation]) -> Vec<Option<Outcome>> {
    let trial = |(lost, later): (&Observation, &[Observation])| {
        let Seen::AnswerLost { key, request } = &lost.seen else {
            return None;
        };
        later.iter().find_map(|next| match &next.seen {
            Seen::AnswerRepeated { key: same } if same == key => {
                Some(passed(next.at, "the same order came again under its key"))
            }
            Seen::AnswerLost { request: same, .. }
                if same == request && next.at <= lost.at + SAME_ORDER_WITHIN =>
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
fn wrong_signatures(observations: &[Observation]) -> Vec<Option<Outcome>> {
    let mut trials: Vec<(&RequestHash, Option<Outcome>)> = Vec::new();
    for Observation { at, seen } in observations {
        match seen {
            Seen::SignatureRefused { request } => {
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
            Seen::SignedRight => {
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
fn partial_codes(observations: &[Observation], now: OffsetDateTime) -> Vec<Option<Outcome>> {
    let mut delivered: HashMap<OrderId, OffsetDateTime> = HashMap::new();
    let mut begun = Vec::new();
    for Observation { at, seen } in observations {
        match seen {
            Seen::OrderDelivered { order_id } => drop(delivered.insert(*order_id, *at)),
            Seen::CodesInPart { order_id } if !begun.contains(order_id) => begun.push(*order_id),
            _ => {}
        }
    }
    let trial = |order_id: OrderId| {
        let whole = Seen::CodesInFull { order_id };
        let fetched = observations.iter().find(|one| one.seen == whole);
        let until = delivered.get(&order_id).map(|at| *at + FETCHED_WITHIN);
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
fn pauses(observations: &[Observation], now: OffsetDateTime) -> Vec<Option<Outcome>> {
    let trial = |(asked, later): (&Observation, &[Observation])| {
        let Seen::PauseAsked {
            credential_id,
            class,
            pause_s,
        } = asked.seen
        else {
            return None;
        };
        let pause = Pause::new(asked.at, pause_s);
        let broken = Seen::PauseBroken { credential_id, class };
        let broken = later
            .iter()
            .find(|next| next.seen == broken && pause.is_broken_at(next.at));
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
fn is_of(hundred: u16, status: Option<u16>) -> bool {
    status.is_some_and(|status| status / 100 == hundred)
}

/// A trial is a test of an endpoint.
fn endpoints_tested(observations: &[Observation]) -> Vec<Option<Outcome>> {
    let trial = |Observation { at, seen }: &Observation| {
        let Seen::WebhookTested { wrong, right, .. } = *seen else {
            return None;
        };
        Some(match (is_of(4, wrong), is_of(2, right)) {
            (true, true) => passed(*at, "a wrong signature was answered 4xx, and the right one 2xx"),
            (false, _) if is_of(2, wrong) => failed(
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
fn events_again(observations: &[Observation]) -> Vec<Option<Outcome>> {
    let trial = |Observation { at, seen }: &Observation| {
        let Seen::EventAgain { status, .. } = *seen else {
            return None;
        };
        Some(if is_of(2, status) {
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
