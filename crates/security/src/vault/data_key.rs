//! Data keys, stored wrapped by a wrapping key: the master key, or a key that never leaves a key manager.
//!
//! The wrapping binds a key to its id and purpose, so that a row moved to another id or purpose does not
//! unwrap. A new wrapping key requires rewrapping these few rows and no code.

use std::fmt;

use strum::{EnumString, IntoStaticStr};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::aead::{KEY_BYTES, KeyBytes, NONCE_BYTES, random_key};
use super::master_key::MasterKey;
use super::random::NoRandomness;
use super::wrapping_key_id::WrappingKeyId;

/// Domain separation from other data encrypted under the master key.
const WRAP_CONTEXT: &[u8] = b"vouchsafe data key v1";

/// Id of a data key. The highest one of a purpose is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub i32);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The purpose of a data key. A key never serves two purposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str, parse_err_ty = UnknownPurpose, parse_err_fn = UnknownPurpose::new)]
pub enum KeyPurpose {
    /// Encrypts values that must be read again: codes and vendor credentials, separated by their associated
    /// data.
    Codes,
    /// Keys the blind index. It never changes: under a new key a code could be sold again.
    BlindIndex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `codes` or `blind_index`")]
pub struct UnknownPurpose;

impl UnknownPurpose {
    const fn new(_: &str) -> Self {
        Self
    }
}

/// A data key encrypted under a wrapping key.
#[derive(Clone, PartialEq, Eq)]
pub struct WrappedKey {
    pub key_id: KeyId,
    pub purpose: KeyPurpose,
    /// The format of the wrapping key; under a master key 12 bytes of nonce, 32 of key, 16 of tag.
    pub wrapped: Vec<u8>,
    pub wrapped_by: WrappingKeyId,
}

impl WrappedKey {
    /// What the wrapping authenticates together with the key.
    #[must_use]
    pub fn associated_data(&self) -> Vec<u8> {
        associated_data(self.key_id, self.purpose)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "data key {key_id} cannot be unwrapped with this master key: another one wrapped it, or its row was altered"
)]
pub struct WrongMasterKey {
    pub key_id: KeyId,
}

impl WrappedKey {
    /// Decrypts the key.
    ///
    /// # Errors
    /// [`WrongMasterKey`] if another master key wrapped it, or a byte was altered.
    pub fn unwrap_key(&self, master: &MasterKey) -> Result<DataKey, WrongMasterKey> {
        let wrong = WrongMasterKey { key_id: self.key_id };
        let (nonce, ciphertext) = self.wrapped.split_first_chunk::<NONCE_BYTES>().ok_or(wrong)?;
        let plain = master
            .cipher()
            .open(*nonce, &self.associated_data(), ciphertext)
            .ok_or(wrong)?;
        self.with_plaintext(&plain).ok_or(wrong)
    }

    /// The data key with these bytes, which a wrapping key has decrypted; `None` if their number is wrong.
    #[must_use]
    pub fn with_plaintext(&self, plain: &[u8]) -> Option<DataKey> {
        let bytes: &[u8; KEY_BYTES] = plain.try_into().ok()?;
        Some(DataKey {
            key_id: self.key_id,
            purpose: self.purpose,
            bytes: Zeroizing::new(*bytes),
        })
    }
}

impl fmt::Debug for WrappedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WrappedKey({}, {:?})", self.key_id, self.purpose)
    }
}

/// A plaintext data key. `Debug` prints its id and purpose only, it has no `Serialize`, and it is wiped when
/// dropped.
pub struct DataKey {
    key_id: KeyId,
    purpose: KeyPurpose,
    bytes: KeyBytes,
}

impl DataKey {
    /// Generates a random key.
    ///
    /// # Errors
    /// [`NoRandomness`] if the operating system provides no random bytes.
    pub fn generate(key_id: KeyId, purpose: KeyPurpose) -> Result<Self, NoRandomness> {
        Ok(Self {
            key_id,
            purpose,
            bytes: random_key()?,
        })
    }

    /// Encrypts the key under the master key.
    ///
    /// # Errors
    /// [`NoRandomness`] if the operating system provides no random bytes.
    pub fn wrap(&self, master: &MasterKey) -> Result<WrappedKey, NoRandomness> {
        let (nonce, ciphertext) = master.cipher().seal(&self.associated_data(), &*self.bytes)?;
        let wrapped = [&nonce[..], &ciphertext].concat();
        Ok(self.wrapped_as(wrapped, master.id()))
    }

    /// This key as the wrapping key `wrapped_by` has encrypted it.
    #[must_use]
    pub const fn wrapped_as(&self, wrapped: Vec<u8>, wrapped_by: WrappingKeyId) -> WrappedKey {
        WrappedKey {
            key_id: self.key_id,
            purpose: self.purpose,
            wrapped,
            wrapped_by,
        }
    }

