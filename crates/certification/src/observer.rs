//! In-memory queue of sandbox observations.
//!
//! Observing takes a mutex briefly, for an ordinary request only a read of an atomic flag; no request waits
//! for the database. When the queue is full, the newest observation is dropped and counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock};
use time::OffsetDateTime;
use tokio::sync::Notify;
use vouchsafe_domain::certification::observation::{Observation, ObservationKind};
use vouchsafe_domain::ids::{CredentialId, OrderId, PartnerId};
use vouchsafe_domain::limits::RequestClass;

use super::delivered::{DeliveredEvents, DeliveryResult};
use super::session::CertificationSession;

/// Capacity of the queue: several seconds of a client that does nothing else.
pub const MAX_PENDING: usize = 1_024;

/// An observation with the data that the request has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub partner_id: PartnerId,
    pub at: OffsetDateTime,
    pub payload: NotePayload,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotePayload {
    /// A complete observation.
    Seen(ObservationKind),
    /// Codes were fetched; the recorder determines whether they are all codes of the order.
    CodesFetched { order_id: OrderId, vouchers: usize },
}

/// Collects the observations of one process.
#[derive(Debug, Default)]
pub struct Observer {
    pending: Mutex<VecDeque<Note>>,
    note_added: Notify,
    dropped: AtomicU64,
    session: RwLock<CertificationSession>,
    /// Whether `session` is non-empty: the only field that an ordinary request reads.
    has_open_trials: AtomicBool,
    delivered: Mutex<DeliveredEvents>,
}

impl Observer {
    /// Queues an observation of a partner.
    pub fn record(&self, partner_id: PartnerId, at: OffsetDateTime, kind: ObservationKind) {
        let observation = Observation { at, kind };
        self.update_session(|session| session.apply(partner_id, &observation));
        self.enqueue(Note {
            partner_id,
            at,
            payload: NotePayload::Seen(observation.kind),
        });
    }

    pub fn record_codes_fetched(
        &self,
        partner_id: PartnerId,
        at: OffsetDateTime,
        order_id: OrderId,
        vouchers: usize,
    ) {
        self.enqueue(Note {
            partner_id,
            at,
            payload: NotePayload::CodesFetched { order_id, vouchers },
        });
    }

    /// A request within its rate limit; `signed`: its signature is valid.
    pub fn record_request(
        &self,
        partner_id: PartnerId,
        credential_id: CredentialId,
        class: RequestClass,
        signed: bool,
        at: OffsetDateTime,
    ) {
        if !self.has_open_trials.load(Ordering::Relaxed) {
            return;
        }
        let kinds = {
            let session = self.session.read();
            let on_signature = signed.then(|| session.on_valid_signature(partner_id)).flatten();
            [session.on_request(credential_id, class, at), on_signature]
        };
        for kind in kinds.into_iter().flatten() {
            self.record(partner_id, at, kind);
        }
    }

    /// Records a 429 response with this Retry-After.
    pub fn record_rate_limited(
        &self,
        partner_id: PartnerId,
        credential_id: CredentialId,
        class: RequestClass,
        pause_s: u32,
        at: OffsetDateTime,
    ) {
        let session = self.session.read();
        let kind = session.on_rate_limited(credential_id, class, pause_s, at);
        drop(session);
        if let Some(kind) = kind {
            self.record(partner_id, at, kind);
        }
    }

    /// A delivery to an endpoint of the partner.
    pub fn record_delivery(&self, partner_id: PartnerId, delivery: DeliveryResult) {
        let mut delivered = self.delivered.lock();
        let is_repeated = delivered.record_response(delivery);
        drop(delivered);
        if is_repeated {
            let DeliveryResult {
                webhook_id,
                event_id,
                status,
                at,
            } = delivery;
            let kind = ObservationKind::EventRedelivered {
                webhook_id,
                event_id,
                status,
            };
            self.record(partner_id, at, kind);
        }
    }

    /// Applies stored observations of any node, oldest first, and evicts expired trials.
    pub fn sync(&self, written: &[(PartnerId, Observation)], now: OffsetDateTime) {
        self.update_session(|session| {
            for (partner_id, observation) in written {
                session.apply(*partner_id, observation);
            }
            session.evict_expired(now);
        });
    }

