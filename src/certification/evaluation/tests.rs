//! Each point as a table: what was seen at which second, and what is found of it.

use time::macros::datetime;
use uuid::Uuid;
use vouchsafe_actors::domain::idempotency::{Fingerprint, KeyHash};
use vouchsafe_actors::domain::ids::{CredentialId, EventId, WebhookId};

use super::*;
use crate::access::limits::RequestClass;

const NOON: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

fn second(number: i64) -> OffsetDateTime {
    NOON + Duration::seconds(number)
}

/// What is found of a point an hour later: its state and the second of it.
fn found(point: Check, seen: &[(i64, ObservationKind)]) -> (CheckState, Option<i64>) {
    found_at(3_600, point, seen)
}

fn found_at(now: i64, point: Check, seen: &[(i64, ObservationKind)]) -> (CheckState, Option<i64>) {
    let observations: Vec<_> = seen
        .iter()
        .map(|(at, seen)| Observation {
            at: second(*at),
            kind: seen.clone(),
        })
        .collect();
    let findings = evaluate(&observations, second(now));
    assert_eq!(findings.len(), Check::ALL.len());
    let finding = findings
        .into_iter()
        .find(|finding| finding.check == point)
        .unwrap();
    assert_eq!(
        finding.at.is_none(),
        finding.state == CheckState::NotSeen,
        "{finding:?}"
    );
    (finding.state, finding.at.map(|at| (at - NOON).whole_seconds()))
}

const NOTHING: (CheckState, Option<i64>) = (CheckState::NotSeen, None);

const fn is_passed(at: i64) -> (CheckState, Option<i64>) {
    (CheckState::Passed, Some(at))
}

const fn is_failed(at: i64) -> (CheckState, Option<i64>) {
    (CheckState::Failed, Some(at))
}

fn lost(key: u128, order: u8) -> ObservationKind {
    ObservationKind::answer_lost(KeyHash(Uuid::from_u128(key)), Fingerprint([order; 32]))
}

fn again(key: u128) -> ObservationKind {
    ObservationKind::AnswerRepeated {
        key: Uuid::from_u128(key),
    }
}

#[test]
fn nothing_was_seen_at_first() {
    for point in Check::ALL {
        assert_eq!(found(*point, &[]), NOTHING);
    }
}

#[test]
fn a_lost_answer_is_asked_for_under_its_own_key() {
    for (seen, expected) in [
        (vec![(0, lost(1, 7))], NOTHING),
        (vec![(0, lost(1, 7)), (5, again(1))], is_passed(5)),
        (vec![(0, lost(1, 7)), (5, again(1)), (9, again(1))], is_passed(5)),
        (vec![(0, again(1))], NOTHING),
        (vec![(0, lost(1, 7)), (5, again(2))], NOTHING),
        // A new key instead.
        (vec![(0, lost(1, 7)), (5, lost(2, 7))], is_failed(5)),
        (
            vec![(0, lost(1, 7)), (5, lost(2, 7)), (6, again(1))],
            is_failed(5),
        ),
        // Another order is another trial, and so is the same one much later.
        (vec![(0, lost(1, 7)), (5, lost(2, 8))], NOTHING),
        (vec![(0, lost(1, 7)), (601, lost(2, 7))], NOTHING),
        (
            vec![(0, lost(1, 7)), (5, again(1)), (6, lost(2, 7))],
            is_passed(5),
        ),
        // The newest that is decided counts.
        (
            vec![(0, lost(1, 7)), (5, lost(2, 7)), (6, again(2))],
            is_passed(6),
        ),
        (
            vec![(0, lost(1, 7)), (5, again(1)), (6, lost(2, 7)), (7, lost(3, 7))],
            is_failed(7),
        ),
    ] {
        assert_eq!(found(Check::LostAnswer, &seen), expected, "{seen:?}");
    }
}

