//! The partner of that database has two endpoints, of which one is off. To the other an event failed, so that the rest of its
//! order waits behind it; another one was taken the second time; and one is sent again.

use std::time::Duration;

use time::OffsetDateTime;
use vouchsafe::store::{By, PgOutbox, PutOutcome, PutWebhook, ReplayWish, Replayed};
use vouchsafe_actors::delivery::outbox::{Outbox as _, Page, Pending, Then, Turn};
use vouchsafe_actors::delivery::queue::{Changes, Want};
use vouchsafe_actors::domain::delivery::{Attempt, Fate, Health, Mark};
use vouchsafe_actors::domain::ids::WebhookId;

use super::Builder;

/// Before everything that is committed, so that it gets all of it.
const FIRST: Want = Want::Due { after: 0, most: 100 };

impl Builder {
    /// Registers both; says which is on.
    pub(super) async fn listen(&self) -> WebhookId {
        let on = self.register("https://hooks.example/on", true).await;
        self.register("https://hooks.example/off", false).await;
        on
    }

    async fn register(&self, url: &str, enabled: bool) -> WebhookId {
        let webhook_id = WebhookId::generate();
        let wanted = PutWebhook {
            partner_id: self.partner.partner_id,
            webhook_id: None,
            url: url.to_owned(),
            kinds: None,
            description: None,
            enabled: Some(enabled),
            new: (webhook_id, b"sealed".to_vec()),
        };
        let outcome = self.store.put_webhook(wanted, By::service()).await.unwrap();
        assert!(matches!(outcome, PutOutcome::Created(_)));
        webhook_id
    }

    pub(super) async fn deliver(&self, webhook_id: WebhookId) {
        let outbox = PgOutbox::new(&self.store);
        let opened = outbox
            .take(webhook_id)
            .await
            .unwrap()
            .expect("there is something new");
        let turn = |number, changes, attempts, then| Turn {
            lease: opened.lease,
            number,
            changes,
            now: Duration::ZERO,
            attempts,
            delivered: 0,
            refused: 0,
            gone: false,
            wait: None,
            save: true,
            then,
        };
        let read = turn(1, Changes::default(), Vec::new(), Then::Keep(Some(FIRST)));
        let page = outbox.turn(webhook_id, read).await.unwrap().unwrap();
        let [first, second, third] = orders_of(&page);
        let again = Fate::Again(Duration::from_secs(5));
        let behind = first[1..].iter().map(|pending| mark(pending, Fate::Behind, 0));
        let failed = [mark(first[0], again, 1), mark(second[0], again, 1)];
        let numbers = failed.map(|mark| mark.number);
        let changes = Changes {
            cursor: page.read_to,
            health: Health {
                failures: 2,
                step: 1,
                not_before: Duration::ZERO,
            },
            marks: failed.into_iter().chain(behind).collect(),
            recovered: false,
        };
        let failed = Turn {
            refused: 2,
            ..turn(
                2,
                changes,
                numbers.map(|number| (number, attempt(500))).to_vec(),
                Then::Keep(None),
            )
        };
        outbox.turn(webhook_id, failed).await.unwrap().unwrap();
        let changes = Changes {
            cursor: page.read_to,
            marks: vec![mark(second[0], Fate::Delivered, 1)],
            ..Changes::default()
        };
        let taken = Turn {
            delivered: 1,
            ..turn(
                3,
                changes,
                vec![(second[0].letter.number, attempt(204))],
                Then::Keep(None),
            )
        };
        outbox.turn(webhook_id, taken).await.unwrap().unwrap();
        let again = &third[0].letter;
        let wish = ReplayWish::Event(again.told.event_id(again.number));
        let replayed = self
            .store
            .replay_events(self.partner.partner_id, webhook_id, wish, By::service());
        assert_eq!(replayed.await.unwrap(), Replayed::Again(1));
    }
}

/// The events of the first three orders.
fn orders_of(page: &Page) -> [Vec<&Pending>; 3] {
    let mut orders: Vec<Vec<&Pending>> = Vec::new();
    for pending in &page.pending {
        match orders
            .iter_mut()
            .find(|order| order[0].order_id == pending.order_id)
        {
            Some(order) => order.push(pending),
            None => orders.push(vec![pending]),
        }
    }
    orders.try_into().expect("there are three orders")
}

fn mark(pending: &Pending, fate: Fate, attempts: u32) -> Mark {
    Mark {
        number: pending.letter.number,
        order_id: pending.order_id,
        attempts,
        replays: pending.replays,
        fate,
    }
}

fn attempt(status: u16) -> Attempt {
    Attempt {
        at: OffsetDateTime::UNIX_EPOCH,
        latency_ms: 3,
        status: Some(status),
        fault: None,
        answer: "heard".to_owned(),
    }
}
