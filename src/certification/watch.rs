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

use super::observation::{Observation, Seen};
use super::open::Open;
use super::taken::{Delivery, Taken};
use crate::access::limits::Class;

/// How many notes may wait to be written down: several seconds of a client that does nothing else.
pub const MAX_WAITING: usize = 1_024;

/// Something that was seen, as far as the request itself can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub partner_id: PartnerId,
    pub at: OffsetDateTime,
    pub what: What,
}

/// What a note says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// All that has to be known.
    Seen(Seen),
    /// So many codes of an order were fetched; whether these are all is looked up.
    CodesFetched {
        order_id: OrderId,
        vouchers: usize,
    },
}

/// The eyes of one process.
#[derive(Debug, Default)]
pub struct Watch {
    waiting: Mutex<VecDeque<Note>>,
    woken: Notify,
    lost: AtomicU64,
    open: RwLock<Open>,
    /// Whether `open` holds anything: what an ordinary request reads, and all it reads.
    looks_out: AtomicBool,
    taken: Mutex<Taken>,
}

impl Watch {
    /// Something was seen of a partner.
    pub fn saw(&self, partner_id: PartnerId, at: OffsetDateTime, seen: Seen) {
        let observation = Observation { at, seen };
        self.look_out(|open| open.note(partner_id, &observation));
        self.write(Note {
            partner_id,
            at,
            what: What::Seen(observation.seen),
        });
    }

    /// So many codes of an order were fetched.
    pub fn saw_codes(&self, partner_id: PartnerId, at: OffsetDateTime, order_id: OrderId, vouchers: usize) {
        self.write(Note {
            partner_id,
            at,
            what: What::CodesFetched { order_id, vouchers },
        });
    }

    /// A request passed its limit; `signed` says that its signature was right.
    pub fn saw_request(
        &self,
        partner_id: PartnerId,
        credential_id: CredentialId,
        class: Class,
        signed: bool,
        at: OffsetDateTime,
    ) {
        if !self.looks_out.load(Ordering::Relaxed) {
            return;
        }
        let seen = {
            let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
            let right = signed.then(|| open.signed(partner_id)).flatten();
            [open.requested(credential_id, class, at), right]
        };
        for seen in seen.into_iter().flatten() {
            self.saw(partner_id, at, seen);
        }
    }

    /// A request was answered 429, with this Retry-After.
    pub fn saw_limit(
        &self,
        partner_id: PartnerId,
        credential_id: CredentialId,
        class: Class,
        pause_s: u32,
        at: OffsetDateTime,
    ) {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let seen = open.limited(credential_id, class, pause_s, at);
        drop(open);
        if let Some(seen) = seen {
            self.saw(partner_id, at, seen);
        }
    }

    /// A delivery to a partner's endpoint was answered.
    pub fn saw_delivery(&self, partner_id: PartnerId, delivery: Delivery) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let again = taken.answered(delivery);
        drop(taken);
        if again {
            let Delivery {
                webhook_id,
                event_id,
                status,
                at,
            } = delivery;
            let seen = Seen::EventAgain {
                webhook_id,
                event_id,
                status,
            };
            self.saw(partner_id, at, seen);
        }
    }

    /// Takes over what was written down, here or on another node, oldest first; and forgets what is over.
    pub fn follow(&self, written: &[(PartnerId, Observation)], now: OffsetDateTime) {
        self.look_out(|open| {
            for (partner_id, observation) in written {
                open.note(*partner_id, observation);
            }
            open.forget_over(now);
        });
    }

    /// Returns as soon as something waits.
    pub async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Up to `limit` notes, oldest first. They wait until they are written.
    pub fn oldest(&self, limit: usize) -> Vec<Note> {
        self.waiting().iter().take(limit).cloned().collect()
    }

    /// The oldest so many are written. One task writes, so they are those that it was given.
    pub fn is_written(&self, notes: usize) {
        let mut waiting = self.waiting();
        let written = notes.min(waiting.len());
        drop(waiting.drain(..written));
    }

    /// How many notes were lost since this was last asked.
    pub fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    fn write(&self, note: Note) {
        let mut waiting = self.waiting();
        if waiting.len() < MAX_WAITING {
            waiting.push_back(note);
            drop(waiting);
            self.woken.notify_one();
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn look_out(&self, change: impl FnOnce(&mut Open)) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut open);
        self.looks_out.store(!open.is_empty(), Ordering::Relaxed);
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Note>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
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
        let kind = |note: &Note| match &note.what {
            What::Seen(seen) => serde_json::to_value(seen).unwrap()["what"]
                .as_str()
                .unwrap()
                .to_owned(),
            What::CodesFetched { .. } => "codes".to_owned(),
        };
        notes.iter().map(kind).collect()
    }

    #[test]
    fn an_ordinary_request_leaves_nothing() {
        let (watch, partner, key) = (Watch::default(), PartnerId::generate(), CredentialId::generate());
        watch.saw_request(partner, key, Class::Orders, true, NOON);
        assert_eq!(watch.oldest(10), []);
    }

    #[test]
    fn what_follows_a_429_or_a_wrong_signature_is_told_once() {
        let (watch, partner, key) = (Watch::default(), PartnerId::generate(), CredentialId::generate());
        watch.saw_limit(partner, key, Class::Orders, 30, NOON);
        let request = RequestHash::of_signed(std::iter::empty(), b"");
        watch.saw(partner, NOON, Seen::SignatureRefused { request });
        for after in [0, 2, 3, 4] {
            let at = NOON + Duration::seconds(after);
            watch.saw_request(partner, key, Class::Orders, after > 2, at);
        }
        let told = kinds(&watch.oldest(10));
        assert_eq!(
            told,
            ["pause_asked", "signature_refused", "pause_broken", "signed_right"]
        );
    }

    #[test]
    fn what_another_node_saw_is_looked_out_for_too() {
        let (watch, partner, key) = (Watch::default(), PartnerId::generate(), CredentialId::generate());
        let (class, pause_s) = (Class::General, 30);
        let seen = Seen::PauseAsked {
            credential_id: key,
            class,
            pause_s,
        };
        watch.follow(&[(partner, Observation { at: NOON, seen })], NOON);
        watch.saw_request(partner, key, class, false, NOON + Duration::seconds(5));
        assert_eq!(kinds(&watch.oldest(10)), ["pause_broken"]);
    }

    #[test]
    fn no_more_waits_than_may() {
        let (watch, partner) = (Watch::default(), PartnerId::generate());
        for _ in 0..MAX_WAITING + 3 {
            watch.saw_codes(partner, NOON, OrderId::at(NOON), 1);
        }
        assert_eq!(watch.take_lost(), 3);
        assert_eq!(watch.oldest(2).len(), 2);
        assert_eq!(
            watch.oldest(MAX_WAITING * 2).len(),
            MAX_WAITING,
            "they wait still"
        );
        watch.is_written(MAX_WAITING - 1);
        assert_eq!(watch.oldest(MAX_WAITING).len(), 1);
    }
}