#[test]
fn a_wrong_signature_is_not_repeated() {
    let wrong = |n: u8| ObservationKind::SignatureRefused {
        request: RequestHash::from_signed_request(std::iter::empty(), &[n]),
    };
    let right = ObservationKind::SignedRight;
    for (seen, expected) in [
        (vec![(0, wrong(1))], NOTHING),
        (vec![(0, right.clone())], NOTHING),
        (vec![(0, wrong(1)), (1, right.clone())], is_passed(1)),
        (vec![(0, wrong(1)), (1, wrong(1))], is_failed(1)),
        (
            vec![(0, wrong(1)), (1, wrong(1)), (2, right.clone())],
            is_failed(1),
        ),
        (
            vec![(0, wrong(1)), (1, right.clone()), (2, wrong(1))],
            is_failed(2),
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
    ] {
        assert_eq!(found(Check::WrongSignature, &seen), expected, "{seen:?}");
    }
}

#[test]
fn codes_that_were_fetched_in_part_are_fetched_again() {
    let order_id = OrderId::generate_at(NOON);
    let other = OrderId::generate_at(second(1));
    let part = ObservationKind::CodesInPart { order_id };
    let whole = ObservationKind::CodesInFull { order_id };
    let delivered = ObservationKind::OrderDelivered { order_id };
    for (seen, expected) in [
        (vec![(0, part.clone())], NOTHING),
        (vec![(9, whole.clone())], NOTHING),
        (
            vec![(0, part.clone()), (5, delivered.clone()), (9, whole.clone())],
            is_passed(9),
        ),
        (vec![(0, part.clone()), (9, whole.clone())], is_passed(9)),
        (
            vec![
                (0, part.clone()),
                (5, delivered.clone()),
                (9, ObservationKind::CodesInFull { order_id: other }),
            ],
            is_failed(605),
        ),
        (
            vec![(0, part.clone()), (5, delivered.clone()), (605, whole.clone())],
            is_passed(605),
        ),
        (
            vec![(0, part.clone()), (5, delivered.clone()), (606, whole)],
            is_failed(605),
        ),
    ] {
        assert_eq!(found(Check::PartialCodes, &seen), expected, "{seen:?}");
    }
    let seen = [(0, part), (5, delivered)];
    assert_eq!(
        found_at(604, Check::PartialCodes, &seen),
        NOTHING,
        "there is still time"
    );
    assert_eq!(found_at(605, Check::PartialCodes, &seen), is_failed(605));
}

#[test]
fn a_429_is_followed_by_a_pause() {
    let (credential_id, class) = (CredentialId::generate(), RequestClass::Orders);
    let asked = |pause_s| ObservationKind::PauseAsked {
        credential_id,
        class,
        pause_s,
    };
    let broken = ObservationKind::PauseBroken { credential_id, class };
    let elsewhere = ObservationKind::PauseBroken {
        credential_id,
        class: RequestClass::General,
    };
    for (seen, expected) in [
        (vec![(0, asked(30))], is_passed(30)),
        (vec![(0, asked(30)), (1, broken.clone())], is_passed(30)),
        (vec![(0, asked(30)), (2, broken.clone())], is_failed(2)),
        (vec![(0, asked(30)), (30, broken.clone())], is_passed(30)),
        (vec![(0, asked(30)), (2, elsewhere)], is_passed(30)),
        (vec![(0, broken.clone()), (2, asked(30))], is_passed(32)),
        (
            vec![(0, asked(30)), (2, broken.clone()), (40, asked(5))],
            is_passed(45),
        ),
        (vec![(0, asked(30)), (40, asked(5)), (43, broken)], is_failed(43)),
    ] {
        assert_eq!(found(Check::RateLimit, &seen), expected, "{seen:?}");
    }
    let seen = [(0, asked(30))];
    assert_eq!(found_at(29, Check::RateLimit, &seen), NOTHING, "it is not over");
    assert_eq!(found_at(30, Check::RateLimit, &seen), is_passed(30));
}

#[test]
fn a_receiver_refuses_a_wrong_signature_and_takes_the_right_one() {
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
        let seen = [(5, tested(wrong, right))];
        assert_eq!(found(Check::WebhookSignature, &seen), expected, "{seen:?}");
    }
    let [good, bad] = [tested(Some(401), Some(204)), tested(Some(204), Some(204))];
    let seen = [(0, good.clone()), (1, bad.clone())];
    assert_eq!(
        found(Check::WebhookSignature, &seen),
        is_failed(1),
        "the newest counts"
    );
    let seen = [(0, bad), (1, good)];
    assert_eq!(
        found(Check::WebhookSignature, &seen),
        is_passed(1),
        "the newest counts"
    );
}

#[test]
fn an_event_that_comes_again_is_taken_again() {
    let again = |status| ObservationKind::EventAgain {
        webhook_id: WebhookId::generate(),
        event_id: EventId::generate(),
        status,
    };
    for (seen, expected) in [
        (vec![(0, again(Some(200)))], is_passed(0)),
        (vec![(0, again(Some(409)))], is_failed(0)),
        (vec![(0, again(None))], is_failed(0)),
        (vec![(0, again(Some(409))), (5, again(Some(204)))], is_passed(5)),
        (vec![(0, again(Some(204))), (5, again(Some(500)))], is_failed(5)),
    ] {
        assert_eq!(found(Check::DuplicateEvent, &seen), expected, "{seen:?}");
    }
}
