//! Which deliveries are of an event that the endpoint had taken before? Pure.
//!
//! Rule: the newest are remembered, in this process. What is forgotten is no trial, so that nobody is judged by it; and what
//! an endpoint does again within a second is told once, so that a replay of ten thousand events is not ten thousand notes.

use std::collections::{HashMap, HashSet, VecDeque};

use time::{Duration, OffsetDateTime};
use vouchsafe_actors::domain::ids::{EventId, WebhookId};

/// How many deliveries are remembered: those of some thousand orders, in a megabyte.
pub const MAX_REMEMBERED: usize = 10_000;

/// Of how many endpoints it is remembered what was told: more than a sandbox has at work in one second.
pub const MAX_TOLD: usize = 1_000;

/// For how long the same is not told again.
pub const TOLD_FOR: Duration = Duration::SECOND;

/// A delivery that was answered.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    pub webhook_id: WebhookId,
    pub event_id: EventId,
    /// The status of the answer; `None` if there was none.
    pub status: Option<u16>,
    pub at: OffsetDateTime,
}

/// What endpoints have taken.
#[derive(Debug, Default)]
pub struct Taken {
    known: HashSet<(WebhookId, EventId)>,
    oldest_first: VecDeque<(WebhookId, EventId)>,
    told: HashMap<WebhookId, (OffsetDateTime, bool)>,
}

impl Taken {
    /// A delivery was answered. Says whether it is worth being told: the endpoint had taken the event before.
    pub fn answered(&mut self, delivery: Delivery) -> bool {
        let key = (delivery.webhook_id, delivery.event_id);
        let taken = matches!(delivery.status, Some(200..=299));
        if self.known.contains(&key) {
            return self.is_news(delivery.webhook_id, taken, delivery.at);
        }
        if taken {
            self.remember(key);
        }
        false
    }

    fn is_news(&mut self, webhook_id: WebhookId, taken: bool, at: OffsetDateTime) -> bool {
        if let Some((told_at, told)) = self.told.get(&webhook_id)
            && *told == taken
            && at < *told_at + TOLD_FOR
        {
            return false;
        }
        if self.told.len() >= MAX_TOLD {
            self.told.clear();
        }
        self.told.insert(webhook_id, (at, taken));
        true
    }

    fn remember(&mut self, key: (WebhookId, EventId)) {
        if self.oldest_first.len() >= MAX_REMEMBERED
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.known.insert(key);
        self.oldest_first.push_back(key);
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOON: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

    fn delivery(webhook_id: WebhookId, event_id: EventId, status: Option<u16>, second: i64) -> Delivery {
        let at = NOON + Duration::seconds(second);
        Delivery {
            webhook_id,
            event_id,
            status,
            at,
        }
    }

    #[test]
    fn an_event_comes_again_once_its_endpoint_has_taken_it() {
        let (mut taken, webhook_id, event_id) =
            (Taken::default(), WebhookId::generate(), EventId::generate());
        for (second, status, again) in [
            (0, None, false),
            (1, Some(500), false),
            (2, Some(302), false),
            (3, Some(204), false),
            (4, Some(409), true),
            (5, None, true),
            (6, Some(200), true),
        ] {
            let answered = taken.answered(delivery(webhook_id, event_id, status, second));
            assert_eq!(answered, again, "{status:?}");
        }
        let other = WebhookId::generate();
        assert!(
            !taken.answered(delivery(other, event_id, Some(200), 7)),
            "another endpoint"
        );
        let event = EventId::generate();
        assert!(
            !taken.answered(delivery(webhook_id, event, Some(200), 8)),
            "another event"
        );
    }

    #[test]
    fn what_is_the_same_within_a_second_is_told_once() {
        let (mut taken, webhook_id, event_id) =
            (Taken::default(), WebhookId::generate(), EventId::generate());
        assert!(!taken.answered(delivery(webhook_id, event_id, Some(200), 0)));
        for (second, status, again) in [
            (0, 200, true),
            (0, 204, false),
            (0, 500, true),
            (0, 503, false),
            (1, 503, true),
            (1, 200, true),
        ] {
            let answered = taken.answered(delivery(webhook_id, event_id, Some(status), second));
            assert_eq!(answered, again, "{status} at {second}");
        }
    }

    #[test]
    fn no_more_is_remembered_than_may_be_and_the_newest_is() {
        let (mut taken, webhook_id) = (Taken::default(), WebhookId::generate());
        let events: Vec<_> = (0..=MAX_REMEMBERED).map(|_| EventId::generate()).collect();
        for event_id in &events {
            assert!(!taken.answered(delivery(webhook_id, *event_id, Some(200), 0)));
        }
        let remembered = (taken.known.len(), taken.oldest_first.len());
        assert_eq!(remembered, (MAX_REMEMBERED, MAX_REMEMBERED));
        assert!(taken.answered(delivery(webhook_id, events[MAX_REMEMBERED], None, 1)));
        assert!(
            !taken.answered(delivery(webhook_id, events[0], None, 2)),
            "the oldest is forgotten"
        );
        for _ in 0..MAX_TOLD + 1 {
            let (webhook_id, event_id) = (WebhookId::generate(), events[0]);
            for second in 0..2 {
                taken.answered(delivery(webhook_id, event_id, Some(200), second));
            }
        }
        assert!(
            taken.told.len() <= MAX_TOLD,
            "{} are remembered",
            taken.told.len()
        );
    }
}
