//! What an operator is told who sends a delivery again.

use std::time::Duration;

use vouchsafe::store::{By, DeliveryFilter, DeliveryState};
use vouchsafe_actors::domain::ids::DeliveryId;
use vouchsafe_actors::testing::outbox::{OutboxSubject as _, Row, RowState};

use super::PgOutboxSubject;

impl PgOutboxSubject {
    async fn only_delivery(&self) -> DeliveryId {
        let all = self.store.list_deliveries(DeliveryFilter::default(), None, 2);
        let [delivery] = &all.await.unwrap()[..] else {
            panic!("there is one")
        };
        delivery.delivery_id
    }

    async fn again(&self, delivery_id: DeliveryId) -> Option<DeliveryState> {
        let again = self.store.replay_delivery(delivery_id, By::service()).await;
        again.unwrap().map(|delivery| delivery.state)
    }
}

/// As long as its event is in the feed: that it is sent is not said of what nobody sends.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_sent_again_as_long_as_its_event_is_in_the_feed() {
    let subject = PgOutboxSubject::create().await;
    let number = subject.commit(1).await;
    subject.replay(number..=number).await;
    let delivery_id = subject.only_delivery().await;
    assert_eq!(subject.again(delivery_id).await, Some(DeliveryState::Waiting));
    subject.pass(Duration::from_secs(31 * 86_400)).await;
    let before = subject.row(number).await;
    assert!(matches!(
        before,
        Some(Row {
            state: RowState::Waiting,
            ..
        })
    ));
    assert_eq!(subject.again(delivery_id).await, None);
    assert_eq!(
        subject
            .again(DeliveryId::from_uuid(subject.webhook_id.as_uuid()))
            .await,
        None
    );
    assert_eq!(subject.row(number).await, before);
    subject.database.remove().await;
}
