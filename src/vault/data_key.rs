//! Which keys seal the codes, and how are they kept beside them?
//!
//! The rule: a data key is kept only as a ciphertext of the master key, bound to its id and its purpose, so that a row
//! moved to another id or purpose does not open. A new master key means wrapping these few rows anew, and no code.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

use super::aead::{KEY_BYTES, KeyBytes, NONCE_BYTES, random_key};
use super::master_key::MasterKey;
use super::random::NoRandomness;

/// Keeps the associated data of a wrapped key apart from all other data sealed under the master key.
const WRAP_CONTEXT: &[u8] = b"vouchsafe data key v1";

/// Names a data key. The highest one of its purpose is the active one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub i32);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a data key is for. A key is never used for two purposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyPurpose {
    /// Sealing what must be read again: codes, and the few credentials of vendors, told apart by what they are bound to.
    Codes,
    /// The blind index. There is one such key for ever: another would let a code be sold again.
    BlindIndex,
}

/// A text that names no purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `codes` or `blind_index`")]
pub struct UnknownPurpose;

impl KeyPurpose {
    /// The word for it in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Codes => "codes",
            Self::BlindIndex => "blind_index",
        }
    }
}

impl FromStr for KeyPurpose {
    type Err = UnknownPurpose;

    fn from_str(text: &str) -> Result<Self, UnknownPurpose> {
        match text {
            "codes" => Ok(Self::Codes),
            "blind_index" => Ok(Self::BlindIndex),
            _ => Err(UnknownPurpose),
        }
    }
}

/// A data key as it is kept: no secret without the master key.
#[derive(Clone, PartialEq, Eq)]
pub struct WrappedKey {
    pub key_id: KeyId,
    /// What it is for.
    pub purpose: KeyPurpose,
    /// 12 bytes of nonce, 32 of key, 16 of tag.
    pub wrapped: Vec<u8>,
}

/// A wrapped key that does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "data key {key_id} does not open under this master key: it was wrapped by another one, or its row was altered"
)]
pub struct WrongMasterKey {
    pub key_id: KeyId,
}

impl WrappedKey {
    /// The key in the clear.
    ///
    /// # Errors
    /// [`WrongMasterKey`] when the master key is not the one it was wrapped by, or a byte of it is not as it was.
    pub fn unwrap_key(&self, master: &MasterKey) -> Result<DataKey, WrongMasterKey> {
        let wrong = WrongMasterKey { key_id: self.key_id };
        let (nonce, ciphertext) = self.wrapped.split_first_chunk::<NONCE_BYTES>().ok_or(wrong)?;
        let plain = master
            .cipher()
            .open(*nonce, &associated_data(self.key_id, self.purpose), ciphertext)
            .ok_or(wrong)?;
        let bytes: &[u8; KEY_BYTES] = plain.as_slice().try_into().map_err(|_| wrong)?;
        Ok(DataKey {
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

/// A data key in the clear. Its `Debug` text shows its name alone, it is no `Serialize`, and it is wiped.
pub struct DataKey {
    key_id: KeyId,
    purpose: KeyPurpose,
    bytes: KeyBytes,
}

impl DataKey {
    /// Makes a new key under this name.
    ///
    /// # Errors
    /// [`NoRandomness`] when the operating system gives none.
    pub fn generate(key_id: KeyId, purpose: KeyPurpose) -> Result<Self, NoRandomness> {
        Ok(Self {
            key_id,
            purpose,
            bytes: random_key()?,
        })
    }

    /// The form in which it is kept.
    ///
    /// # Errors
    /// [`NoRandomness`] when the operating system gives none.
    pub fn wrap(&self, master: &MasterKey) -> Result<WrappedKey, NoRandomness> {
        let (nonce, ciphertext) = master
            .cipher()
            .seal(&associated_data(self.key_id, self.purpose), &*self.bytes)?;
        let wrapped = [&nonce[..], &ciphertext].concat();
        Ok(WrappedKey {
            key_id: self.key_id,
            purpose: self.purpose,
            wrapped,
        })
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

/// The id has a fixed length and stands before the purpose, so no two keys share it.
fn associated_data(key_id: KeyId, purpose: KeyPurpose) -> Vec<u8> {
    [WRAP_CONTEXT, &key_id.0.to_be_bytes(), purpose.as_str().as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn master(byte: &str) -> MasterKey {
        MasterKey::parse(&byte.repeat(32)).unwrap()
    }

    #[test]
    fn a_wrapped_key_opens_under_its_master_key_alone() {
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
    fn another_id_purpose_or_byte_does_not_open() {
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
    fn a_new_master_key_wraps_the_same_data_key() {
        let (old, new) = (master("ab"), master("cd"));
        let key = DataKey::generate(KeyId(1), KeyPurpose::BlindIndex).unwrap();
        let moved = key.wrap(&old).unwrap().unwrap_key(&old).unwrap().wrap(&new).unwrap();
        assert_eq!(*moved.unwrap_key(&new).unwrap().bytes, *key.bytes);
    }

    #[test]
    fn a_purpose_reads_back_as_it_was_written() {
        for purpose in [KeyPurpose::Codes, KeyPurpose::BlindIndex] {
            assert_eq!(purpose.as_str().parse(), Ok(purpose));
        }
        assert_eq!("Codes".parse::<KeyPurpose>(), Err(UnknownPurpose));
    }

    #[test]
    fn debug_text_never_shows_a_key() {
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
