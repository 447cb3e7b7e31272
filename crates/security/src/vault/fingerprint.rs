//! Keyed hash of requests under idempotency keys.
//!
//! A body can contain an account number, which an attacker with an unkeyed hash finds by trying them all. The key is derived from
//! the blind index's key: it is the same on all nodes and never changes, because references of top-ups are compared forever.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use vouchsafe_domain::idempotency::{Fingerprint, RequestFingerprint};

use super::aead::{KEY_BYTES, KeyBytes};
use crate::idempotency::{frame, unkeyed_fingerprint};

/// Separates the derived key.
pub(super) const FINGERPRINT_CONTEXT: &[u8] = b"vouchsafe request fingerprint v1";

/// The key of request fingerprints, as the state of a hash that has read it. `Debug` prints `***`.
#[derive(Clone)]
pub struct FingerprintKey(Hmac<Sha256>);

impl FingerprintKey {
    pub(super) fn new(bytes: &KeyBytes) -> Self {
        let Ok(mac) = Hmac::new_from_slice(&**bytes) else {
            unreachable!("HMAC accepts keys of any length");
        };
        Self(mac)
    }

    #[must_use]
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self::new(&KeyBytes::new(bytes))
    }

    /// The hash of a URL in hexadecimal digits, which a request cannot have: `URL` is no method.
    #[must_use]
    pub fn hash_url(&self, url: &str) -> String {
        hex::encode(self.keyed("URL", "", url.as_bytes()).0)
    }

    /// The fingerprints of a request: HMAC-SHA-256 over method, path and unparsed body, and what version 0.2.0 stored.
    #[must_use]
    pub fn fingerprint(&self, method: &str, path: &str, body: &[u8]) -> RequestFingerprint {
        RequestFingerprint {
            keyed: self.keyed(method, path, body),
            unkeyed: Some(unkeyed_fingerprint(method, path, body)),
            stores_unkeyed: false,
        }
    }

    fn keyed(&self, method: &str, path: &str, body: &[u8]) -> Fingerprint {
        let mac = self
            .0
            .clone()
            .chain_update(frame(method, path))
            .chain_update(body);
        Fingerprint(mac.finalize().into_bytes().into())
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FingerprintKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use sha2::Digest as _;
    use zeroize::Zeroizing;

    use super::*;
    use crate::vault::blind_index::BlindIndexKey;

    fn key(byte: u8) -> FingerprintKey {
        FingerprintKey::new(&BlindIndexKey::new(Zeroizing::new([byte; 32])).derive(FINGERPRINT_CONTEXT))
    }

    #[test]
    fn stored_fingerprint_depends_on_the_key_and_is_stable_across_versions() {
        let fingerprint = key(1).fingerprint("POST", "/api/v1/payouts", b"{}");
        let hmac = |key: &[u8], message: &[u8]| -> [u8; 32] {
            let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
            mac.chain_update(message).finalize().into_bytes().into()
        };
        let message = b"\0\0\0\0\0\0\0\x04POST\0\0\0\0\0\0\0\x0f/api/v1/payouts{}";
        let derived = hmac(&[1; 32], b"vouchsafe request fingerprint v1");
        assert_eq!(fingerprint.keyed.0, hmac(&derived, message));
        assert_eq!(
            fingerprint.unkeyed.unwrap().0[..],
            Sha256::digest(message)[..],
            "as version 0.2.0 stored it"
        );
        assert_ne!(
            key(2).fingerprint("POST", "/api/v1/payouts", b"{}").keyed,
            fingerprint.keyed
        );
    }

    #[test]
    fn fingerprint_matches_both_versions_of_the_same_request_only() {
        let one = key(1).fingerprint("POST", "/a", b"{}");
        assert_eq!(one.stored(), one.keyed);
        let during_upgrade = RequestFingerprint {
            stores_unkeyed: true,
            ..one
        };
        assert_eq!(during_upgrade.stored(), one.unkeyed.unwrap());
        assert!(one.matches(one.keyed) && one.matches(one.unkeyed.unwrap()));
        for other in [
            key(1).fingerprint("POST", "/a", b"{ }"),
            key(1).fingerprint("POST", "/a{", b"}"),
            key(1).fingerprint("POS", "T/a", b"{}"),
        ] {
            assert!(!one.matches(other.keyed) && !one.matches(other.unkeyed.unwrap()));
        }
    }
}
