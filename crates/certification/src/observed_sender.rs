//! Webhook sender that records deliveries: an endpoint may receive an event that it accepted before.
//!
//! Recording takes a mutex briefly and does not change the delivery.

use std::sync::Arc;

use vouchsafe_actors::delivery::outbox::Sender;
use vouchsafe_actors::ports::store::StoreFuture;
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::delivery::{SendResult, WebhookEvent, WebhookTarget};

use super::Observer;
use super::delivered::DeliveryResult;

/// Sends with another sender, and records the results.
struct ObservedSender {
    sender: Arc<dyn Sender>,
    observer: Arc<Observer>,
    clock: Arc<dyn Clock>,
}

/// The sender of events: it records its deliveries if there is an observer.
pub fn observe_deliveries(
    sender: Arc<dyn Sender>,
    observer: Option<&Arc<Observer>>,
    clock: &Arc<dyn Clock>,
) -> Arc<dyn Sender> {
    match observer {
        None => sender,
        Some(observer) => Arc::new(ObservedSender {
            sender,
            observer: Arc::clone(observer),
            clock: Arc::clone(clock),
        }),
    }
}

impl Sender for ObservedSender {
    fn send(&self, target: Arc<WebhookTarget>, event: WebhookEvent) -> StoreFuture<'static, SendResult> {
        let (observer, clock) = (Arc::clone(&self.observer), Arc::clone(&self.clock));
        let (partner_id, webhook_id) = (target.partner_id, target.webhook_id);
        let event_id = event.events.event_id(event.number);
        let sent = self.sender.send(target, event);
        Box::pin(async move {
            let result = sent.await;
            let delivery = DeliveryResult {
                webhook_id,
                event_id,
                status: result.status.ok(),
                at: clock.now(),
            };
            observer.record_delivery(partner_id, delivery);
            result
        })
    }
}
