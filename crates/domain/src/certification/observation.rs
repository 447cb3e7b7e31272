//! Observations of a partner's client, as stored: ids and hashes, never a body, a key, a signature or a code.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

use super::check::Check;
use crate::idempotency::{Fingerprint, KeyHash};
use crate::ids::{CredentialId, EventId, OrderId, WebhookId};
use crate::limits::RequestClass;

/// Identifies a request: hex SHA-256 over the parts that must not be repeated unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestHash(String);

impl RequestHash {
    /// The hash of an order: method, path and body.
    #[must_use]
    pub fn from_fingerprint(fingerprint: Fingerprint) -> Self {
        Self(hex::encode(fingerprint.0))
    }

    /// The hash of a request with a wrong signature: its signature headers and its body.
    #[must_use]
    pub fn from_signed_request<'a>(signatures: impl Iterator<Item = &'a [u8]>, body: &[u8]) -> Self {
        let mut hash = Sha256::new();
        for signature in signatures {
            hash = hash.chain_update(signature).chain_update(b"\n");
        }
        Self(hex::encode(hash.chain_update(body).finalize()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ObservationKind {
    /// An order was placed and its response deliberately dropped.
    ResponseDropped { key: Uuid, request: RequestHash },
    /// The order was repeated under the same key and got a response.
    ResponseReplayed { key: Uuid },
    /// A request was refused for its signature.
    SignatureRefused { request: RequestHash },
    /// The first request with a valid signature after such a refusal.
    SignatureValid,
    /// The codes of a partially delivered order were fetched.
    PartialCodesFetched { order_id: OrderId },
    /// All codes of an order were fetched that had been partially delivered.
    AllCodesFetched { order_id: OrderId },
    /// A partially delivered order was completed. Derived for the evaluation, never stored.
    OrderDelivered { order_id: OrderId },
    /// A response had status 429.
    RateLimited {
        credential_id: CredentialId,
        class: RequestClass,
        /// Retry-After of the response.
        pause_s: u32,
    },
    /// Another request arrived within that time.
    RetryAfterIgnored {
        credential_id: CredentialId,
        class: RequestClass,
    },
    /// An endpoint was tested with a wrong and a valid signature.
    WebhookTested {
        webhook_id: WebhookId,
        /// Response status to the wrong one; `None` without a response.
        wrong: Option<u16>,
        /// Response status to the valid one; `None` without a response.
        right: Option<u16>,
    },
    /// An event that the endpoint had accepted was delivered again.
    EventRedelivered {
        webhook_id: WebhookId,
        event_id: EventId,
        /// Response status; `None` without a response.
        status: Option<u16>,
    },
}

impl ObservationKind {
    #[must_use]
    pub fn response_lost(key: KeyHash, fingerprint: Fingerprint) -> Self {
        Self::ResponseDropped {
            key: key.0,
            request: RequestHash::from_fingerprint(fingerprint),
        }
    }

    /// The check that it belongs to.
    #[must_use]
    pub const fn check(&self) -> Check {
        match self {
            Self::ResponseDropped { .. } | Self::ResponseReplayed { .. } => Check::LostAnswer,
            Self::SignatureRefused { .. } | Self::SignatureValid => Check::WrongSignature,
            Self::PartialCodesFetched { .. } | Self::AllCodesFetched { .. } | Self::OrderDelivered { .. } => {
                Check::PartialCodes
            }
            Self::RateLimited { .. } | Self::RetryAfterIgnored { .. } => Check::RateLimit,
            Self::WebhookTested { .. } => Check::WebhookSignature,
            Self::EventRedelivered { .. } => Check::DuplicateEvent,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub at: OffsetDateTime,
    pub kind: ObservationKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_hash_covers_signatures_and_body() {
        let hash = |signatures: &[&[u8]], body: &[u8]| {
            RequestHash::from_signed_request(signatures.iter().copied(), body)
        };
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
    fn observation_round_trips_without_request_text() {
        let kind = ObservationKind::SignatureRefused {
            request: RequestHash::from_signed_request([&b"t=1,v1=secret"[..]].into_iter(), b"{\"a\":1}"),
        };
        let text = serde_json::to_string(&kind).unwrap();
        assert!(
            text.starts_with(r#"{"kind":"signature_refused","request":""#),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(serde_json::from_str::<ObservationKind>(&text).unwrap(), kind);
    }
}
