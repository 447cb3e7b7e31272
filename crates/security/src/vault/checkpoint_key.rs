//! Keyed hash of audit checkpoints: a change of the audit log cannot be covered up without the master key.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use time::OffsetDateTime;

use super::aead::{KEY_BYTES, KeyBytes};
use crate::secret::{hidden, keyed_hash};

/// Key of the checkpoints' HMAC-SHA256.
#[derive(Clone)]
pub struct CheckpointKey(KeyBytes);

impl CheckpointKey {
    #[must_use]
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(KeyBytes::new(bytes))
    }

    /// The HMAC of a checkpoint in hexadecimal digits. `hash` has hexadecimal digits, too; it covers the
    /// checkpoint's entries and the checkpoint before.
    #[must_use]
    pub fn mac(&self, number: i64, at: OffsetDateTime, hash: &str) -> String {
        hex::encode(self.message(number, at, hash).finalize().into_bytes())
    }

    /// Whether `mac` is the HMAC of the checkpoint, compared in constant time.
    #[must_use]
    pub fn is_mac_of(&self, mac: &str, number: i64, at: OffsetDateTime, hash: &str) -> bool {
        let mac = hex::decode(mac).unwrap_or_default();
        self.message(number, at, hash).verify_slice(&mac).is_ok()
    }

    fn message(&self, number: i64, at: OffsetDateTime, hash: &str) -> Hmac<Sha256> {
        // Numbers of fixed length come first, so that the parts cannot run into each other. Postgres stores
        // microseconds.
        let micros = at.unix_timestamp_nanos() / 1_000;
        keyed_hash(&*self.0)
            .chain_update(number.to_be_bytes())
            .chain_update(micros.to_be_bytes())
            .chain_update(hash)
    }
}

hidden!(CheckpointKey);

#[cfg(test)]
mod tests {
    use time::Duration;

    use super::*;

    #[test]
    fn mac_covers_key_number_time_and_hash() {
        let (key, at) = (CheckpointKey::new([1; 32]), OffsetDateTime::UNIX_EPOCH);
        let mac = key.mac(1, at, "ab");
        assert!(key.is_mac_of(&mac, 1, at, "ab"));
        for is_accepted in [
            CheckpointKey::new([2; 32]).is_mac_of(&mac, 1, at, "ab"),
            key.is_mac_of(&mac, 2, at, "ab"),
            key.is_mac_of(&mac, 1, at + Duration::MICROSECOND, "ab"),
            key.is_mac_of(&mac, 1, at, "ac"),
            key.is_mac_of("", 1, at, "ab"),
            key.is_mac_of("no digits", 1, at, "ab"),
            key.is_mac_of(&mac[2..], 1, at, "ab"),
        ] {
            assert!(!is_accepted);
        }
        assert_eq!(format!("{key:?}"), "CheckpointKey(***)");
    }
}
