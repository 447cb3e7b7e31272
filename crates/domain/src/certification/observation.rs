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

    /// The hash of a request with a wrong signature: its method, its path, its signature headers and its
    /// body. `None` without a signature: such a request says nothing about how the client signs, and two of
    /// them would be the same request for all time.
    #[must_use]
    pub fn from_signed_request<'a>(
        method: &str,
        path: &str,
        signatures: impl Iterator<Item = &'a [u8]>,
        body: &[u8],
    ) -> Option<Self> {
        let mut signatures = signatures.peekable();
        signatures.peek()?;
        let mut hash = Sha256::new_with_prefix(format!("{method} {path}\n"));
        for signature in signatures {
            hash = hash.chain_update(signature).chain_update(b"\n");
        }
        Some(Self(hex::encode(hash.chain_update(body).finalize())))
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
    /// All checks were passed, for the first time. Stored, because the trials that show it are deleted as
    /// newer ones arrive.
    CertificationPassed,
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

    /// The check that it belongs to; `None` if it belongs to the certification as a whole.
    #[must_use]
    pub const fn check(&self) -> Option<Check> {
        Some(match self {
            Self::CertificationPassed => return None,
            Self::ResponseDropped { .. } | Self::ResponseReplayed { .. } => Check::LostResponse,
            Self::SignatureRefused { .. } | Self::SignatureValid => Check::WrongSignature,
            Self::PartialCodesFetched { .. } | Self::AllCodesFetched { .. } | Self::OrderDelivered { .. } => {
                Check::PartialCodes
            }
            Self::RateLimited { .. } | Self::RetryAfterIgnored { .. } => Check::RateLimit,
            Self::WebhookTested { .. } => Check::WebhookSignature,
            Self::EventRedelivered { .. } => Check::DuplicateEvent,
        })
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
    fn request_hash_covers_method_path_signatures_and_body() {
        let hash = |method: &str, path: &str, signatures: &[&[u8]], body: &[u8]| {
            RequestHash::from_signed_request(method, path, signatures.iter().copied(), body).unwrap()
        };
        let one = hash("POST", "/orders", &[b"t=1,v1=a"], b"{}");
        assert_eq!(one, hash("POST", "/orders", &[b"t=1,v1=a"], b"{}"));
        for other in [
            hash("DELETE", "/orders", &[b"t=1,v1=a"], b"{}"),
            hash("POST", "/payouts", &[b"t=1,v1=a"], b"{}"),
            hash("POST", "/orders", &[b"t=1,v1=b"], b"{}"),
            hash("POST", "/orders", &[b"t=1,v1=a"], b"{ }"),
            hash("POST", "/orders", &[b"t=1,v1=a", b"t=1,v1=a"], b"{}"),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn request_without_signature_has_no_hash() {
        assert_eq!(
            RequestHash::from_signed_request("DELETE", "/webhooks/x", std::iter::empty(), b""),
            None
        );
    }

    #[test]
    fn observation_round_trips_without_request_text() {
        let signatures = [&b"t=1,v1=secret"[..]].into_iter();
        let request = RequestHash::from_signed_request("POST", "/orders", signatures, b"{\"a\":1}").unwrap();
        let kind = ObservationKind::SignatureRefused { request };
        let text = serde_json::to_string(&kind).unwrap();
        assert!(
            text.starts_with(r#"{"kind":"signature_refused","request":""#),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(serde_json::from_str::<ObservationKind>(&text).unwrap(), kind);
    }
}
