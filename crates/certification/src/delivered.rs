//! Repeated deliveries of events that an endpoint accepted before. Pure.
//!
//! Remembers the newest deliveries of this process. A forgotten one starts no trial, so it cannot fail a
//! check. Equal results of an endpoint within a second are reported once, so that a replay of ten thousand
//! events does not store ten thousand notes.

use std::collections::{HashMap, HashSet, VecDeque};

use time::{Duration, OffsetDateTime};
use vouchsafe_domain::ids::{EventId, WebhookId};

/// The deliveries of some thousand orders, about a megabyte.
pub const MAX_REMEMBERED: usize = 10_000;

/// More endpoints than a sandbox serves within a second.
pub const MAX_ENDPOINTS: usize = 1_000;

/// Equal results of an endpoint are reported at most once per interval.
pub const REPORT_INTERVAL: Duration = Duration::SECOND;

#[derive(Debug, Clone, Copy)]
pub struct DeliveryResult {
    pub webhook_id: WebhookId,
    pub event_id: EventId,
    /// The response status; `None` without a response.
    pub status: Option<u16>,
    pub at: OffsetDateTime,
}

/// Events accepted by endpoints.
#[derive(Debug, Default)]
pub struct DeliveredEvents {
    events: HashSet<(WebhookId, EventId)>,
    oldest_first: VecDeque<(WebhookId, EventId)>,
    last_reported: HashMap<WebhookId, (OffsetDateTime, bool)>,
}

impl DeliveredEvents {
    /// Records a delivery. Returns whether to report it: the endpoint had accepted the event before.
    pub fn record_response(&mut self, delivery: DeliveryResult) -> bool {
        let key = (delivery.webhook_id, delivery.event_id);
        let accepted = matches!(delivery.status, Some(200..=299));
        if self.events.contains(&key) {
            return self.is_reportable(delivery.webhook_id, accepted, delivery.at);
        }
        if accepted {
            self.remember(key);
        }
        false
    }

    fn is_reportable(&mut self, webhook_id: WebhookId, accepted: bool, at: OffsetDateTime) -> bool {
        if let Some((reported_at, was_accepted)) = self.last_reported.get(&webhook_id)
            && *was_accepted == accepted
            && at < *reported_at + REPORT_INTERVAL
        {
            return false;
        }
        if self.last_reported.len() >= MAX_ENDPOINTS {
            self.last_reported.clear();
        }
        self.last_reported.insert(webhook_id, (at, accepted));
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

    fn delivery(
        webhook_id: WebhookId,
        event_id: EventId,
        status: Option<u16>,
        second: i64,
    ) -> DeliveryResult {
        DeliveryResult {
            webhook_id,
            event_id,
            status,
            at: NOON + Duration::seconds(second),
        }
    }

    #[test]
    fn event_repeats_once_its_endpoint_accepted_it() {
        let mut accepted = DeliveredEvents::default();
        let (webhook_id, event_id) = (WebhookId::generate(), EventId::generate());
        for (second, status, again) in [
            (0, None, false),
            (1, Some(500), false),
            (2, Some(302), false),
            (3, Some(204), false),
            (4, Some(409), true),
            (5, None, true),
            (6, Some(200), true),
        ] {
            let is_reported = accepted.record_response(delivery(webhook_id, event_id, status, second));
            assert_eq!(is_reported, again, "{status:?}");
        }
        let other = WebhookId::generate();
        assert!(
            !accepted.record_response(delivery(other, event_id, Some(200), 7)),
            "another endpoint"
        );
        let event = EventId::generate();
        assert!(
            !accepted.record_response(delivery(webhook_id, event, Some(200), 8)),
            "another event"
        );
    }

    #[test]
    fn equal_results_within_a_second_are_reported_once() {
        let mut accepted = DeliveredEvents::default();
        let (webhook_id, event_id) = (WebhookId::generate(), EventId::generate());
        assert!(!accepted.record_response(delivery(webhook_id, event_id, Some(200), 0)));
        for (second, status, again) in [
            (0, 200, true),
            (0, 204, false),
            (0, 500, true),
            (0, 503, false),
            (1, 503, true),
            (1, 200, true),
        ] {
            let is_reported = accepted.record_response(delivery(webhook_id, event_id, Some(status), second));
            assert_eq!(is_reported, again, "{status} at {second}");
        }
    }

    #[test]
    fn memory_is_bounded_and_keeps_the_newest() {
        let (mut accepted, webhook_id) = (DeliveredEvents::default(), WebhookId::generate());
        let events: Vec<_> = (0..=MAX_REMEMBERED).map(|_| EventId::generate()).collect();
        for event_id in &events {
            assert!(!accepted.record_response(delivery(webhook_id, *event_id, Some(200), 0)));
        }
        let remembered = (accepted.events.len(), accepted.oldest_first.len());
        assert_eq!(remembered, (MAX_REMEMBERED, MAX_REMEMBERED));
        assert!(accepted.record_response(delivery(webhook_id, events[MAX_REMEMBERED], None, 1)));
        assert!(
            !accepted.record_response(delivery(webhook_id, events[0], None, 2)),
            "the oldest was evicted"
        );
        for _ in 0..MAX_ENDPOINTS + 1 {
            let (webhook_id, event_id) = (WebhookId::generate(), events[0]);
            for second in 0..2 {
                accepted.record_response(delivery(webhook_id, event_id, Some(200), second));
            }
        }
        assert!(
            accepted.last_reported.len() <= MAX_ENDPOINTS,
            "{} endpoints are remembered",
            accepted.last_reported.len()
        );
    }
}
