//! AES-256-GCM with associated data.
//!
//! The associated data is not stored with the ciphertext: decryption with other data fails. Nonces are
//! random, used once and generated here; callers never pass one.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use zeroize::Zeroizing;

use super::random::{NoRandomness, fill};

pub(super) const KEY_BYTES: usize = 32;
pub(super) const NONCE_BYTES: usize = 12;

/// Key bytes that are wiped when dropped.
pub(super) type KeyBytes = Zeroizing<[u8; KEY_BYTES]>;

pub(super) fn random_key() -> Result<KeyBytes, NoRandomness> {
    let mut bytes = KeyBytes::default();
    fill(&mut *bytes)?;
    Ok(bytes)
}

pub(super) struct Cipher(Aes256Gcm);

impl Cipher {
    pub(super) fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self(Aes256Gcm::new(key.into()))
    }

    /// Encrypts; returns a fresh nonce, and the ciphertext with its tag.
    pub(super) fn seal(
        &self,
        aad: &[u8],
        plain: &[u8],
    ) -> Result<([u8; NONCE_BYTES], Vec<u8>), NoRandomness> {
        let mut nonce = [0; NONCE_BYTES];
        fill(&mut nonce)?;
        let Ok(ciphertext) = self.0.encrypt(&Nonce::from(nonce), Payload { msg: plain, aad }) else {
            unreachable!("AES-GCM fails only for plaintexts of 64 GiB or more");
        };
        Ok((nonce, ciphertext))
    }

    /// Decrypts; `None` if key, nonce, associated data or ciphertext differ from those of the encryption.
    pub(super) fn open(
        &self,
        nonce: [u8; NONCE_BYTES],
        aad: &[u8],
        ciphertext: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let payload = Payload { msg: ciphertext, aad };
        self.0
            .decrypt(&Nonce::from(nonce), payload)
            .ok()
            .map(Zeroizing::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cipher_matches_aes_256_gcm_test_vector() {
        // Test case 14 of the GCM specification: zero key, zero nonce, one zero block, no associated data.
        let expected = "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919";
        let cipher = Cipher::new(&[0; KEY_BYTES]);
        let plain = cipher.open([0; NONCE_BYTES], b"", &hex::decode(expected).unwrap());
        assert_eq!(plain.as_deref(), Some(&vec![0; 16]));
    }

    #[test]
    fn seal_uses_a_fresh_nonce() {
        let cipher = Cipher::new(&[7; KEY_BYTES]);
        let (first, a) = cipher.seal(b"aad", b"text").unwrap();
        let (second, b) = cipher.seal(b"aad", b"text").unwrap();
        assert_ne!(first, second);
        assert_ne!(a, b);
    }
}
