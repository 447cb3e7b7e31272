//! Security events since their last audit entry, by reason, credential and client address.
//!
//! An attacker can cause any number of events, and audit entries are never deleted. A key gets an entry with its first event, and
//! afterwards at most one an hour with the number of events since; keys above [`MAX_KEYS`] share one per reason. Counts that have no
//! entry yet are lost when the process ends; log and metrics have had them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use time::OffsetDateTime;
use vouchsafe_security::security_event::{SecurityEvent, SecurityEventKey, SecurityEventSummary};

/// Time between two audit entries of a key.
pub const AUDIT_INTERVAL: Duration = Duration::from_hours(1);

/// Keys with an entry of their own, and so the entries of an hour on a node.
pub const MAX_KEYS: usize = 256;

/// The events of a key since its last audit entry, of which there may be none.
#[derive(Debug, Default)]
struct Tally {
    unaudited: Option<Unaudited>,
    /// Monotonic time of the last audit entry.
    audited_at: Option<Duration>,
}

#[derive(Debug)]
struct Unaudited {
    count: u64,
    first_at: OffsetDateTime,
    last_at: OffsetDateTime,
}

impl Tally {
    fn add(&mut self, more: Unaudited) {
        match &mut self.unaudited {
            Some(all) => {
                all.count += more.count;
                all.first_at = all.first_at.min(more.first_at);
                all.last_at = all.last_at.max(more.last_at);
            }
            none => *none = Some(more),
        }
    }

    fn was_audited_within(&self, period: Duration, now: Duration) -> bool {
        self.audited_at
            .is_some_and(|audited_at| now < audited_at + period)
    }
}

/// Tallies by key. Their number is bounded by [`MAX_KEYS`] and the reasons.
#[derive(Debug, Default)]
pub struct SecurityEvents(Mutex<HashMap<SecurityEventKey, Tally>>);

impl SecurityEvents {
    /// Counts an event. Returns false if its key shares the count of its reason: a flood from many addresses.
    pub fn record(&self, event: &SecurityEvent, at: OffsetDateTime) -> bool {
        let key = SecurityEventKey::of(event);
        let mut tallies = self.lock();
        let has_own_count = tallies.len() < MAX_KEYS || tallies.contains_key(&key);
        let key = if has_own_count {
            key
        } else {
            SecurityEventKey {
                credential: None,
                client: None,
                ..key
            }
        };
        tallies.entry(key).or_default().add(Unaudited {
            count: 1,
            first_at: at,
            last_at: at,
        });
        has_own_count
    }

    /// Takes what is due for an audit entry at `now`, in monotonic time, and forgets keys without an event in the hour after their last
    /// entry.
    pub fn take_due(&self, now: Duration) -> Vec<SecurityEventSummary> {
        let mut tallies = self.lock();
        let mut due = Vec::new();
        tallies.retain(|key, tally| {
            if tally.was_audited_within(AUDIT_INTERVAL, now) {
                return true;
            }
            let Some(unaudited) = tally.unaudited.take() else {
                return false;
            };
            tally.audited_at = Some(now);
            due.push(SecurityEventSummary {
                key: *key,
                count: unaudited.count,
                first_at: unaudited.first_at,
                last_at: unaudited.last_at,
            });
            true
        });
        due
    }

    /// Gives back what could not be written. It is due at once.
    pub fn put_back(&self, due: Vec<SecurityEventSummary>) {
        let mut tallies = self.lock();
        for summary in due {
            let tally = tallies.entry(summary.key).or_default();
            tally.audited_at = None;
            tally.add(Unaudited {
                count: summary.count,
                first_at: summary.first_at,
                last_at: summary.last_at,
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SecurityEventKey, Tally>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use time::macros::datetime;
    use vouchsafe_domain::ids::{CredentialId, PartnerId};
    use vouchsafe_security::security_event::{HeldCredential, SecurityEventReason};

    use super::*;

    const NOON: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);
    const SECOND: Duration = Duration::from_secs(1);

    fn event(address: u32) -> SecurityEvent {
        SecurityEvent {
            reason: SecurityEventReason::OperatorToken,
            credential: None,
            address: IpAddr::V4(Ipv4Addr::from(address)),
        }
    }

    fn counts(due: &[SecurityEventSummary]) -> Vec<u64> {
        due.iter().map(|summary| summary.count).collect()
    }

    #[test]
    fn first_event_is_due_at_once_and_the_next_ones_after_an_hour() {
        let events = SecurityEvents::default();
        assert!(events.record(&event(1), NOON));
        assert_eq!(counts(&events.take_due(SECOND)), [1]);
        for n in 1..=1_000 {
            assert!(events.record(&event(1), NOON + time::Duration::seconds(n)));
        }
        assert!(events.record(&event(2), NOON), "another address has an entry");
        assert_eq!(counts(&events.take_due(2 * SECOND)), [1]);
        assert_eq!(events.take_due(AUDIT_INTERVAL), []);
        let due = events.take_due(AUDIT_INTERVAL + SECOND);
        assert_eq!(counts(&due), [1_000]);
        assert_eq!(
            (due[0].first_at, due[0].last_at),
            (
                NOON + time::Duration::seconds(1),
                NOON + time::Duration::seconds(1_000)
            )
        );
        assert_eq!(events.take_due(3 * AUDIT_INTERVAL), []);
        assert!(events.lock().is_empty(), "keys without events are forgotten");
    }

    #[test]
    fn events_that_were_not_written_are_due_again() {
        let events = SecurityEvents::default();
        events.record(&event(1), NOON);
        let due = events.take_due(SECOND);
        events.record(&event(1), NOON + time::Duration::seconds(5));
        events.put_back(due);
        let due = events.take_due(2 * SECOND);
        assert_eq!(counts(&due), [2]);
        assert_eq!(
            (due[0].first_at, due[0].last_at),
            (NOON, NOON + time::Duration::seconds(5))
        );
    }

    #[test]
    fn flood_from_many_addresses_shares_an_entry() {
        let events = SecurityEvents::default();
        let own = (0..10_000).filter(|n| events.record(&event(*n), NOON)).count();
        assert_eq!(own, MAX_KEYS);
        let due = events.take_due(SECOND);
        assert_eq!(due.len(), MAX_KEYS + 1);
        let shared = due.iter().find(|summary| summary.key.client.is_none());
        let rest = u64::try_from(10_000 - MAX_KEYS).unwrap();
        assert_eq!(shared.map(|summary| summary.count), Some(rest));
        assert!(!events.record(&event(20_000), NOON));
        assert_eq!(events.take_due(AUDIT_INTERVAL), []);
    }

    #[test]
    fn credentials_have_entries_of_their_own() {
        let events = SecurityEvents::default();
        for _ in 0..2 {
            let credential = HeldCredential {
                partner_id: PartnerId::generate(),
                credential_id: CredentialId::generate(),
            };
            events.record(
                &SecurityEvent {
                    credential: Some(credential),
                    ..event(1)
                },
                NOON,
            );
        }
        assert_eq!(counts(&events.take_due(SECOND)), [1, 1]);
    }
}
