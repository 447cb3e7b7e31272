//! How does a code become a row that only its own place opens?
//!
//! The rule: the associated data of a sealed code is key id, row, denomination and product, so that a ciphertext moved
//! to another row or SKU is refused instead of being handed out. Several data keys may be loaded; the highest one seals,
//! all of them open.

mod bound;
mod credential;
mod destination;
mod webhook;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use vouchsafe_actors::domain::product::Sku;

use super::aead::{Cipher, NONCE_BYTES};
use super::blind_index::{BlindIndex, BlindIndexKey};
use super::code::{UnknownEncoding, VoucherCode};
use super::data_key::{KeyId, KeyPurpose, WrappedKey, WrongMasterKey};
use super::master_key::MasterKey;
use super::random::NoRandomness;

pub use self::credential::OpenCredentialError;
pub use self::destination::OpenDestinationError;
pub use self::webhook::{OpenWebhookSecretError, WebhookSecret};

/// Codes under one data key after which the next one is due. Two random nonces of 96 bits among 2^28 are equal with a
/// chance of 2^-41.
pub const SEALS_BEFORE_ROTATION: u64 = 1 << 28;

/// Codes under one data key after which it seals no more: the bound of NIST SP 800-38D for random nonces. The room
/// between both is for nodes that seal under one key and count each on its own.
pub const MAX_SEALS: u64 = 1 << 32;

/// Keeps the associated data of a code apart from that of anything else.
const SEAL_CONTEXT: &[u8] = b"vouchsafe code v1";

/// The row of a code. Unlike the voucher's row it stays when the voucher comes back into stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeId(pub i64);

/// A code as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedBlob {
    /// The data key that it is sealed under.
    pub key_id: KeyId,
    /// Random, used once under this key.
    pub nonce: [u8; NONCE_BYTES],
    /// The encoded code, with 16 bytes of tag.
    pub ciphertext: Vec<u8>,
}

impl fmt::Debug for SealedBlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed(key {}, {} bytes)", self.key_id, self.ciphertext.len())
    }
}

/// Why a vault cannot be unlocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnlockError {
    /// A data key does not open.
    #[error(transparent)]
    WrongMasterKey(#[from] WrongMasterKey),
    /// There is no key that seals.
    #[error("there is no data key for codes")]
    NoCodesKey,
    /// There is no key for the blind index, or more than one: each would let codes be sold again.
    #[error("there must be one data key for the blind index, not {count}")]
    BlindIndexKeys {
        /// How many there are.
        count: usize,
    },
}

/// Why a code was not sealed. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// No nonce could be drawn.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The active data key has sealed [`MAX_SEALS`] codes.
    #[error("data key {key_id} has sealed all the codes it may: a new one is needed")]
    KeyExhausted {
        key_id: KeyId,
    },
}

/// Why a sealed code does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Its data key is not loaded.
    #[error("data key {key_id} is not loaded")]
    UnknownKey {
        key_id: KeyId,
    },
    /// It was altered, or belongs to another row or SKU.
    #[error("the code in row {} does not open: it was altered, or belongs to another row or SKU", code_id.0)]
    AuthenticationFailed {
        /// The row it was read from.
        code_id: CodeId,
    },
    /// It opens, and a version of this program that is not known wrote it.
    #[error(transparent)]
    Encoding(#[from] UnknownEncoding),
}

/// The unlocked data keys. All methods take `&self`.
pub struct Vault {
    ciphers: HashMap<KeyId, Cipher>,
    active_key_id: KeyId,
    /// Texts sealed under the active key.
    seal_count: AtomicU64,
    blind_index: BlindIndexKey,
}

impl Vault {
    /// Whether codes that were sealed under this key can be opened.
    #[must_use]
    pub fn has_key(&self, key_id: KeyId) -> bool {
        self.ciphers.contains_key(&key_id)
    }

