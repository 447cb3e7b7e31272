//! Which key opens all others?
//!
//! The rule: the master key never enters the database. Whoever has the database without it has no code; whoever loses
//! it has lost the codes.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use zeroize::Zeroizing;

use super::aead::{Cipher, KEY_BYTES, KeyBytes, random_key};
use super::random::NoRandomness;

/// The key that wraps the data keys: 32 bytes. Its `Debug` text is `***`, it is no `Serialize`, and it is wiped.
pub struct MasterKey(KeyBytes);

/// A text that is no master key. It says nothing of the text, which may be one with a typing error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a master key is 32 bytes, written as 64 hex digits or as base64 (44 characters); make one with: openssl rand -hex 32"
)]
pub struct InvalidMasterKey;

impl MasterKey {
    /// Reads a key from its text, 64 hex digits or base64 of 32 bytes; space around it is ignored.
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

    /// Makes a new key.
    ///
    /// # Errors
    /// [`NoRandomness`] when the operating system gives none.
    pub fn generate() -> Result<Self, NoRandomness> {
        random_key().map(Self)
    }

    /// The key as 64 hex digits, for the file that keeps it.
    pub(super) fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex::encode(self.0.as_slice()))
    }

    pub(super) fn cipher(&self) -> Cipher {
        Cipher::new(&self.0)
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 32] = [0xab; 32];

    #[test]
    fn hex_and_base64_of_32_bytes_are_the_same_key() {
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
    fn any_other_text_is_refused() {
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
    fn a_generated_key_reads_back_and_is_never_the_same() {
        let key = MasterKey::generate().unwrap();
        assert_eq!(*MasterKey::parse(&key.to_hex()).unwrap().0, *key.0);
        assert_ne!(*MasterKey::generate().unwrap().0, *key.0);
    }

    #[test]
    fn debug_text_never_shows_the_key() {
        let key = MasterKey(Zeroizing::new(BYTES));
        assert_eq!(format!("{key:?}"), "MasterKey(***)");
    }
}
