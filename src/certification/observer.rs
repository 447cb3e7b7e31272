//! What the sandbox has seen and not yet written down, and what it looks out for.
//!
//! Rule: to see is to take a lock for a moment, and an ordinary request takes none but to read; nothing waits for the
//! database. When more waits than may, the newest is lost and counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use time::OffsetDateTime;
use tokio::sync::Notify;
use vouchsafe_actors::domain::ids::{CredentialId, OrderId, PartnerId};

use super::observation::{Observation, ObservationKind};
use super::session::CertificationSession;
use super::delivered::{DeliveryResult, DeliveredEvents};
use crate::access::limits::RequestClass;

/// How many notes may wait to be written down: several seconds of a client that does nothing else.
pub const MAX_PENDING: usize = 1_024;

/// Something that was seen, as far as the request itself can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub partner_id: PartnerId,
    pub at: OffsetDateTime,
    pub payload: NotePayload,
}

/// What a note says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotePayload {
    /// All that has to be known.
    Seen(ObservationKind),
    /// So many codes of an order were fetched; whether these are all is looked up.
    CodesFetched {
        order_id: OrderId,
        vouchers: usize,
    },
}

/// The eyes of one process.
#[derive(Debug, Default)]
pub struct Observer {
    pending: Mutex<VecDeque<Note>>,
    note_added: Notify,
    dropped: AtomicU64,
    session: RwLock<CertificationSession>,
    /// Whether `open` holds anything: what an ordinary request reads, and all it reads.
    has_open_trials: AtomicBool,
    delivered: Mutex<DeliveredEvents>,
}

impl Observer {
    /// Something was seen of a partner.
    pub fn record(&self, partner_id: PartnerId, at: OffsetDateTime, seen: ObservationKind) {
        let observation = Observation { at, kind: seen };
        self.update_session(|open| open.apply(partner_id, &observation));
        self.enqueue(Note {
            partner_id,
            at,
            payload: NotePayload::Seen(observation.kind),
        });
    }

    /// So many codes of an order were fetched.
    pub fn record_codes_fetched(&self, partner_id: PartnerId, at: OffsetDateTime, order_id: OrderId, vouchers: usize) {
        self.enqueue(Note {
            partner_id,
            at,
            payload: NotePayload::CodesFetched { order_id, vouchers },
        });
    }

