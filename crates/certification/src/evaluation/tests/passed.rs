//! Evaluation of a certification that was passed.

use super::*;

/// Passes every check, the last one in second 9.
fn all_passed() -> Vec<(i64, ObservationKind)> {
    let order_id = OrderId::generate_at(NOON);
    let (credential_id, class) = (CredentialId::generate(), RequestClass::Orders);
    let (webhook_id, event_id) = (WebhookId::generate(), EventId::generate());
    let wrong = ObservationKind::SignatureRefused {
        request: RequestHash::from_fingerprint(Fingerprint([1; 32])),
    };
    vec![
        (0, response_lost(1, 7)),
        (1, repeated(1)),
        (2, wrong),
        (3, ObservationKind::SignatureValid),
        (4, ObservationKind::PartialCodesFetched { order_id }),
        (5, ObservationKind::AllCodesFetched { order_id }),
        (
            6,
            ObservationKind::RateLimited {
                credential_id,
                class,
                pause_s: 2,
            },
        ),
        (
            8,
            ObservationKind::WebhookTested {
                webhook_id,
                wrong: Some(401),
                right: Some(200),
            },
        ),
        (
            9,
            ObservationKind::EventRedelivered {
                webhook_id,
                event_id,
                status: Some(200),
            },
        ),
    ]
}

fn evaluate_all(observed: &[(i64, ObservationKind)]) -> CertificationResult {
    let observations = observed.iter().map(|(at, kind)| Observation {
        at: second(*at),
        kind: kind.clone(),
    });
    evaluate(&observations.collect::<Vec<_>>(), second(3_600))
}

#[test]
fn failure_after_the_certification_is_a_warning() {
    let failed_test = ObservationKind::WebhookTested {
        webhook_id: WebhookId::generate(),
        wrong: Some(200),
        right: Some(200),
    };
    let before = [(-1, failed_test.clone())].into_iter().chain(all_passed());
    let passed = evaluate_all(&before.collect::<Vec<_>>());
    assert_eq!(
        (passed.first_passed_at, passed.warnings.len()),
        (Some(second(9)), 0)
    );
    let mut observed = all_passed();
    observed.push((20, failed_test.clone()));
    let warned = evaluate_all(&observed);
    assert_eq!(warned.first_passed_at, Some(second(9)));
    assert!(
        warned
            .checks
            .iter()
            .all(|check| check.state == CheckState::Passed)
    );
    let [warning] = warned.warnings[..] else {
        panic!("{warned:?}")
    };
    assert_eq!((warning.check, warning.at), (Check::WebhookSignature, second(20)));
    // A failure before the last check was passed has to be repaired.
    let mut observed = all_passed();
    observed.insert(observed.len() - 1, (8, failed_test));
    let failed = evaluate_all(&observed);
    assert_eq!((failed.first_passed_at, failed.warnings.len()), (None, 0));
}

#[test]
fn stored_pass_outlives_its_trials() {
    let remaining = [
        (9, ObservationKind::CertificationPassed),
        (20, response_lost(1, 7)),
        (21, response_lost(2, 7)),
    ];
    let result = evaluate_all(&remaining);
    assert_eq!(result.first_passed_at, Some(second(9)));
    assert!(
        result
            .checks
            .iter()
            .all(|check| (check.state, check.at) == (CheckState::Passed, Some(second(9))))
    );
    assert_eq!(result.warnings.len(), 1, "{result:?}");
}
