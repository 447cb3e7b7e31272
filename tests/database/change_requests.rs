//! Change requests in the store: who may confirm when, and what remains.

use std::time::Duration;

use sqlx::{Executor as _, PgPool};
use tokio::runtime::Handle;
use vouchsafe_domain::change_request::{ChangeKind, ChangeRequestFilter, ChangeRequestStatus};
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_domain::ids::ChangeRequestId;
use vouchsafe_domain::operator::OperatorName;
use vouchsafe_store::change_requests::{ChangeOutcome, NewChangeRequest};
use vouchsafe_store::{AuditActor, ChangeRequests, PgStore};
use vouchsafe_test_harness::Database;

fn name(text: &str) -> OperatorName {
    text.parse().unwrap()
}

async fn create(requests: &ChangeRequests) -> ChangeRequestId {
    let new = NewChangeRequest {
        request_id: ChangeRequestId::generate(),
        kind: ChangeKind::TopUp,
        partner_id: None,
        object: "ptn_0".to_owned(),
        details: "{}".to_owned(),
        sealed: vec![1],
        requested_by: name("jane"),
        expires_at: SystemClock::new().now() + Duration::from_secs(3_600),
    };
    let created = requests
        .create(new, |_, _| false, AuditActor::service())
        .await
        .unwrap();
    created.request_id
}

async fn status(requests: &ChangeRequests, id: ChangeRequestId) -> ChangeRequestStatus {
    requests.find(id).await.unwrap().unwrap().request.status
}

#[tokio::test(flavor = "multi_thread")]
async fn request_is_confirmed_once_and_again_only_without_an_outcome() {
    let database = Database::create().await;
    let requests = PgStore::open(database.service_options(), Handle::current()).change_requests;
    let pool = PgPool::connect_with(database.options()).await.unwrap();
    let confirm = |id, by: &str| requests.confirm(id, name(by), AuditActor::service());
    let id = create(&requests).await;
    assert_eq!(confirm(id, "jane").await.unwrap(), None, "her own");
    let (first, second) = tokio::join!(confirm(id, "sam"), confirm(id, "kim"));
    let confirmed: Vec<_> = [first.unwrap(), second.unwrap()].into_iter().flatten().collect();
    assert_eq!(confirmed.len(), 1, "one of two at the same time");
    assert_eq!(confirm(id, "kim").await.unwrap(), None, "it is being carried out");

    let a_minute_ago = "UPDATE change_requests SET decided_at = decided_at - interval '61 seconds'";
    pool.execute(a_minute_ago).await.unwrap();
    let again = confirm(id, "kim").await.unwrap().expect("there is no outcome");
    let late = requests.finish(id, confirmed[0].decided_at, ChangeOutcome::Refused("GONE"));
    late.await.unwrap();
    assert_eq!(
        status(&requests, id).await,
        ChangeRequestStatus::Confirmed,
        "the outcome of the earlier confirmation"
    );
    let executed = requests.finish(id, again.decided_at, ChangeOutcome::Executed);
    executed.await.unwrap();
    assert_eq!(status(&requests, id).await, ChangeRequestStatus::Executed);
    pool.execute(a_minute_ago).await.unwrap();
    assert_eq!(confirm(id, "sam").await.unwrap(), None, "it has ended");
    assert_eq!(requests.find(id).await.unwrap().unwrap().sealed, None);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn request_expires_and_keeps_no_change() {
    let database = Database::create().await;
    let requests = PgStore::open(database.service_options(), Handle::current()).change_requests;
    let pool = PgPool::connect_with(database.options()).await.unwrap();
    let (waiting, confirmed) = (create(&requests).await, create(&requests).await);
    let by = name("sam");
    let confirm = requests.confirm(confirmed, by.clone(), AuditActor::service());
    assert!(confirm.await.unwrap().is_some());
    requests.expire().await.unwrap();
    assert_eq!(status(&requests, waiting).await, ChangeRequestStatus::Waiting);
    let later = "UPDATE change_requests
                    SET expires_at = now(), decided_at = decided_at - interval '61 seconds'";
    pool.execute(later).await.unwrap();
    assert_eq!(status(&requests, waiting).await, ChangeRequestStatus::Expired);
    for id in [waiting, confirmed] {
        let confirm = requests.confirm(id, by.clone(), AuditActor::service());
        assert_eq!(confirm.await.unwrap(), None);
        let decline = requests.decline(id, by.clone(), None, AuditActor::service());
        assert_eq!(decline.await.unwrap(), None);
    }
    requests.expire().await.unwrap();
    for id in [waiting, confirmed] {
        let stored = requests.find(id).await.unwrap().unwrap();
        assert_eq!(
            (stored.request.status, stored.sealed),
            (ChangeRequestStatus::Expired, None)
        );
    }
    let filter = ChangeRequestFilter {
        status: Some(ChangeRequestStatus::Expired),
        ..ChangeRequestFilter::default()
    };
    assert_eq!(requests.list(filter, None, 10).await.unwrap().len(), 2);
    database.remove().await;
}