    /// What the wrapping authenticates together with the key.
    #[must_use]
    pub fn associated_data(&self) -> Vec<u8> {
        associated_data(self.key_id, self.purpose)
    }

    /// Whether both are the same key, compared in constant time.
    #[must_use]
    pub fn is_same_key(&self, other: &Self) -> bool {
        let is_same_row = self.key_id == other.key_id && self.purpose == other.purpose;
        is_same_row && bool::from(self.bytes.as_slice().ct_eq(other.bytes.as_slice()))
    }

    #[must_use]
    pub const fn key_id(&self) -> KeyId {
        self.key_id
    }

    #[must_use]
    pub const fn purpose(&self) -> KeyPurpose {
        self.purpose
    }

    /// The plaintext, for a wrapping key outside this process.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    pub(super) const fn bytes(&self) -> &KeyBytes {
        &self.bytes
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataKey({}, {:?}, ***)", self.key_id, self.purpose)
    }
}

/// The id has a fixed length and precedes the purpose, so that no two keys have the same associated data.
fn associated_data(key_id: KeyId, purpose: KeyPurpose) -> Vec<u8> {
    [
        WRAP_CONTEXT,
        &key_id.0.to_be_bytes(),
        purpose.into_str().as_bytes(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn master(byte: &str) -> MasterKey {
        MasterKey::parse(&byte.repeat(32)).unwrap()
    }

    #[test]
    fn wrapped_key_unwraps_under_its_master_key_only() {
        let key = DataKey::generate(KeyId(3), KeyPurpose::Codes).unwrap();
        let wrapped = key.wrap(&master("ab")).unwrap();
        assert_eq!(*wrapped.unwrap_key(&master("ab")).unwrap().bytes, *key.bytes);
        assert_eq!(
            wrapped.unwrap_key(&master("ac")).err(),
            Some(WrongMasterKey { key_id: KeyId(3) })
        );
        assert!(!wrapped.wrapped.windows(8).any(|part| key.bytes.starts_with(part)));
    }

    #[test]
    fn wrapped_key_with_any_change_does_not_unwrap() {
        let master = master("ab");
        let good = DataKey::generate(KeyId(3), KeyPurpose::Codes)
            .unwrap()
            .wrap(&master)
            .unwrap();
        let mut altered = vec![
            WrappedKey {
                key_id: KeyId(4),
                ..good.clone()
            },
            WrappedKey {
                purpose: KeyPurpose::BlindIndex,
                ..good.clone()
            },
            WrappedKey {
                wrapped: Vec::new(),
                ..good.clone()
            },
            WrappedKey {
                wrapped: good.wrapped[..59].to_vec(),
                ..good.clone()
            },
            WrappedKey {
                wrapped: [&good.wrapped[..], &[0]].concat(),
                ..good.clone()
            },
        ];
        for at in 0..good.wrapped.len() {
            let mut wrapped = good.wrapped.clone();
            wrapped[at] ^= 1;
            altered.push(WrappedKey {
                wrapped,
                ..good.clone()
            });
        }
        for key in altered {
            assert!(key.unwrap_key(&master).is_err(), "{key:?} {}", key.wrapped.len());
        }
    }

    #[test]
    fn data_key_rewrapped_under_a_new_master_key_is_the_same() {
        let (old, new) = (master("ab"), master("cd"));
        let key = DataKey::generate(KeyId(1), KeyPurpose::BlindIndex).unwrap();
        let rewrapped = key
            .wrap(&old)
            .unwrap()
            .unwrap_key(&old)
            .unwrap()
            .wrap(&new)
            .unwrap();
        let unwrapped = rewrapped.unwrap_key(&new).unwrap();
        assert!(unwrapped.is_same_key(&key));
        assert_eq!(rewrapped.wrapped_by, new.id());
        let other = DataKey::generate(KeyId(1), KeyPurpose::BlindIndex).unwrap();
        assert!(!other.is_same_key(&key));
    }

    #[test]
    fn purpose_round_trips_through_text() {
        for purpose in [KeyPurpose::Codes, KeyPurpose::BlindIndex] {
            assert_eq!(purpose.into_str().parse(), Ok(purpose));
        }
        assert_eq!("Codes".parse::<KeyPurpose>(), Err(UnknownPurpose));
    }

    #[test]
    fn debug_output_hides_keys() {
        let key = DataKey {
            key_id: KeyId(1),
            purpose: KeyPurpose::Codes,
            bytes: Zeroizing::new([171; 32]),
        };
        let wrapped = key.wrap(&master("ab")).unwrap();
        assert_eq!(
            format!("{key:?} {wrapped:?}"),
            "DataKey(1, Codes, ***) WrappedKey(1, Codes)"
        );
    }
}
