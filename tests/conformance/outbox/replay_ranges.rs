//! Replays of time ranges: all pages of a range, and its limit.

use vouchsafe_domain::delivery::replay::ReplayRequest;
use vouchsafe_domain::event::EventStep;
use vouchsafe_domain::event_kind::{EventKind, EventKinds};
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::{CaseFixture as _, EndpointChange, Subject as _};
use vouchsafe_store::{AuditActor, MAX_REPLAYED, ReplayOutcome};

use super::plans::{insert_commits, insert_events};
use super::{Fixture, committed_at};
use crate::subject::PgSubject;

async fn replay_all(endpoint: &Fixture<'_>) -> ReplayOutcome {
    let first = committed_at(endpoint.subject.pool(), 1).await;
    let request = ReplayRequest::TimeRange(first, first + time::Duration::HOUR);
    let deliveries = &endpoint.subject.store().deliveries;
    let replay = deliveries.replay_events(
        build::partner(1),
        endpoint.webhook_id,
        request,
        AuditActor::service(),
    );
    replay.await.unwrap()
}

/// A longer range is rejected by its count, before its events are read: the endpoint would receive none of
/// them.
#[tokio::test(flavor = "multi_thread")]
async fn range_is_replayed_up_to_its_limit() {
    let subject = PgSubject::new().await;
    let endpoint = Fixture::create(&subject).await;
    subject.append_event(build::partner(1), 1).await;
    let limit = i64::try_from(MAX_REPLAYED).unwrap();
    insert_events(&subject, 2, limit).await;
    assert_eq!(
        replay_all(&endpoint).await,
        ReplayOutcome::Scheduled(MAX_REPLAYED)
    );
    let kinds = EventKinds::of(&[EventKind::OrderRefunded]).unwrap();
    endpoint.change(EndpointChange::SetEventKinds(kinds)).await;
    assert_eq!(replay_all(&endpoint).await, ReplayOutcome::Scheduled(0));
    insert_events(&subject, limit + 1, limit + 1).await;
    assert_eq!(replay_all(&endpoint).await, ReplayOutcome::TooManyEvents);
    subject.remove().await;
}

/// An endpoint that selects few events of many large orders would read them all. Their size is known without
/// reading them: the last event could not be decoded.
#[tokio::test(flavor = "multi_thread")]
async fn range_of_large_orders_is_rejected_unread() {
    const LARGE: usize = 1_000_000;
    let subject = PgSubject::new().await;
    let endpoint = Fixture::create(&subject).await;
    subject.append_event(build::partner(1), 1).await;
    let kinds = EventKinds::of(&[EventKind::OrderRefunded]).unwrap();
    endpoint.change(EndpointChange::SetEventKinds(kinds)).await;
    let body = serde_json::to_string(&build::event_bundle(1, 1)).unwrap();
    let padding = " ".repeat(LARGE);
    insert_commits(&subject, 2, 60, 1, &(body + &padding)).await;
    assert_eq!(replay_all(&endpoint).await, ReplayOutcome::Scheduled(0));
    insert_commits(&subject, 61, 100, 1, &format!("undecodable{padding}")).await;
    assert_eq!(replay_all(&endpoint).await, ReplayOutcome::TooManyEvents);
    subject.remove().await;
}

/// Few commits may have many events: the scan ends when they are too many, before the last event, which
/// cannot be decoded.
#[tokio::test(flavor = "multi_thread")]
async fn range_with_too_many_events_of_few_orders_is_read_up_to_the_limit() {
    const VOUCHERS: u32 = 1_000;
    let subject = PgSubject::new().await;
    let endpoint = Fixture::create(&subject).await;
    subject.append_event(build::partner(1), 1).await;
    let mut bundle = build::event_bundle(1, 1);
    bundle.steps = vec![EventStep::Issued {
        first: 0,
        count: VOUCHERS,
    }];
    let (body, count) = (serde_json::to_string(&bundle).unwrap(), VOUCHERS.cast_signed());
    insert_commits(&subject, 2, 100_001, count, &body).await;
    insert_commits(&subject, 100_002, 101_001, count, "undecodable").await;
    assert_eq!(replay_all(&endpoint).await, ReplayOutcome::TooManyEvents);
    subject.remove().await;
}
