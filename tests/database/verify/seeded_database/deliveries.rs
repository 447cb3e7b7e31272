//! Seeded webhook deliveries: a disabled endpoint, and one with a failed event that blocks its order, an
//! event delivered on the second attempt, and a replayed event.

use std::time::Duration;

use time::OffsetDateTime;
use vouchsafe_actors::delivery::outbox::{
    DeliveryPage, FlushRequest, LeaseAction, Outbox as _, PendingDelivery,
};
use vouchsafe_actors::delivery::queue::{QueueChanges, ReadRequest};
use vouchsafe_domain::delivery::replay::ReplayRequest;
use vouchsafe_domain::delivery::{DeliveryAttempt, DeliveryOutcome, DeliveryUpdate, EndpointHealth};
use vouchsafe_domain::ids::WebhookId;
use vouchsafe_security::vault::fingerprint::FingerprintKey;
use vouchsafe_store::{AuditActor, PgOutbox, PutWebhookOutcome, PutWebhookRequest, ReplayOutcome};

use super::Builder;

/// Starts before the first event.
const ALL_EVENTS: ReadRequest = ReadRequest::Due { after: 0, limit: 100 };

impl Builder {
    /// Registers both endpoints and returns the enabled one.
    pub(super) async fn register_webhooks(&self) -> WebhookId {
        let on = self.register_webhook("https://hooks.example/on", true).await;
        self.register_webhook("https://hooks.example/off", false).await;
        on
    }

    async fn register_webhook(&self, url: &str, enabled: bool) -> WebhookId {
        let webhook_id = WebhookId::generate();
        let request = PutWebhookRequest {
            partner_id: self.partner.partner_id,
            webhook_id: None,
            url: Some(url.to_owned()),
            kinds: None,
            description: None,
            enabled: Some(enabled),
            new_id: webhook_id,
            secret: b"sealed".to_vec(),
            url_key: FingerprintKey::from_bytes([1; 32]),
        };
        let outcome = self
            .store
            .webhooks
            .put(request, AuditActor::service())
            .await
            .unwrap();
        assert!(matches!(outcome, PutWebhookOutcome::Created(_)));
        webhook_id
    }

    pub(super) async fn record_deliveries(&self, webhook_id: WebhookId) {
        let outbox = PgOutbox::new(&self.node);
        let opened = outbox.lease(webhook_id).await.unwrap().expect("new events exist");
        let flush = |sequence, changes, attempts, lease_action| FlushRequest {
            lease: opened.lease,
            sequence,
            changes,
            now: Duration::ZERO,
            attempts,
            delivered: 0,
            failed: 0,
            gone: false,
            retry_in: None,
            save_cursor: true,
            lease_action,
        };
        let read = flush(
            1,
            QueueChanges::default(),
            Vec::new(),
            LeaseAction::Keep(Some(ALL_EVENTS)),
        );
        let page = outbox.flush(webhook_id, read).await.unwrap().unwrap();
        let [first, second, third] = group_by_order(&page);
        let retry = DeliveryOutcome::RetryAt(Duration::from_secs(5));
        let blocked = first[1..]
            .iter()
            .map(|pending| update(pending, DeliveryOutcome::Blocked, 0));
        let failed = [update(first[0], retry, 1), update(second[0], retry, 1)];
        let numbers = failed.map(|update| update.number);
        let changes = QueueChanges {
            cursor: page.scanned_to,
            health: EndpointHealth {
                consecutive_failures: 2,
                backoff_step: 1,
                not_before: Duration::ZERO,
            },
            updates: failed.into_iter().chain(blocked).collect(),
            recovered: false,
        };
        let failed = FlushRequest {
            failed: 2,
            ..flush(
                2,
                changes,
                numbers.map(|number| (number, attempt(500))).to_vec(),
                LeaseAction::Keep(None),
            )
        };
        outbox.flush(webhook_id, failed).await.unwrap().unwrap();
        let changes = QueueChanges {
            cursor: page.scanned_to,
            updates: vec![update(second[0], DeliveryOutcome::Delivered, 1)],
            ..QueueChanges::default()
        };
        let request = FlushRequest {
            delivered: 1,
            ..flush(
                3,
                changes,
                vec![(second[0].event.number, attempt(204))],
                LeaseAction::Keep(None),
            )
        };
        outbox.flush(webhook_id, request).await.unwrap().unwrap();
        let replayed = &third[0].event;
        let request = ReplayRequest::Event(replayed.events.event_id(replayed.number));
        let replayed = self.store.deliveries.replay_events(
            self.partner.partner_id,
            webhook_id,
            request,
            AuditActor::service(),
        );
        assert_eq!(replayed.await.unwrap(), ReplayOutcome::Scheduled(1));
    }
}

/// Groups the pending events of the three orders.
fn group_by_order(page: &DeliveryPage) -> [Vec<&PendingDelivery>; 3] {
    let mut orders: Vec<Vec<&PendingDelivery>> = Vec::new();
    for pending in &page.pending {
        match orders
            .iter_mut()
            .find(|order| order[0].order_id == pending.order_id)
        {
            Some(order) => order.push(pending),
            None => orders.push(vec![pending]),
        }
    }
    orders.try_into().expect("three orders exist")
}

fn update(pending: &PendingDelivery, outcome: DeliveryOutcome, attempts: u32) -> DeliveryUpdate {
    DeliveryUpdate {
        number: pending.event.number,
        order_id: pending.order_id,
        attempts,
        replays: pending.replays,
        outcome,
    }
}

fn attempt(status: u16) -> DeliveryAttempt {
    DeliveryAttempt {
        at: OffsetDateTime::UNIX_EPOCH,
        latency_ms: 3,
        status: Some(status),
        fault: None,
        answer: "heard".to_owned(),
    }
}