    /// Opens all data keys. `active_seals` is how many codes the store holds under the highest key for codes.
    ///
    /// # Errors
    /// [`UnlockError`] when a key does not open under this master key, or a purpose has no key.
    pub fn unlock(master: &MasterKey, keys: &[WrappedKey], active_seals: u64) -> Result<Self, UnlockError> {
        let mut codes = HashMap::new();
        for key in keys_for(keys, KeyPurpose::Codes) {
            codes.insert(key.key_id, Cipher::new(key.unwrap_key(master)?.bytes()));
        }
        let active = codes.keys().max().copied().ok_or(UnlockError::NoCodesKey)?;
        let blind_index = open_blind_index_key(master, keys)?;
        Ok(Self {
            ciphers: codes,
            active_key_id: active,
            seal_count: AtomicU64::new(active_seals),
            blind_index,
        })
    }

    /// The key that seals.
    #[must_use]
    pub const fn active_key(&self) -> KeyId {
        self.active_key_id
    }

    /// Whether the next data key is due. The one that is active still seals for long.
    #[must_use]
    pub fn needs_rotation(&self) -> bool {
        self.seal_count.load(Ordering::Relaxed) >= SEALS_BEFORE_ROTATION
    }

    /// Seals a code into its row.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn seal(&self, code_id: CodeId, sku: &Sku, code: &VoucherCode) -> Result<SealedBlob, SealError> {
        self.seal_with(|key_id| associated_data(key_id, code_id, sku), &code.encode())
    }

    /// Seals a text into a place, under the active key.
    fn seal_with(&self, place: impl FnOnce(KeyId) -> Vec<u8>, plain: &[u8]) -> Result<SealedBlob, SealError> {
        let key_id = self.active_key_id;
        let exhausted = SealError::KeyExhausted { key_id };
        let cipher = self.ciphers.get(&key_id).ok_or(exhausted)?;
        if self.seal_count.fetch_add(1, Ordering::Relaxed) >= MAX_SEALS {
            return Err(exhausted);
        }
        let (nonce, ciphertext) = cipher.seal(&place(key_id), plain)?;
        Ok(SealedBlob {
            key_id,
            nonce,
            ciphertext,
        })
    }

    /// Opens the code of a row.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, code_id: CodeId, sku: &Sku, sealed: &SealedBlob) -> Result<VoucherCode, OpenError> {
        let key_id = sealed.key_id;
        let cipher = self.ciphers.get(&key_id).ok_or(OpenError::UnknownKey { key_id })?;
        let plain = cipher
            .open(sealed.nonce, &associated_data(key_id, code_id, sku), &sealed.ciphertext)
            .ok_or(OpenError::AuthenticationFailed { code_id })?;
        Ok(VoucherCode::decode(&plain)?)
    }

    /// What tells whether a code of this brand was taken in before.
    #[must_use]
    pub fn blind_index(&self, brand: &str, code: &VoucherCode) -> BlindIndex {
        self.blind_index.compute(brand, code)
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vault({} keys, active {})", self.ciphers.len(), self.active_key_id)
    }
}

fn keys_for(keys: &[WrappedKey], purpose: KeyPurpose) -> impl Iterator<Item = &WrappedKey> {
    keys.iter().filter(move |key| key.purpose == purpose)
}

fn open_blind_index_key(master: &MasterKey, keys: &[WrappedKey]) -> Result<BlindIndexKey, UnlockError> {
    let found: Vec<_> = keys_for(keys, KeyPurpose::BlindIndex).collect();
    let [key] = found[..] else {
        return Err(UnlockError::BlindIndexKeys { count: found.len() });
    };
    Ok(BlindIndexKey::new(key.unwrap_key(master)?.bytes().clone()))
}

/// Where a code belongs. The numbers have fixed lengths and stand before the product, so no two places look alike.
fn associated_data(key_id: KeyId, code_id: CodeId, sku: &Sku) -> Vec<u8> {
    [
        SEAL_CONTEXT,
        &key_id.0.to_be_bytes(),
        &code_id.0.to_be_bytes(),
        &sku.denomination.minor().to_be_bytes(),
        sku.product_id.as_str().as_bytes(),
    ]
    .concat()
}

#[cfg(test)]
mod tests;
