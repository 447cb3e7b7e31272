//! Evaluation of each check, as tables of observations by second.

use time::macros::datetime;
use uuid::Uuid;
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash};
use vouchsafe_domain::ids::{CredentialId, EventId, WebhookId};
use vouchsafe_domain::limits::RequestClass;

use super::*;

mod passed;

const NOON: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

fn second(number: i64) -> OffsetDateTime {
    NOON + Duration::seconds(number)
}

/// The state of a check one hour later, and the second that decided it.
fn evaluate_check(check: Check, observed: &[(i64, ObservationKind)]) -> Outcome {
    evaluate_check_at(3_600, check, observed)
}

fn evaluate_check_at(now: i64, check: Check, observed: &[(i64, ObservationKind)]) -> Outcome {
    let observations: Vec<_> = observed
        .iter()
        .map(|(at, observed)| Observation {
            at: second(*at),
            kind: observed.clone(),
        })
        .collect();
    let results = evaluate(&observations, second(now)).checks;
    assert_eq!(results.len(), Check::VARIANTS.len());
    let result = results.into_iter().find(|result| result.check == check).unwrap();
    assert_eq!(
        result.at.is_none(),
        result.state == CheckState::NotSeen,
        "{result:?}"
    );
    (result.state, result.at.map(|at| (at - NOON).whole_seconds()))
}

/// State of a check and the second of the trial that decided it.
type Outcome = (CheckState, Option<i64>);

/// Asserts what each series of observations leads to.
fn assert_outcomes<const CASES: usize>(check: Check, cases: [(Vec<(i64, ObservationKind)>, Outcome); CASES]) {
    for (observed, expected) in cases {
        assert_eq!(evaluate_check(check, &observed), expected, "{observed:?}");
    }
}

const NOT_SEEN: Outcome = (CheckState::NotSeen, None);

const fn is_passed(at: i64) -> Outcome {
    (CheckState::Passed, Some(at))
}

const fn is_failed(at: i64) -> Outcome {
    (CheckState::Failed, Some(at))
}

fn response_lost(key: u128, order: u8) -> ObservationKind {
    ObservationKind::response_lost(KeyHash(Uuid::from_u128(key)), Fingerprint([order; 32]))
}

fn repeated(key: u128) -> ObservationKind {
    ObservationKind::ResponseReplayed {
        key: Uuid::from_u128(key),
    }
}

#[test]
fn checks_without_observations_are_not_seen() {
    for check in Check::VARIANTS {
        assert_eq!(evaluate_check(*check, &[]), NOT_SEEN);
    }
}

#[test]
fn lost_response_is_retried_under_its_key() {
    assert_outcomes(
        Check::LostResponse,
        [
            (vec![(0, response_lost(1, 7))], NOT_SEEN),
            (vec![(0, response_lost(1, 7)), (5, repeated(1))], is_passed(5)),
            (
                vec![(0, response_lost(1, 7)), (5, repeated(1)), (9, repeated(1))],
                is_passed(5),
            ),
            (vec![(0, repeated(1))], NOT_SEEN),
            (vec![(0, response_lost(1, 7)), (5, repeated(2))], NOT_SEEN),
            // A retry with a new key fails the check.
            (
                vec![(0, response_lost(1, 7)), (5, response_lost(2, 7))],
                is_failed(5),
            ),
            (
                vec![
                    (0, response_lost(1, 7)),
                    (5, response_lost(2, 7)),
                    (6, repeated(1)),
                ],
                is_failed(5),
            ),
            // Another order is another trial, and so is the same order much later.
            (vec![(0, response_lost(1, 7)), (5, response_lost(2, 8))], NOT_SEEN),
            (
                vec![(0, response_lost(1, 7)), (601, response_lost(2, 7))],
                NOT_SEEN,
            ),
            (
                vec![
                    (0, response_lost(1, 7)),
                    (5, repeated(1)),
                    (6, response_lost(2, 7)),
                ],
                is_passed(5),
            ),
            // The newest decided trial counts.
            (
                vec![
                    (0, response_lost(1, 7)),
                    (5, response_lost(2, 7)),
                    (6, repeated(2)),
                ],
                is_passed(6),
            ),
            (
                vec![
                    (0, response_lost(1, 7)),
                    (5, repeated(1)),
                    (6, response_lost(2, 7)),
                    (7, response_lost(3, 7)),
                ],
                is_failed(7),
            ),
        ],
    );
}

