//! Redelivery by an operator.

use std::time::Duration;

use vouchsafe_domain::delivery::view::{DeliveryFilter, DeliveryState};
use vouchsafe_domain::ids::DeliveryId;
use vouchsafe_simulation::RowState;
use vouchsafe_simulation::conformance::{CaseFixture as _, Subject as _};
use vouchsafe_store::{AuditActor, DeliveryLog};

use super::Fixture;
use crate::subject::PgSubject;

async fn replay(deliveries: &DeliveryLog, delivery_id: DeliveryId) -> Option<DeliveryState> {
    let again = deliveries.replay(delivery_id, AuditActor::service()).await;
    again.unwrap().map(|delivery| delivery.state)
}

/// Redelivery succeeds only while the event is in the feed.
#[tokio::test(flavor = "multi_thread")]
async fn delivery_is_replayable_while_its_event_is_in_the_feed() {
    let subject = PgSubject::new().await;
    let endpoint = Fixture::create(&subject).await;
    let number = endpoint.commit(1).await;
    endpoint.replay(number..=number).await;
    let deliveries = &subject.store().deliveries;
    let all = deliveries.list(DeliveryFilter::default(), None, 2).await;
    let [delivery] = &all.unwrap()[..] else {
        panic!("there is an event")
    };
    let waiting = replay(deliveries, delivery.delivery_id).await;
    assert_eq!(waiting, Some(DeliveryState::Waiting));
    subject.advance_time(Duration::from_secs(31 * 86_400)).await;
    let before = endpoint.row(number).await;
    assert_eq!(before.as_ref().map(|row| row.state), Some(RowState::Waiting));
    let unknown = DeliveryId::from_uuid(endpoint.webhook_id.as_uuid());
    for delivery_id in [delivery.delivery_id, unknown] {
        assert_eq!(replay(deliveries, delivery_id).await, None);
    }
    assert_eq!(endpoint.row(number).await, before);
    subject.remove().await;
}
