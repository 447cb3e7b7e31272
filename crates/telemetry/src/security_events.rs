//! Security events since their last audit entry, by reason, credential and client address.
//!
//! An attacker can cause any number of events, and audit entries are never deleted. A key gets an entry with
//! its first event, and afterwards at most one an hour with the number of events since. Each reason has its
//! own [`MAX_CLIENTS`] keys, so that cheap events hide none of another reason. Above it, clients with a right
//! secret share a key per credential, and all others one per reason: a stolen secret stays visible however
//! many clients fail. Counts that have no entry yet are lost when the process ends; log and metrics have had
//! them.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use time::OffsetDateTime;
use vouchsafe_security::security_event::{
    HeldCredential, SecurityEvent, SecurityEventKey, SecurityEventReason, SecurityEventSummary,
};

/// Time between two audit entries of a key.
pub const AUDIT_INTERVAL: Duration = Duration::from_hours(1);

/// Keys of a reason with a client, and so their entries of an hour on a node.
pub const MAX_CLIENTS: usize = 256;

/// Keys of a reason with a credential and without a client.
pub const MAX_CREDENTIALS: usize = 256;

/// Whether the log shows an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogDecision {
    /// The first event of a credential, which may be the only sign that its secret has leaked.
    Always,
    /// If the client is within the limit of failed authentications.
    WithinRateLimit,
    /// The event has no count of its own: a flood from many addresses.
    Never,
}

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

    fn count(&mut self, at: OffsetDateTime) {
        self.add(Unaudited {
            count: 1,
            first_at: at,
            last_at: at,
        });
    }

    fn was_audited_within(&self, period: Duration, now: Duration) -> bool {
        self.audited_at
            .is_some_and(|audited_at| now < audited_at + period)
    }
}

/// The tallies of a reason.
#[derive(Debug, Default)]
struct ReasonTallies {
    /// Keys with a client: at most [`MAX_CLIENTS`].
    clients: HashMap<SecurityEventKey, Tally>,
    /// Keys without a client: those of at most [`MAX_CREDENTIALS`] credentials, and the one of all other
    /// events.
    shared: HashMap<SecurityEventKey, Tally>,
}

impl ReasonTallies {
    fn record(&mut self, event: &SecurityEvent, at: OffsetDateTime) -> LogDecision {
        let key = SecurityEventKey::of(event);
        let is_new = !self.clients.contains_key(&key);
        if !is_new || self.clients.len() < MAX_CLIENTS {
            let decision = if is_new && self.is_first(event.credential) {
                LogDecision::Always
            } else {
                LogDecision::WithinRateLimit
            };
            self.clients.entry(key).or_default().count(at);
            return decision;
        }
        let of_credential = SecurityEventKey { client: None, ..key };
        let is_new = !self.shared.contains_key(&of_credential);
        if is_new && self.shared.len() >= MAX_CREDENTIALS {
            let of_reason = SecurityEventKey {
                credential: None,
                ..of_credential
            };
            self.shared.entry(of_reason).or_default().count(at);
            // Each may be the first event of its credential.
            return event
                .credential
                .map_or(LogDecision::Never, |_| LogDecision::WithinRateLimit);
        }
        let decision = if is_new && self.is_first(event.credential) {
            LogDecision::Always
        } else {
            LogDecision::Never
        };
        self.shared.entry(of_credential).or_default().count(at);
        decision
    }

    /// Returns true if no key has this credential. Reads all keys, so it is called for new keys only.
    fn is_first(&self, credential: Option<HeldCredential>) -> bool {
        let mut keys = self.clients.keys().chain(self.shared.keys());
        credential.is_some() && keys.all(|key| key.credential != credential)
    }

    fn tallies_of(&mut self, key: &SecurityEventKey) -> &mut HashMap<SecurityEventKey, Tally> {
        if key.client.is_some() {
            &mut self.clients
        } else {
            &mut self.shared
        }
    }
}

#[derive(Debug, Default)]
pub struct SecurityEvents(Mutex<HashMap<SecurityEventReason, ReasonTallies>>);

impl SecurityEvents {
    /// Counts an event.
    pub fn record(&self, event: &SecurityEvent, at: OffsetDateTime) -> LogDecision {
        self.lock().entry(event.reason).or_default().record(event, at)
    }

    /// Takes what is due for an audit entry at `now`, in monotonic time, and forgets keys without an event in
    /// the hour after their last entry.
    pub fn take_due(&self, now: Duration) -> Vec<SecurityEventSummary> {
        let mut due = Vec::new();
        for reason in self.lock().values_mut() {
            for tallies in [&mut reason.clients, &mut reason.shared] {
                take_due_of(tallies, now, &mut due);
            }
        }
        due
    }

