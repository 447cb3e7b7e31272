//! What does the sandbox see of deliveries? For certifications: that an event came again to who had taken it.
//!
//! Rule: to see takes a lock for a moment, and changes nothing of a delivery.

use std::sync::Arc;

use vouchsafe_actors::delivery::outbox::Sender;
use vouchsafe_actors::domain::clock::Clock;
use vouchsafe_actors::domain::delivery::{SendResult, WebhookEvent, WebhookTarget};
use vouchsafe_actors::store::StoreFuture;

use super::HttpSender;
use crate::certification::Observer;
use crate::certification::delivered::DeliveryResult;

/// A sender whose deliveries are seen.
pub(super) struct ObservedSender {
    pub(super) sender: HttpSender,
    pub(super) observer: Arc<Observer>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Sender for ObservedSender {
    fn send(&self, target: Arc<WebhookTarget>, letter: WebhookEvent) -> StoreFuture<'static, SendResult> {
        let (watch, clock) = (Arc::clone(&self.observer), Arc::clone(&self.clock));
        let (partner_id, webhook_id) = (target.partner_id, target.webhook_id);
        let event_id = letter.events.event_id(letter.number);
        let sent = self.sender.send(target, letter);
        Box::pin(async move {
            let answered = sent.await;
            let delivery = DeliveryResult {
                webhook_id,
                event_id,
                status: answered.status.ok(),
                at: clock.now(),
            };
            watch.record_delivery(partner_id, delivery);
            answered
        })
    }
}
