//! Storage of certification observations: retention limit, reads, duplicate writes.

use time::macros::datetime;
use time::{Duration, OffsetDateTime};
use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe_certification::evaluate;
use vouchsafe_domain::certification::check::Check;
use vouchsafe_domain::certification::observation::{Observation, ObservationKind};
use vouchsafe_domain::certification::result::CheckState;
use vouchsafe_domain::ids::{CredentialId, EventId, PartnerId, WebhookId};
use vouchsafe_domain::limits::RequestClass;
use vouchsafe_store::PgStore;

use vouchsafe_test_harness::Database;

const NOON: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

fn repeated_response(number: u128) -> Observation {
    Observation {
        at: NOON + Duration::seconds(i64::try_from(number).unwrap()),
        kind: ObservationKind::ResponseReplayed {
            key: Uuid::from_u128(number),
        },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn observations_beyond_limit_are_deleted_oldest_first() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let [first, second] = [PartnerId::generate(), PartnerId::generate()];
    let pause = Observation {
        at: NOON,
        kind: ObservationKind::RateLimited {
            credential_id: CredentialId::generate(),
            class: RequestClass::Vouchers,
            pause_s: 30,
        },
    };
    store
        .observations
        .write(vec![(first, pause.clone()), (second, repeated_response(0))])
        .await
        .unwrap();
    for batch in 0..3 {
        let observations = (0..100).map(|number| (first, repeated_response(batch * 100 + number)));
        store.observations.write(observations.collect()).await.unwrap();
    }
    let stored = store.observations.list(first).await.unwrap();
    let expected: Vec<_> = std::iter::once(pause)
        .chain((100..300).map(repeated_response))
        .collect();
    assert_eq!(stored, expected);
    assert_eq!(
        store.observations.list(second).await.unwrap(),
        [repeated_response(0)]
    );
    let newest = store
        .observations
        .list_since(NOON + Duration::seconds(297))
        .await
        .unwrap();
    assert_eq!(
        newest,
        [(first, repeated_response(298)), (first, repeated_response(299))]
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn receiver_observations_stored_are_evaluated() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let (partner, webhook_id) = (PartnerId::generate(), WebhookId::generate());
    let tested = |second, wrong, right| Observation {
        at: NOON + Duration::seconds(second),
        kind: ObservationKind::WebhookTested {
            webhook_id,
            wrong,
            right,
        },
    };
    let repeated_event = |second, status| Observation {
        at: NOON + Duration::seconds(second),
        kind: ObservationKind::EventRedelivered {
            webhook_id,
            event_id: EventId::generate(),
            status,
        },
    };
    let states = async || {
        let findings = evaluate(
            &store.observations.list(partner).await.unwrap(),
            NOON + Duration::DAY,
        )
        .checks;
        let of = |point| {
            findings
                .iter()
                .find(|finding| finding.check == point)
                .unwrap()
                .state
        };
        [Check::WebhookSignature, Check::DuplicateEvent].map(of)
    };
    assert_eq!(states().await, [CheckState::NotSeen, CheckState::NotSeen]);
    let bad = vec![tested(0, None, Some(500)), repeated_event(1, None)];
    let good = vec![tested(2, Some(401), Some(204)), repeated_event(3, Some(200))];
    for (observations, expected) in [(&bad, CheckState::Failed), (&good, CheckState::Passed)] {
        let observations = observations.iter().map(|one| (partner, one.clone()));
        store.observations.write(observations.collect()).await.unwrap();
        assert_eq!(states().await, [expected, expected]);
    }
    assert_eq!(
        store.observations.list(partner).await.unwrap(),
        [bad, good].concat()
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn observations_written_concurrently_are_stored_once() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let partner = PartnerId::generate();
    let write = || {
        store.observations.write(
            (0..250)
                .map(|number| (partner, repeated_response(number)))
                .collect(),
        )
    };
    for written in futures_util::future::join_all((0..4).map(|_| write())).await {
        written.unwrap();
    }
    let stored = store.observations.list(partner).await.unwrap();
    assert_eq!(stored, (50..250).map(repeated_response).collect::<Vec<_>>());
    database.remove().await;
}
