//! Master key, which wraps the data keys and never enters the database.
//!
//! The database alone reveals no code. Without the master key all codes are lost.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hmac::Mac;
use zeroize::Zeroizing;

use super::aead::{Cipher, KEY_BYTES, KeyBytes, random_key};
use super::random::NoRandomness;
use super::wrapping_key_id::WrappingKeyId;
use crate::secret::{hidden, keyed_hash};

/// Message of the check value.
const CHECK_CONTEXT: &[u8] = b"vouchsafe master key check value v1";

/// Enough to tell the keys of a deployment apart.
const CHECK_BYTES: usize = 8;

/// A 32-byte key-encryption key. `Debug` prints `***`, it has no `Serialize`, and it is wiped when dropped.
pub struct MasterKey(KeyBytes);

/// The text is not a master key. The error does not quote it: it may be a key with a typing error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a master key of 32 bytes, as 64 hex digits or base64 (44 characters); generate one with: openssl rand -hex 32"
)]
pub struct InvalidMasterKey;

impl MasterKey {
    /// Parses 64 hex digits or base64 of 32 bytes, surrounded by optional white space.
    ///
    /// # Errors
    /// [`InvalidMasterKey`] for any other text.
    pub fn parse(text: &str) -> Result<Self, InvalidMasterKey> {
        let text = text.trim();
        let mut bytes = KeyBytes::default();
        if hex::decode_to_slice(text, &mut *bytes).is_ok() {
            return Ok(Self(bytes));
        }
        let decoded = STANDARD
            .decode(text)
            .or_else(|_| STANDARD_NO_PAD.decode(text))
            .map(Zeroizing::new);
        let decoded = decoded.map_err(|_| InvalidMasterKey)?;
        let exact: &[u8; KEY_BYTES] = decoded.as_slice().try_into().map_err(|_| InvalidMasterKey)?;
        Ok(Self(Zeroizing::new(*exact)))
    }

    /// Generates a random key.
    ///
    /// # Errors
    /// [`NoRandomness`] if the operating system provides no random bytes.
    pub fn generate() -> Result<Self, NoRandomness> {
        random_key().map(Self)
    }

    /// The key as 64 hex digits, for its file.
    pub(super) fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex::encode(self.0.as_slice()))
    }

    pub(super) fn cipher(&self) -> Cipher {
        Cipher::new(&self.0)
    }

    /// The key's check value: 16 hex digits that identify it and reveal nothing of it.
    #[must_use]
    pub fn id(&self) -> WrappingKeyId {
        let mac = keyed_hash(&*self.0)
            .chain_update(CHECK_CONTEXT)
            .finalize()
            .into_bytes();
        WrappingKeyId::new(hex::encode(&mac[..CHECK_BYTES]))
    }
}

hidden!(MasterKey);

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 32] = [0xab; 32];

    #[test]
    fn master_key_parses_hex_and_base64() {
        let (hex, base64) = (hex::encode(BYTES), STANDARD.encode(BYTES));
        for text in [
            &hex,
            &hex.to_uppercase(),
            &base64,
            base64.trim_end_matches('='),
            &format!(" {hex}\n"),
        ] {
            assert_eq!(*MasterKey::parse(text).unwrap().0, BYTES, "{text}");
        }
    }

    #[test]
    fn master_key_of_another_length_or_encoding_is_refused() {
        let short = hex::encode([0xab; 31]);
        let long = STANDARD.encode([0xab; 33]);
        for text in [
            "",
            " ",
            "secret",
            &short,
            &format!("{short}g0"),
            &long,
            &hex::encode([0xab; 48]),
        ] {
            assert!(matches!(MasterKey::parse(text), Err(InvalidMasterKey)), "{text}");
        }
    }

    #[test]
    fn generated_keys_round_trip_and_differ() {
        let key = MasterKey::generate().unwrap();
        assert_eq!(*MasterKey::parse(&key.to_hex()).unwrap().0, *key.0);
        assert_ne!(*MasterKey::generate().unwrap().0, *key.0);
    }

    #[test]
    fn check_value_identifies_the_key_and_is_no_part_of_it() {
        let (key, other) = (MasterKey(Zeroizing::new(BYTES)), MasterKey::generate().unwrap());
        let id = key.id().to_string();
        assert_eq!(id, MasterKey::parse(&key.to_hex()).unwrap().id().to_string());
        assert_ne!(id, other.id().to_string());
        assert!(id.len() == 16 && !key.to_hex().contains(&id), "{id}");
    }

    #[test]
    fn debug_output_hides_the_key() {
        let key = MasterKey(Zeroizing::new(BYTES));
        assert_eq!(format!("{key:?}"), "MasterKey(***)");
    }
}
