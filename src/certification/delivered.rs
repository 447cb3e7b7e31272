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
pub const MAX_ENDPOINTS: usize = 1_000;

/// For how long the same is not told again.
pub const REPORT_INTERVAL: Duration = Duration::SECOND;

/// A delivery that was answered.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryResult {
    pub webhook_id: WebhookId,
    pub event_id: EventId,
    /// The status of the answer; `None` if there was none.
    pub status: Option<u16>,
    pub at: OffsetDateTime,
}

/// What endpoints have taken.
#[derive(Debug, Default)]
pub struct DeliveredEvents {
    events: HashSet<(WebhookId, EventId)>,
    oldest_first: VecDeque<(WebhookId, EventId)>,
    last_reported: HashMap<WebhookId, (OffsetDateTime, bool)>,
}

impl DeliveredEvents {
    /// A delivery was answered. Says whether it is worth being told: the endpoint had taken the event before.
    pub fn record_response(&mut self, delivery: DeliveryResult) -> bool {
        let key = (delivery.webhook_id, delivery.event_id);
        let taken = matches!(delivery.status, Some(200..=299));
        if self.events.contains(&key) {
            return self.is_reportable(delivery.webhook_id, taken, delivery.at);
        }
        if taken {
            self.remember(key);
        }
        false
    }

    fn is_reportable(&mut self, webhook_id: WebhookId, taken: bool, at: OffsetDateTime) -> bool {
        if let Some((told_at, told)) = self.last_reported.get(&webhook_id)
            && *told == taken
            && at < *told_at + REPORT_INTERVAL
        {
            return false;
        }
        if self.last_reported.len() >= MAX_ENDPOINTS {
            self.last_reported.clear();
        }
        self.last_reported.insert(webhook_id, (at, taken));
        true
    }

    fn remember(&mut self, key: (WebhookId, EventId)) {
        if self.oldest_first.len() >= MAX_REMEMBERED
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.events.remove(&oldest);
        }
        self.events.insert(key);
        self.oldest_first.push_back(key);
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOON: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

    fn delivery(webhook_id: WebhookId, event_id: EventId, status: Option<u16>, second: i64) -> DeliveryResult {
        let at = NOON + Duration::seconds(second);
        DeliveryResult {
            webhook_id,
            event_id,
            status,
            at,
        }
    }

    #[test]
    fn an_event_comes_again_once_its_endpoint_has_taken_it() {
        let (mut taken, webhook_id, event_id) =
            (DeliveredEvents::default(), WebhookId::generate(), EventId::generate());
        for (second, status, again) in [
            (0, None, false),
            (1, Some(500), false),
            (2, Some(302), false),
            (3, Some(204), false),
            (4, Some(409), true),
            (5, None, true),
            (6, Some(200), true),
        ] {
            let answered = taken.record_response(delivery(webhook_id, event_id, status, second));
            assert_eq!(answered, again, "{status:?}");
        }
        let other = WebhookId::generate();
        assert!(
            !taken.record_response(delivery(other, event_id, Some(200), 7)),
            "another endpoint"
        );
        let event = EventId::generate();
        assert!(
            !taken.record_response(delivery(webhook_id, event, Some(200), 8)),
            "another event"
        );
    }

    #[test]
    fn what_is_the_same_within_a_second_is_told_once() {
        let (mut taken, webhook_id, event_id) =
            (DeliveredEvents::default(), WebhookId::generate(), EventId::generate());
        assert!(!taken.record_response(delivery(webhook_id, event_id, Some(200), 0)));
        for (second, status, again) in [
            (0, 200, true),
            (0, 204, false),
            (0, 500, true),
            (0, 503, false),
            (1, 503, true),
            (1, 200, true),
        ] {
            let answered = taken.record_response(delivery(webhook_id, event_id, Some(status), second));
            assert_eq!(answered, again, "{status} at {second}");
        }
    }

    #[test]
    fn no_more_is_remembered_than_may_be_and_the_newest_is() {
        let (mut taken, webhook_id) = (DeliveredEvents::default(), WebhookId::generate());
        let events: Vec<_> = (0..=MAX_REMEMBERED).map(|_| EventId::generate()).collect();
        for event_id in &events {
            assert!(!taken.record_response(delivery(webhook_id, *event_id, Some(200), 0)));
        }
        let remembered = (taken.events.len(), taken.oldest_first.len());
        assert_eq!(remembered, (MAX_REMEMBERED, MAX_REMEMBERED));
        assert!(taken.record_response(delivery(webhook_id, events[MAX_REMEMBERED], None, 1)));
        assert!(
            !taken.record_response(delivery(webhook_id, events[0], None, 2)),
            "the oldest is forgotten"
        );
        for _ in 0..MAX_ENDPOINTS + 1 {
            let (webhook_id, event_id) = (WebhookId::generate(), events[0]);
            for second in 0..2 {
                taken.record_response(delivery(webhook_id, event_id, Some(200), second));
            }
        }
        assert!(
            taken.last_reported.len() <= MAX_ENDPOINTS,
            "{} are remembered",
            taken.last_reported.len()
        );
    }
}
