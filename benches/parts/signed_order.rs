//! A signed order request for benches.

use vouchsafe_security::credential::{ApiKeyPair, ApiSecret, generate_key_pair};
use vouchsafe_security::environment::Environment;
use vouchsafe_security::framing::{CanonicalRequest, SignedRequest, Timestamp};
use vouchsafe_security::headers::{AuthHeaders, UniqueHeader};
use vouchsafe_security::signature;
use vouchsafe_simulation::build::NOW;

/// A secret, and the signature of one body.
pub(crate) struct SignedOrder {
    secret: ApiSecret,
    timestamp: Timestamp,
    signature: String,
}

impl SignedOrder {
    pub(crate) fn new(body: &[u8]) -> Self {
        let ApiKeyPair { api_secret, .. } = generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap();
        let timestamp = Timestamp::from_unix_s(NOW.unix_timestamp()).unwrap();
        let framed = CanonicalRequest::new(timestamp, request(body)).unwrap();
        Self {
            signature: signature::sign(&api_secret, timestamp, &framed),
            secret: api_secret,
            timestamp,
        }
    }

    pub(crate) fn sign(&self, body: &[u8]) -> String {
        let framed = CanonicalRequest::new(self.timestamp, request(body)).unwrap();
        signature::sign(&self.secret, self.timestamp, &framed)
    }

    /// Verifies the signature against this body.
    pub(crate) fn verify(&self, body: &[u8]) {
        let presented = AuthHeaders {
            api_key: UniqueHeader::Missing,
            api_secret: UniqueHeader::Missing,
            timestamp: UniqueHeader::Single(self.timestamp.digits()),
            signature: UniqueHeader::Single(self.signature.as_bytes()),
            idempotency_key: UniqueHeader::Missing,
        };
        signature::verify(&self.secret, &presented, request(body), NOW).unwrap();
    }
}

const fn request(body: &[u8]) -> SignedRequest<'_> {
    SignedRequest {
        method: "POST",
        path: "/api/v1/orders",
        body,
    }
}