    /// Gives back what could not be written. It is due at once.
    pub fn put_back(&self, due: Vec<SecurityEventSummary>) {
        let mut reasons = self.lock();
        for summary in due {
            let key = summary.key;
            let tallies = reasons.entry(key.reason).or_default().tallies_of(&key);
            let tally = tallies.entry(key).or_default();
            tally.audited_at = None;
            tally.add(Unaudited {
                count: summary.count,
                first_at: summary.first_at,
                last_at: summary.last_at,
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SecurityEventReason, ReasonTallies>> {
        self.0.lock()
    }
}

fn take_due_of(
    tallies: &mut HashMap<SecurityEventKey, Tally>,
    now: Duration,
    due: &mut Vec<SecurityEventSummary>,
) {
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
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use time::macros::datetime;
    use vouchsafe_domain::ids::{CredentialId, PartnerId};

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

    fn new_credential() -> HeldCredential {
        HeldCredential {
            partner_id: PartnerId::generate(),
            credential_id: CredentialId::generate(),
        }
    }

    fn foreign(credential: HeldCredential, address: u32) -> SecurityEvent {
        SecurityEvent {
            reason: SecurityEventReason::ForeignAddress,
            credential: Some(credential),
            ..event(address)
        }
    }

    fn counts(due: &[SecurityEventSummary]) -> Vec<u64> {
        due.iter().map(|summary| summary.count).collect()
    }

    #[test]
    fn first_event_is_due_at_once_and_the_next_ones_after_an_hour() {
        let events = SecurityEvents::default();
        assert_eq!(events.record(&event(1), NOON), LogDecision::WithinRateLimit);
        assert_eq!(counts(&events.take_due(SECOND)), [1]);
        for n in 1..=1_000 {
            events.record(&event(1), NOON + time::Duration::seconds(n));
        }
        events.record(&event(2), NOON);
        assert_eq!(
            counts(&events.take_due(2 * SECOND)),
            [1],
            "another address has an entry"
        );
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
        let reasons = events.lock();
        let keys = reasons.values().map(|reason| reason.clients.len());
        assert_eq!(keys.sum::<usize>(), 0, "keys without events are forgotten");
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
        let logged = (0..10_000).filter(|n| events.record(&event(*n), NOON) != LogDecision::Never);
        assert_eq!(logged.count(), MAX_CLIENTS);
        let due = events.take_due(SECOND);
        assert_eq!(due.len(), MAX_CLIENTS + 1);
        let shared = due.iter().find(|summary| summary.key.client.is_none());
        let rest = u64::try_from(10_000 - MAX_CLIENTS).unwrap();
        assert_eq!(shared.map(|summary| summary.count), Some(rest));
        assert_eq!(events.record(&event(20_000), NOON), LogDecision::Never);
        assert_eq!(events.take_due(AUDIT_INTERVAL), []);
    }

    #[test]
    fn stolen_secret_is_visible_in_a_flood_of_events_without_one() {
        let events = SecurityEvents::default();
        for n in 0..10_000 {
            events.record(&event(n), NOON);
        }
        drop(events.take_due(SECOND));
        let stolen = foreign(new_credential(), 1);
        assert_eq!(events.record(&stolen, NOON), LogDecision::Always);
        assert_eq!(events.record(&stolen, NOON), LogDecision::WithinRateLimit);
        let due = events.take_due(2 * SECOND);
        assert_eq!(counts(&due), [2]);
        assert_eq!(due[0].key, SecurityEventKey::of(&stolen));
    }

    #[test]
    fn stolen_secret_is_visible_in_a_flood_with_another_stolen_secret() {
        let events = SecurityEvents::default();
        let loud = new_credential();
        let always = (0..10_000).filter(|n| events.record(&foreign(loud, *n), NOON) == LogDecision::Always);
        assert_eq!(always.count(), 1);
        drop(events.take_due(SECOND));
        let quiet = foreign(new_credential(), 20_000);
        assert_eq!(events.record(&quiet, NOON), LogDecision::Always);
        assert_eq!(events.record(&quiet, NOON), LogDecision::Never);
        let due = events.take_due(2 * SECOND);
        assert_eq!(counts(&due), [2]);
        assert_eq!(
            due[0].key,
            SecurityEventKey {
                client: None,
                ..SecurityEventKey::of(&quiet)
            }
        );
    }

    #[test]
    fn keys_of_many_stolen_secrets_are_bounded() {
        let events = SecurityEvents::default();
        for n in 0..10_000 {
            let stolen = foreign(new_credential(), n);
            assert_ne!(events.record(&stolen, NOON), LogDecision::Never, "{n}");
        }
        assert_eq!(events.take_due(SECOND).len(), MAX_CLIENTS + MAX_CREDENTIALS + 1);
    }

    #[test]
    fn credentials_have_entries_of_their_own() {
        let events = SecurityEvents::default();
        for _ in 0..2 {
            events.record(&foreign(new_credential(), 1), NOON);
        }
        assert_eq!(counts(&events.take_due(SECOND)), [1, 1]);
    }
}
