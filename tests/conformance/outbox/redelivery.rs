//! Redelivery by an operator.

use std::time::Duration;

use vouchsafe_domain::delivery::view::{DeliveryFilter, DeliveryState};
use vouchsafe_domain::ids::DeliveryId;
use vouchsafe_simulation::outbox::{OutboxSubject as _, Row, RowState};
use vouchsafe_store::AuditActor;

use super::PgOutboxSubject;

impl PgOutboxSubject {
    async fn only_delivery(&self) -> DeliveryId {
        let all = self.store.deliveries.list(DeliveryFilter::default(), None, 2);
        let [delivery] = &all.await.unwrap()[..] else {
            panic!("there is an event")
        };
        delivery.delivery_id
    }

    async fn replay_delivery(&self, delivery_id: DeliveryId) -> Option<DeliveryState> {
        let again = self
            .store
            .deliveries
            .replay(delivery_id, AuditActor::service())
            .await;
        again.unwrap().map(|delivery| delivery.state)
    }
}

/// Redelivery succeeds only while the event is in the feed.
#[tokio::test(flavor = "multi_thread")]
async fn delivery_is_replayable_while_its_event_is_in_the_feed() {
    let subject = PgOutboxSubject::create().await;
    let number = subject.commit(1).await;
    subject.replay(number..=number).await;
    let delivery_id = subject.only_delivery().await;
    assert_eq!(
        subject.replay_delivery(delivery_id).await,
        Some(DeliveryState::Waiting)
    );
    subject.advance_time(Duration::from_secs(31 * 86_400)).await;
    let before = subject.row(number).await;
    assert!(matches!(
        before,
        Some(Row {
            state: RowState::Waiting,
            ..
        })
    ));
    assert_eq!(subject.replay_delivery(delivery_id).await, None);
    assert_eq!(
        subject
            .replay_delivery(DeliveryId::from_uuid(subject.webhook_id.as_uuid()))
            .await,
        None
    );
    assert_eq!(subject.row(number).await, before);
    subject.database.remove().await;
}
