//! Keyed hash of requests under idempotency keys.
//!
//! A body can contain an account number, which an attacker with an unkeyed hash finds by trying them all. The
//! key is derived from the blind index's key: it is the same on all nodes and never changes, because
//! references of top-ups are compared forever.

use hmac::Mac;
use vouchsafe_domain::idempotency::Fingerprint;

use super::mac_key::mac_key;
use crate::idempotency::frame;

/// Separates the derived key.
pub(super) const FINGERPRINT_CONTEXT: &[u8] = b"vouchsafe request fingerprint v1";

mac_key! {
    /// The key of request fingerprints.
    FingerprintKey
}

impl FingerprintKey {
    /// The hash of a URL in hexadecimal digits, which a request cannot have: `URL` is no method.
    #[must_use]
    pub fn hash_url(&self, url: &str) -> String {
        hex::encode(self.fingerprint("URL", "", url.as_bytes()).0)
    }

    /// The fingerprint of a request: HMAC-SHA-256 over method, path and unparsed body.
    #[must_use]
    pub fn fingerprint(&self, method: &str, path: &str, body: &[u8]) -> Fingerprint {
        let mac = self
            .0
            .clone()
            .chain_update(frame(method, path))
            .chain_update(body);
        Fingerprint(mac.finalize().into_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use hmac::{Hmac, KeyInit as _};
    use sha2::Sha256;
    use zeroize::Zeroizing;

    use super::*;
    use crate::vault::blind_index::BlindIndexKey;

    fn key(byte: u8) -> FingerprintKey {
        FingerprintKey::new(&BlindIndexKey::new(Zeroizing::new([byte; 32])).derive(FINGERPRINT_CONTEXT))
    }

    #[test]
    fn fingerprint_depends_on_the_key_and_is_stable() {
        let fingerprint = key(1).fingerprint("POST", "/api/v1/payouts", b"{}");
        let hmac = |key: &[u8], message: &[u8]| -> [u8; 32] {
            let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
            mac.chain_update(message).finalize().into_bytes().into()
        };
        let message = b"\0\0\0\0\0\0\0\x04POST\0\0\0\0\0\0\0\x0f/api/v1/payouts{}";
        let derived = hmac(&[1; 32], b"vouchsafe request fingerprint v1");
        assert_eq!(fingerprint.0, hmac(&derived, message));
        assert_ne!(key(2).fingerprint("POST", "/api/v1/payouts", b"{}"), fingerprint);
    }

    #[test]
    fn fingerprint_differs_between_requests() {
        let one = key(1).fingerprint("POST", "/a", b"{}");
        for other in [
            key(1).fingerprint("POST", "/a", b"{ }"),
            key(1).fingerprint("POST", "/a{", b"}"),
            key(1).fingerprint("POS", "T/a", b"{}"),
        ] {
            assert_ne!(one, other);
        }
    }
}