#[test]
fn wrong_signature_repeated_fails() {
    let wrong = |n: u8| ObservationKind::SignatureRefused {
        request: RequestHash::from_fingerprint(Fingerprint([n; 32])),
    };
    let right = ObservationKind::SignatureValid;
    assert_outcomes(
        Check::WrongSignature,
        [
            (vec![(0, wrong(1))], NOT_SEEN),
            (vec![(0, right.clone())], NOT_SEEN),
            (vec![(0, wrong(1)), (1, right.clone())], is_passed(1)),
            (vec![(0, wrong(1)), (1, wrong(1))], is_failed(1)),
            (
                vec![(0, wrong(1)), (1, wrong(1)), (2, right.clone())],
                is_failed(1),
            ),
            // A valid signature closes the trial: the same request later is another trial.
            (
                vec![(0, wrong(1)), (1, right.clone()), (2, wrong(1))],
                is_passed(1),
            ),
            (
                vec![(0, wrong(1)), (1, right.clone()), (2, wrong(1)), (3, wrong(1))],
                is_failed(3),
            ),
            (
                vec![
                    (0, wrong(1)),
                    (1, wrong(1)),
                    (2, right.clone()),
                    (3, wrong(1)),
                    (4, right.clone()),
                ],
                is_passed(4),
            ),
            (
                vec![(0, wrong(1)), (1, wrong(2)), (2, right.clone())],
                is_passed(2),
            ),
            (
                vec![(0, wrong(1)), (1, wrong(1)), (2, wrong(2)), (3, right.clone())],
                is_passed(3),
            ),
            (
                vec![(0, wrong(1)), (1, right), (2, wrong(2)), (3, wrong(2))],
                is_failed(3),
            ),
        ],
    );
}

#[test]
fn partial_codes_fetched_again_pass() {
    let order_id = OrderId::generate_at(NOON);
    let other = OrderId::generate_at(second(1));
    let part = ObservationKind::PartialCodesFetched { order_id };
    let fetched_in_full = ObservationKind::AllCodesFetched { order_id };
    let delivered = ObservationKind::OrderDelivered { order_id };
    assert_outcomes(
        Check::PartialCodes,
        [
            (vec![(0, part.clone())], NOT_SEEN),
            (vec![(9, fetched_in_full.clone())], NOT_SEEN),
            (
                vec![
                    (0, part.clone()),
                    (5, delivered.clone()),
                    (9, fetched_in_full.clone()),
                ],
                is_passed(9),
            ),
            (
                vec![(0, part.clone()), (9, fetched_in_full.clone())],
                is_passed(9),
            ),
            (
                vec![
                    (0, part.clone()),
                    (5, delivered.clone()),
                    (9, ObservationKind::AllCodesFetched { order_id: other }),
                ],
                is_failed(605),
            ),
            (
                vec![
                    (0, part.clone()),
                    (5, delivered.clone()),
                    (605, fetched_in_full.clone()),
                ],
                is_passed(605),
            ),
            (
                vec![(0, part.clone()), (5, delivered.clone()), (606, fetched_in_full)],
                is_failed(605),
            ),
        ],
    );
    let observed = [(0, part), (5, delivered)];
    assert_eq!(
        evaluate_check_at(604, Check::PartialCodes, &observed),
        NOT_SEEN,
        "the window is still open"
    );
    assert_eq!(
        evaluate_check_at(605, Check::PartialCodes, &observed),
        is_failed(605)
    );
}