    /// Returns as soon as a note is queued.
    pub async fn wait_for_note(&self) {
        self.note_added.notified().await;
    }

    /// Up to `limit` notes, oldest first. They stay queued until they are written.
    pub fn peek_oldest(&self, limit: usize) -> Vec<Note> {
        self.lock_pending().iter().take(limit).cloned().collect()
    }

    /// Removes the oldest `notes` notes. Only one task writes, so these are the ones that it peeked.
    pub fn discard_written(&self, notes: usize) {
        let mut pending = self.lock_pending();
        let written = notes.min(pending.len());
        drop(pending.drain(..written));
    }

    /// Returns and resets the number of dropped notes.
    pub fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    fn enqueue(&self, note: Note) {
        let mut pending = self.lock_pending();
        if pending.len() < MAX_PENDING {
            pending.push_back(note);
            drop(pending);
            self.note_added.notify_one();
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn update_session(&self, change: impl FnOnce(&mut CertificationSession)) {
        let mut session = self.session.write();
        change(&mut session);
        self.has_open_trials.store(!session.is_empty(), Ordering::Relaxed);
    }

    fn lock_pending(&self) -> MutexGuard<'_, VecDeque<Note>> {
        self.pending.lock()
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;
    use time::macros::datetime;
    use vouchsafe_domain::certification::observation::RequestHash;
    use vouchsafe_domain::idempotency::Fingerprint;

    use super::*;

    const NOON: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

    fn kinds(notes: &[Note]) -> Vec<String> {
        let kind = |note: &Note| match &note.payload {
            NotePayload::Seen(kind) => serde_json::to_value(kind).unwrap()["kind"]
                .as_str()
                .unwrap()
                .to_owned(),
            NotePayload::CodesFetched { .. } => "codes".to_owned(),
        };
        notes.iter().map(kind).collect()
    }

    fn observer() -> (Observer, PartnerId, CredentialId) {
        let observer = Observer::default();
        (observer, PartnerId::generate(), CredentialId::generate())
    }

    #[test]
    fn ordinary_request_is_not_observed() {
        let (observer, partner, key) = observer();
        observer.record_request(partner, key, RequestClass::Orders, true, NOON);
        assert_eq!(observer.peek_oldest(10), []);
    }

    #[test]
    fn request_after_429_or_wrong_signature_is_observed_once() {
        let (observer, partner, key) = observer();
        observer.record_rate_limited(partner, key, RequestClass::Orders, 30, NOON);
        let request = RequestHash::from_fingerprint(Fingerprint([0; 32]));
        observer.record(partner, NOON, ObservationKind::SignatureRefused { request });
        for after in [0, 2, 3, 4] {
            let at = NOON + Duration::seconds(after);
            observer.record_request(partner, key, RequestClass::Orders, after > 2, at);
        }
        let observed = kinds(&observer.peek_oldest(10));
        assert_eq!(
            observed,
            [
                "rate_limited",
                "signature_refused",
                "retry_after_ignored",
                "signature_valid"
            ]
        );
    }

    #[test]
    fn observation_of_another_node_opens_a_trial() {
        let (observer, partner, key) = observer();
        let (class, pause_s) = (RequestClass::General, 30);
        let kind = ObservationKind::RateLimited {
            credential_id: key,
            class,
            pause_s,
        };
        observer.sync(&[(partner, Observation { at: NOON, kind })], NOON);
        observer.record_request(partner, key, class, false, NOON + Duration::seconds(5));
        assert_eq!(kinds(&observer.peek_oldest(10)), ["retry_after_ignored"]);
    }

    #[test]
    fn queue_full_drops_the_newest() {
        let (observer, partner) = (Observer::default(), PartnerId::generate());
        for _ in 0..MAX_PENDING + 3 {
            observer.record_codes_fetched(partner, NOON, OrderId::generate_at(NOON), 1);
        }
        assert_eq!(observer.take_dropped(), 3);
        assert_eq!(observer.peek_oldest(2).len(), 2);
        assert_eq!(
            observer.peek_oldest(MAX_PENDING * 2).len(),
            MAX_PENDING,
            "they stay queued"
        );
        observer.discard_written(MAX_PENDING - 1);
        assert_eq!(observer.peek_oldest(MAX_PENDING).len(), 1);
    }
}
