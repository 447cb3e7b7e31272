//! Polls: those between two readings of the roster return due endpoints alone.

use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::{CaseFixture as _, Subject as _};

use super::Fixture;
use crate::subject::PgSubject;

#[tokio::test(flavor = "multi_thread")]
async fn poll_returns_due_endpoints_only() {
    let subject = PgSubject::new().await;
    let webhook_id = Fixture::create(&subject).await.webhook_id;
    let node = subject.start("poller").await;
    assert_eq!(node.list_due_endpoints().await.unwrap(), []);
    let mut roster = node.load_endpoint_roster().await.unwrap();
    assert!(roster.enabled.contains(&webhook_id));
    subject.append_event(build::partner(1), 1).await;
    let due = node.list_due_endpoints().await.unwrap();
    let ids: Vec<_> = due.iter().map(|endpoint| endpoint.webhook_id).collect();
    assert_eq!(ids, [webhook_id]);
    roster.add_endpoint(due[0]);
    assert_eq!(
        roster.ready_by_partner[&build::partner(1)],
        [webhook_id],
        "it is listed once"
    );
    subject.remove().await;
}