    /// A request passed its limit; `signed` says that its signature was right.
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
        let seen = {
            let open = self.session.read().unwrap_or_else(PoisonError::into_inner);
            let right = signed.then(|| open.on_valid_signature(partner_id)).flatten();
            [open.on_request(credential_id, class, at), right]
        };
        for seen in seen.into_iter().flatten() {
            self.record(partner_id, at, seen);
        }
    }

    /// A request was answered 429, with this Retry-After.
    pub fn record_rate_limited(
        &self,
        partner_id: PartnerId,
        credential_id: CredentialId,
        class: RequestClass,
        pause_s: u32,
        at: OffsetDateTime,
    ) {
        let open = self.session.read().unwrap_or_else(PoisonError::into_inner);
        let seen = open.on_rate_limited(credential_id, class, pause_s, at);
        drop(open);
        if let Some(seen) = seen {
            self.record(partner_id, at, seen);
        }
    }

    /// A delivery to a partner's endpoint was answered.
    pub fn record_delivery(&self, partner_id: PartnerId, delivery: DeliveryResult) {
        let mut taken = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        let again = taken.record_response(delivery);
        drop(taken);
        if again {
            let DeliveryResult {
                webhook_id,
                event_id,
                status,
                at,
            } = delivery;
            let seen = ObservationKind::EventAgain {
                webhook_id,
                event_id,
                status,
            };
            self.record(partner_id, at, seen);
        }
    }

    /// Takes over what was written down, here or on another node, oldest first; and forgets what is over.
    pub fn sync(&self, written: &[(PartnerId, Observation)], now: OffsetDateTime) {
        self.update_session(|open| {
            for (partner_id, observation) in written {
                open.apply(*partner_id, observation);
            }
            open.evict_expired(now);
        });
    }

    /// Returns as soon as something waits.
    pub async fn wait_for_note(&self) {
        self.note_added.notified().await;
    }

    /// Up to `limit` notes, oldest first. They wait until they are written.
    pub fn peek_oldest(&self, limit: usize) -> Vec<Note> {
        self.lock_pending().iter().take(limit).cloned().collect()
    }

    /// The oldest so many are written. One task writes, so they are those that it was given.
    pub fn discard_written(&self, notes: usize) {
        let mut pending = self.lock_pending();
        let written = notes.min(pending.len());
        drop(pending.drain(..written));
    }

    /// How many notes were lost since this was last asked.
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
        let mut open = self.session.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut open);
        self.has_open_trials.store(!open.is_empty(), Ordering::Relaxed);
    }

    fn lock_pending(&self) -> MutexGuard<'_, VecDeque<Note>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;
    use time::macros::datetime;

    use super::*;
    use crate::certification::RequestHash;

    const NOON: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

    fn kinds(notes: &[Note]) -> Vec<String> {
        let kind = |note: &Note| match &note.payload {
            NotePayload::Seen(seen) => serde_json::to_value(seen).unwrap()["what"]
                .as_str()
                .unwrap()
                .to_owned(),
            NotePayload::CodesFetched { .. } => "codes".to_owned(),
        };
        notes.iter().map(kind).collect()
    }

    #[test]
    fn an_ordinary_request_leaves_nothing() {
        let (watch, partner, key) = (Observer::default(), PartnerId::generate(), CredentialId::generate());
        watch.record_request(partner, key, RequestClass::Orders, true, NOON);
        assert_eq!(watch.peek_oldest(10), []);
    }

    #[test]
    fn what_follows_a_429_or_a_wrong_signature_is_told_once() {
        let (watch, partner, key) = (Observer::default(), PartnerId::generate(), CredentialId::generate());
        watch.record_rate_limited(partner, key, RequestClass::Orders, 30, NOON);
        let request = RequestHash::from_signed_request(std::iter::empty(), b"");
        watch.record(partner, NOON, ObservationKind::SignatureRefused { request });
        for after in [0, 2, 3, 4] {
            let at = NOON + Duration::seconds(after);
            watch.record_request(partner, key, RequestClass::Orders, after > 2, at);
        }
        let told = kinds(&watch.peek_oldest(10));
        assert_eq!(
            told,
            ["pause_asked", "signature_refused", "pause_broken", "signed_right"]
        );
    }

    #[test]
    fn what_another_node_saw_is_looked_out_for_too() {
        let (watch, partner, key) = (Observer::default(), PartnerId::generate(), CredentialId::generate());
        let (class, pause_s) = (RequestClass::General, 30);
        let seen = ObservationKind::PauseAsked {
            credential_id: key,
            class,
            pause_s,
        };
        watch.sync(&[(partner, Observation { at: NOON, kind: seen })], NOON);
        watch.record_request(partner, key, class, false, NOON + Duration::seconds(5));
        assert_eq!(kinds(&watch.peek_oldest(10)), ["pause_broken"]);
    }

    #[test]
    fn no_more_waits_than_may() {
        let (watch, partner) = (Observer::default(), PartnerId::generate());
        for _ in 0..MAX_PENDING + 3 {
            watch.record_codes_fetched(partner, NOON, OrderId::generate_at(NOON), 1);
        }
        assert_eq!(watch.take_dropped(), 3);
        assert_eq!(watch.peek_oldest(2).len(), 2);
        assert_eq!(
            watch.peek_oldest(MAX_PENDING * 2).len(),
            MAX_PENDING,
            "they wait still"
        );
        watch.discard_written(MAX_PENDING - 1);
        assert_eq!(watch.peek_oldest(MAX_PENDING).len(), 1);
    }
}
