//! What does the sandbox see of deliveries? For certifications: that an event came again to who had taken it.
//!
//! Rule: to see takes a lock for a moment, and changes nothing of a delivery.

use std::sync::Arc;

use vouchsafe_actors::delivery::outbox::Sender;
use vouchsafe_actors::domain::clock::Clock;
use vouchsafe_actors::domain::delivery::{Answered, Letter, Target};
use vouchsafe_actors::store::StoreFuture;

use super::HttpSender;
use crate::certification::Watch;
use crate::certification::taken::Delivery;

/// A sender whose deliveries are seen.
pub(super) struct WatchedSender {
    pub(super) sender: HttpSender,
    pub(super) watch: Arc<Watch>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Sender for WatchedSender {
    fn send(&self, target: Arc<Target>, letter: Letter) -> StoreFuture<'static, Answered> {
        let (watch, clock) = (Arc::clone(&self.watch), Arc::clone(&self.clock));
        let (partner_id, webhook_id) = (target.partner_id, target.webhook_id);
        let event_id = letter.told.event_id(letter.number);
        let sent = self.sender.send(target, letter);
        Box::pin(async move {
            let answered = sent.await;
            let delivery = Delivery {
                webhook_id,
                event_id,
                status: answered.status.ok(),
                at: clock.now(),
            };
            watch.saw_delivery(partner_id, delivery);
            answered
        })
    }
}
