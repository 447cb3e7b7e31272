//! What was seen of a partner, as it is written down: ids and hashes, never a body, a key, a signature or a code.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::domain::idempotency::{Fingerprint, KeyHash};
use vouchsafe_actors::domain::ids::{CredentialId, EventId, OrderId, WebhookId};

use super::check::Check;
use crate::access::limits::RequestClass;

/// Tells one request from another: the hexadecimal digits of a SHA-256 over what must not come again unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestHash(String);

impl RequestHash {
    /// Of an order: method, path and body.
    #[must_use]
    pub fn from_fingerprint(fingerprint: Fingerprint) -> Self {
        Self(hex::encode(fingerprint.0))
    }

    /// Of a request that was signed wrongly: its signature headers, as many as came, and its body.
    #[must_use]
    pub fn from_signed_request<'a>(signatures: impl Iterator<Item = &'a [u8]>, body: &[u8]) -> Self {
        let mut hash = Sha256::new();
        for signature in signatures {
            hash = hash.chain_update(signature).chain_update(b"\n");
        }
        Self(hex::encode(hash.chain_update(body).finalize()))
    }
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum ObservationKind {
    /// An order was placed, and its answer was lost on purpose.
    AnswerLost {
        key: Uuid,
        request: RequestHash,
    },
    /// The same order came again under the same key, and was answered.
    AnswerRepeated {
        key: Uuid,
    },
    /// A request was refused for its signature.
    SignatureRefused {
        request: RequestHash,
    },
    /// After such a refusal, a request was signed rightly.
    SignedRight,
    /// The codes of an order that still waits for some were fetched.
    CodesInPart {
        order_id: OrderId,
    },
    /// The codes of an order that waited for some were fetched, all of them.
    CodesInFull {
        order_id: OrderId,
    },
    /// Such an order was delivered: looked up when it is judged, and never written down.
    OrderDelivered {
        order_id: OrderId,
    },
    /// A request was answered 429.
    PauseAsked {
        credential_id: CredentialId,
        class: RequestClass,
        /// For how long: the answer's Retry-After.
        pause_s: u32,
    },
    /// Within that time another request came.
    PauseBroken {
        credential_id: CredentialId,
        class: RequestClass,
    },
    /// An endpoint was tested with a wrong signature and with the right one.
    WebhookTested {
        webhook_id: WebhookId,
        /// The status of its answer to the wrong one; `None` if there was no answer.
        wrong: Option<u16>,
        /// The status of its answer to the right one; `None` if there was no answer.
        right: Option<u16>,
    },
    /// An event that an endpoint had taken came to it again.
    EventAgain {
        webhook_id: WebhookId,
        event_id: EventId,
        /// The status of its answer; `None` if there was no answer.
        status: Option<u16>,
    },
}

impl ObservationKind {
    /// An order whose answer was lost.
    #[must_use]
    pub fn answer_lost(key: KeyHash, fingerprint: Fingerprint) -> Self {
        Self::AnswerLost {
            key: key.0,
            request: RequestHash::from_fingerprint(fingerprint),
        }
    }

    /// Of which point it tells.
    #[must_use]
    pub const fn check(&self) -> Check {
        match self {
            Self::AnswerLost { .. } | Self::AnswerRepeated { .. } => Check::LostAnswer,
            Self::SignatureRefused { .. } | Self::SignedRight => Check::WrongSignature,
            Self::CodesInPart { .. } | Self::CodesInFull { .. } | Self::OrderDelivered { .. } => {
                Check::PartialCodes
            }
            Self::PauseAsked { .. } | Self::PauseBroken { .. } => Check::RateLimit,
            Self::WebhookTested { .. } => Check::WebhookSignature,
            Self::EventAgain { .. } => Check::DuplicateEvent,
        }
    }
}

/// What was seen, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub at: OffsetDateTime,
    pub kind: ObservationKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_the_same_if_its_signature_and_its_body_are() {
        let hash =
            |signatures: &[&[u8]], body: &[u8]| RequestHash::from_signed_request(signatures.iter().copied(), body);
        let one = hash(&[b"t=1,v1=a"], b"{}");
        assert_eq!(one, hash(&[b"t=1,v1=a"], b"{}"));
        for other in [
            hash(&[b"t=1,v1=b"], b"{}"),
            hash(&[b"t=1,v1=a"], b"{ }"),
            hash(&[], b"t=1,v1=a{}"),
            hash(&[b"t=1,v1=a", b"t=1,v1=a"], b"{}"),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn what_is_written_down_reads_back_and_holds_no_text_of_a_request() {
        let seen = ObservationKind::SignatureRefused {
            request: RequestHash::from_signed_request([&b"t=1,v1=secret"[..]].into_iter(), b"{\"a\":1}"),
        };
        let text = serde_json::to_string(&seen).unwrap();
        assert!(
            text.starts_with(r#"{"what":"signature_refused","request":""#),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(serde_json::from_str::<ObservationKind>(&text).unwrap(), seen);
    }
}
