//! Open trials of a certification: running pauses, and wrong signatures not yet followed by a valid one.
//! Pure.
//!
//! Decides which observations are worth storing, so that ordinary requests leave none. The state is advisory:
//! evaluation tolerates lost and duplicate observations.

use std::collections::{HashMap, HashSet};

use time::{Duration, OffsetDateTime};
use vouchsafe_domain::certification::observation::{Observation, ObservationKind};
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_domain::limits::RequestClass;

/// Requests that arrive within this time after a 429 were sent before the client read it.
pub const IN_FLIGHT_GRACE: Duration = Duration::SECOND;

/// Shortest Retry-After that is a trial: a shorter one ends before it can be tested.
pub const MIN_PAUSE_S: u32 = 2;

/// A period in which a client must not send requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    requested_at: OffsetDateTime,
    until: OffsetDateTime,
}

impl Pause {
    /// A pause of `pause_s` seconds.
    #[must_use]
    pub fn new(requested_at: OffsetDateTime, pause_s: u32) -> Self {
        Self {
            requested_at,
            until: requested_at + Duration::seconds(i64::from(pause_s)),
        }
    }

    #[must_use]
    pub const fn until(self) -> OffsetDateTime {
        self.until
    }

    /// Whether a request at this time breaks the pause.
    #[must_use]
    pub fn is_broken_at(self, at: OffsetDateTime) -> bool {
        self.requested_at + IN_FLIGHT_GRACE < at && at < self.until
    }
}

#[derive(Debug, Default)]
pub struct CertificationSession {
    pauses: HashMap<(CredentialId, RequestClass), Pause>,
    signature_failures: HashSet<PartnerId>,
}

impl CertificationSession {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pauses.is_empty() && self.signature_failures.is_empty()
    }

    /// Applies an observation of this or another node.
    pub fn apply(&mut self, partner_id: PartnerId, observation: &Observation) {
        match observation.kind {
            ObservationKind::RateLimited {
                credential_id,
                class,
                pause_s,
            } => {
                let pause = Pause::new(observation.at, pause_s);
                self.pauses.insert((credential_id, class), pause);
            }
            ObservationKind::RetryAfterIgnored { credential_id, class } => {
                self.pauses.remove(&(credential_id, class));
            }
            ObservationKind::SignatureRefused { .. } => {
                self.signature_failures.insert(partner_id);
            }
            ObservationKind::SignatureValid => {
                self.signature_failures.remove(&partner_id);
            }
            _ => {}
        }
    }

    /// The observation that a request of this key and class causes, if any.
    #[must_use]
    pub fn on_request(
        &self,
        credential_id: CredentialId,
        class: RequestClass,
        at: OffsetDateTime,
    ) -> Option<ObservationKind> {
        let pause = self.pauses.get(&(credential_id, class))?;
        pause
            .is_broken_at(at)
            .then_some(ObservationKind::RetryAfterIgnored { credential_id, class })
    }

    /// The observation that a 429 causes: a new pause or, during one, that it was broken.
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
            _ => (pause_s >= MIN_PAUSE_S).then_some(ObservationKind::RateLimited {
                credential_id,
                class,
                pause_s,
            }),
        }
    }

    /// The observation that a request with a valid signature causes, if any.
    #[must_use]
    pub fn on_valid_signature(&self, partner_id: PartnerId) -> Option<ObservationKind> {
        self.signature_failures
            .contains(&partner_id)
            .then_some(ObservationKind::SignatureValid)
    }

    pub fn evict_expired(&mut self, now: OffsetDateTime) {
        self.pauses.retain(|_, pause| now < pause.until);
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use vouchsafe_domain::certification::observation::RequestHash;
    use vouchsafe_domain::idempotency::Fingerprint;

    use super::*;

    const NOON: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

    fn after(seconds: f64) -> OffsetDateTime {
        NOON + Duration::seconds_f64(seconds)
    }

    fn observed(kind: ObservationKind) -> Observation {
        Observation { at: NOON, kind }
    }

    #[test]
    fn pause_is_broken_after_the_grace_and_before_its_end() {
        let (partner_id, credential_id) = (PartnerId::generate(), CredentialId::generate());
        let mut session = CertificationSession::default();
        let class = RequestClass::Orders;
        let pause = session.on_rate_limited(credential_id, class, 7, NOON).unwrap();
        session.apply(partner_id, &observed(pause));
        for (at, broken) in [(0.2, false), (1.0, false), (1.1, true), (6.9, true), (7.0, false)] {
            let requested = session.on_request(credential_id, class, after(at));
            assert_eq!(requested.is_some(), broken, "{at}");
            let limited = session.on_rate_limited(credential_id, class, 3, after(at));
            let is_new_pause = matches!(limited, Some(ObservationKind::RateLimited { .. }));
            assert_eq!(
                (is_new_pause, limited.is_some()),
                (at >= 7.0, broken || at >= 7.0),
                "{at}"
            );
        }
        assert_eq!(
            session.on_request(credential_id, RequestClass::General, after(3.0)),
            None,
            "another class"
        );
        assert_eq!(
            session.on_request(CredentialId::generate(), class, after(3.0)),
            None,
            "another key"
        );
        let kind = ObservationKind::RetryAfterIgnored { credential_id, class };
        session.apply(partner_id, &Observation { at: after(3.0), kind });
        assert!(session.is_empty(), "a pause is broken only once");
    }

    #[test]
    fn pause_too_short_or_expired_is_ignored() {
        let (partner_id, credential_id) = (PartnerId::generate(), CredentialId::generate());
        let mut session = CertificationSession::default();
        assert_eq!(
            session.on_rate_limited(credential_id, RequestClass::Auth, 1, NOON),
            None
        );
        let pause = session
            .on_rate_limited(credential_id, RequestClass::Auth, 2, NOON)
            .unwrap();
        session.apply(partner_id, &observed(pause));
        session.evict_expired(after(1.9));
        assert!(!session.is_empty());
        session.evict_expired(after(2.0));
        assert!(session.is_empty());
    }

    #[test]
    fn valid_signature_after_a_wrong_one_is_observed_once() {
        let (partner_id, other) = (PartnerId::generate(), PartnerId::generate());
        let mut session = CertificationSession::default();
        assert_eq!(session.on_valid_signature(partner_id), None);
        let request = RequestHash::from_fingerprint(Fingerprint([0; 32]));
        let kind = ObservationKind::SignatureRefused { request };
        session.apply(partner_id, &observed(kind));
        assert_eq!(session.on_valid_signature(other), None);
        let kind = session.on_valid_signature(partner_id).unwrap();
        session.apply(partner_id, &observed(kind));
        assert_eq!(session.on_valid_signature(partner_id), None);
    }
}
