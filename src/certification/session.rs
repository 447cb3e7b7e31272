//! What is still open of what was seen: pauses that last, and wrong signatures that were followed by no right one. Pure.
//!
//! Rule: it only decides what is worth being written down, so that an ordinary request leaves nothing. What is forgotten
//! or seen twice here changes no judgement.

use std::collections::{HashMap, HashSet};

use time::{Duration, OffsetDateTime};
use vouchsafe_actors::domain::ids::{CredentialId, PartnerId};

use super::observation::{Observation, ObservationKind};
use crate::access::limits::RequestClass;

/// For how long after a 429 requests still come that were under way before it was read.
pub const IN_FLIGHT_GRACE: Duration = Duration::SECOND;

/// The shortest Retry-After that is a trial: a shorter one is over before it can be told whether it was kept.
pub const MIN_PAUSE_S: u32 = 2;

/// The time in which a client shall send nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    requested_at: OffsetDateTime,
    until: OffsetDateTime,
}

impl Pause {
    /// Asked for now, for so many seconds.
    #[must_use]
    pub fn new(requested_at: OffsetDateTime, pause_s: u32) -> Self {
        Self {
            requested_at,
            until: requested_at + Duration::seconds(i64::from(pause_s)),
        }
    }

    /// When it is over.
    #[must_use]
    pub const fn until(self) -> OffsetDateTime {
        self.until
    }

    /// Whether a request that comes then breaks it.
    #[must_use]
    pub fn is_broken_at(self, at: OffsetDateTime) -> bool {
        self.requested_at + IN_FLIGHT_GRACE < at && at < self.until
    }
}

/// All that is open.
#[derive(Debug, Default)]
pub struct CertificationSession {
    pauses: HashMap<(CredentialId, RequestClass), Pause>,
    signature_failures: HashSet<PartnerId>,
}

impl CertificationSession {
    /// Whether nothing is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pauses.is_empty() && self.signature_failures.is_empty()
    }

    /// Takes over what was seen, here or on another node.
    pub fn apply(&mut self, partner_id: PartnerId, observation: &Observation) {
        match observation.kind {
            ObservationKind::PauseAsked {
                credential_id,
                class,
                pause_s,
            } => {
                let pause = Pause::new(observation.at, pause_s);
                self.pauses.insert((credential_id, class), pause);
            }
            ObservationKind::PauseBroken { credential_id, class } => {
                self.pauses.remove(&(credential_id, class));
            }
            ObservationKind::SignatureRefused { .. } => {
                self.signature_failures.insert(partner_id);
            }
            ObservationKind::SignedRight => {
                self.signature_failures.remove(&partner_id);
            }
            _ => {}
        }
    }

    /// What a request of this key and class says, if it says anything.
    #[must_use]
    pub fn on_request(&self, credential_id: CredentialId, class: RequestClass, at: OffsetDateTime) -> Option<ObservationKind> {
        let pause = self.pauses.get(&(credential_id, class))?;
        pause
            .is_broken_at(at)
            .then_some(ObservationKind::PauseBroken { credential_id, class })
    }

    /// What a 429 says: that a pause is asked for, or, while one lasts, that it is broken.
    #[must_use]
    pub fn on_rate_limited(
        &self,
        credential_id: CredentialId,
        class: RequestClass,
        pause_s: u32,
        at: OffsetDateTime,
    ) -> Option<ObservationKind> {
        match self.pauses.get(&(credential_id, class)) {
            Some(pause) if at < pause.until => self.on_request(credential_id, class, at),
            _ => (pause_s >= MIN_PAUSE_S).then_some(ObservationKind::PauseAsked {
                credential_id,
                class,
                pause_s,
            }),
        }
    }

    /// What a request that is signed rightly says.
    #[must_use]
    pub fn on_valid_signature(&self, partner_id: PartnerId) -> Option<ObservationKind> {
        self.signature_failures
            .contains(&partner_id)
            .then_some(ObservationKind::SignedRight)
    }

    /// Forgets the pauses that are over.
    pub fn evict_expired(&mut self, now: OffsetDateTime) {
        self.pauses.retain(|_, pause| now < pause.until);
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOON: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

    fn after(seconds: f64) -> OffsetDateTime {
        NOON + Duration::seconds_f64(seconds)
    }

    #[test]
    fn a_pause_is_broken_by_what_comes_after_what_was_under_way_and_before_its_end() {
        let (partner_id, credential_id) = (PartnerId::generate(), CredentialId::generate());
        let mut open = CertificationSession::default();
        let class = RequestClass::Orders;
        let asked = open.on_rate_limited(credential_id, class, 7, NOON).unwrap();
        open.apply(
            partner_id,
            &Observation {
                at: NOON,
                kind: asked,
            },
        );
        for (at, broken) in [(0.2, false), (1.0, false), (1.1, true), (6.9, true), (7.0, false)] {
            let requested = open.on_request(credential_id, class, after(at));
            assert_eq!(requested.is_some(), broken, "{at}");
            let limited = open.on_rate_limited(credential_id, class, 3, after(at));
            let again = matches!(limited, Some(ObservationKind::PauseAsked { .. }));
            assert_eq!(
                (again, limited.is_some()),
                (at >= 7.0, broken || at >= 7.0),
                "{at}"
            );
        }
        assert_eq!(
            open.on_request(credential_id, RequestClass::General, after(3.0)),
            None,
            "another class"
        );
        assert_eq!(
            open.on_request(CredentialId::generate(), class, after(3.0)),
            None,
            "another key"
        );
        let seen = ObservationKind::PauseBroken { credential_id, class };
        open.apply(partner_id, &Observation { at: after(3.0), kind: seen });
        assert!(open.is_empty(), "it is broken once");
    }

    #[test]
    fn a_pause_that_is_too_short_or_over_is_none() {
        let (partner_id, credential_id) = (PartnerId::generate(), CredentialId::generate());
        let mut open = CertificationSession::default();
        assert_eq!(open.on_rate_limited(credential_id, RequestClass::Auth, 1, NOON), None);
        let asked = open.on_rate_limited(credential_id, RequestClass::Auth, 2, NOON).unwrap();
        open.apply(
            partner_id,
            &Observation {
                at: NOON,
                kind: asked,
            },
        );
        open.evict_expired(after(1.9));
        assert!(!open.is_empty());
        open.evict_expired(after(2.0));
        assert!(open.is_empty());
    }

    #[test]
    fn after_a_wrong_signature_one_right_request_is_worth_being_told() {
        let (partner_id, other) = (PartnerId::generate(), PartnerId::generate());
        let mut open = CertificationSession::default();
        assert_eq!(open.on_valid_signature(partner_id), None);
        let request = super::super::RequestHash::from_signed_request(std::iter::empty(), b"");
        let seen = ObservationKind::SignatureRefused { request };
        open.apply(partner_id, &Observation { at: NOON, kind: seen });
        assert_eq!(open.on_valid_signature(other), None);
        let seen = open.on_valid_signature(partner_id).unwrap();
        open.apply(partner_id, &Observation { at: NOON, kind: seen });
        assert_eq!(open.on_valid_signature(partner_id), None);
    }
}