#[test]
fn rate_limit_followed_by_a_pause_passes() {
    let (credential_id, class) = (CredentialId::generate(), RequestClass::Orders);
    let limited = |pause_s| ObservationKind::RateLimited {
        credential_id,
        class,
        pause_s,
    };
    let broken = ObservationKind::RetryAfterIgnored { credential_id, class };
    let other_class = ObservationKind::RetryAfterIgnored {
        credential_id,
        class: RequestClass::General,
    };
    assert_outcomes(
        Check::RateLimit,
        [
            (vec![(0, limited(30))], is_passed(30)),
            (vec![(0, limited(30)), (1, broken.clone())], is_passed(30)),
            (vec![(0, limited(30)), (2, broken.clone())], is_failed(2)),
            (vec![(0, limited(30)), (30, broken.clone())], is_passed(30)),
            (vec![(0, limited(30)), (2, other_class)], is_passed(30)),
            (vec![(0, broken.clone()), (2, limited(30))], is_passed(32)),
            (
                vec![(0, limited(30)), (2, broken.clone()), (40, limited(5))],
                is_passed(45),
            ),
            (
                vec![(0, limited(30)), (40, limited(5)), (43, broken)],
                is_failed(43),
            ),
        ],
    );
    let observed = [(0, limited(30))];
    assert_eq!(
        evaluate_check_at(29, Check::RateLimit, &observed),
        NOT_SEEN,
        "the pause is still running"
    );
    assert_eq!(evaluate_check_at(30, Check::RateLimit, &observed), is_passed(30));
}

#[test]
fn endpoint_refusing_wrong_and_accepting_valid_signatures_passes() {
    let webhook_id = WebhookId::generate();
    let tested = |wrong, right| ObservationKind::WebhookTested {
        webhook_id,
        wrong,
        right,
    };
    for (wrong, right, passes) in [
        (Some(400), Some(200), true),
        (Some(499), Some(299), true),
        (Some(200), Some(200), false),
        (Some(302), Some(200), false),
        (Some(399), Some(200), false),
        (Some(500), Some(200), false),
        (None, Some(200), false),
        (Some(401), Some(300), false),
        (Some(401), Some(401), false),
        (Some(401), None, false),
        (None, None, false),
    ] {
        let expected = if passes { is_passed(5) } else { is_failed(5) };
        let observed = [(5, tested(wrong, right))];
        assert_eq!(
            evaluate_check(Check::WebhookSignature, &observed),
            expected,
            "{observed:?}"
        );
    }
    let [good, bad] = [tested(Some(401), Some(204)), tested(Some(204), Some(204))];
    let observed = [(0, good.clone()), (1, bad.clone())];
    assert_eq!(
        evaluate_check(Check::WebhookSignature, &observed),
        is_failed(1),
        "the newest trial counts"
    );
    let observed = [(0, bad), (1, good)];
    assert_eq!(
        evaluate_check(Check::WebhookSignature, &observed),
        is_passed(1),
        "the newest trial counts"
    );
}

#[test]
fn repeated_event_accepted_passes() {
    let repeated = |status| ObservationKind::EventRedelivered {
        webhook_id: WebhookId::generate(),
        event_id: EventId::generate(),
        status,
    };
    assert_outcomes(
        Check::DuplicateEvent,
        [
            (vec![(0, repeated(Some(200)))], is_passed(0)),
            (vec![(0, repeated(Some(409)))], is_failed(0)),
            (vec![(0, repeated(None))], is_failed(0)),
            (
                vec![(0, repeated(Some(409))), (5, repeated(Some(204)))],
                is_passed(5),
            ),
            (
                vec![(0, repeated(Some(204))), (5, repeated(Some(500)))],
                is_failed(5),
            ),
        ],
    );
}
