//! Encryption of voucher codes, bound to their row and SKU.
//!
//! The associated data of a code is key id, row, denomination and product: a ciphertext moved to another row
//! or SKU does not decrypt. Several data keys may be loaded; the highest one encrypts, all of them decrypt.

mod bound;
mod change_request;
mod credential;
mod destination;
mod webhook;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use vouchsafe_domain::product::{CodeScope, Sku};

use super::aead::{Cipher, NONCE_BYTES};
use super::blind_index::{BlindIndex, BlindIndexKey};
use super::checkpoint_key::CheckpointKey;
use super::code::{UnknownEncoding, VoucherCode};
use super::cookie_key::{COOKIE_CONTEXT, CookieKey};
use super::data_key::{DataKey, KeyId, KeyPurpose};
use super::fingerprint::{FINGERPRINT_CONTEXT, FingerprintKey};
use super::grant_key::{GRANT_CONTEXT, GrantKey};
use super::random::NoRandomness;

pub use self::bound::sealed_key_id;
pub use self::credential::OpenCredentialError;
pub use self::destination::OpenDestinationError;
pub use self::webhook::{OpenWebhookSecretError, WebhookSecret};

/// Codes under one data key after which the next key is due. Among 2^28 random 96-bit nonces two are equal
/// with a probability of 2^-41.
pub const SEALS_BEFORE_ROTATION: u64 = 1 << 28;

/// Codes under one data key after which it encrypts no more: the bound of NIST SP 800-38D for random nonces.
/// The margin to [`SEALS_BEFORE_ROTATION`] is for nodes that encrypt under one key and count separately.
pub const MAX_SEALS: u64 = 1 << 32;

/// Domain separation from other encrypted values.
const SEAL_CONTEXT: &[u8] = b"vouchsafe code v1";

/// The row of a code. Unlike the voucher's row it stays when the voucher returns to stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeId(pub i64);

/// An encrypted value.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedBlob {
    pub key_id: KeyId,
    /// Random, used once under this key.
    pub nonce: [u8; NONCE_BYTES],
    /// The encrypted value with 16 bytes of tag.
    pub ciphertext: Vec<u8>,
}

impl fmt::Debug for SealedBlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed(key {}, {} bytes)", self.key_id, self.ciphertext.len())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IncompleteKeySet {
    #[error("there is no data key for codes")]
    NoCodesKey,
    /// No blind index key, or several: either would let a code be sold again.
    #[error("there must be one data key for the blind index, not {count}")]
    BlindIndexKeys { count: usize },
}

/// Why a value was not encrypted. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The active data key has encrypted [`MAX_SEALS`] values.
    #[error("data key {key_id} has reached its limit of encrypted codes; a new data key is required")]
    KeyExhausted { key_id: KeyId },
}

/// Why a code cannot be decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("data key {key_id} is not loaded")]
    UnknownKey { key_id: KeyId },
    /// It was altered, or belongs to another row or SKU.
    #[error("cannot decrypt the code in row {}: it was altered, or belongs to another row or SKU", code_id.0)]
    AuthenticationFailed { code_id: CodeId },
    /// A newer version of this program encoded it.
    #[error(transparent)]
    Encoding(#[from] UnknownEncoding),
}

/// The unwrapped data keys.
pub struct Vault {
    ciphers: HashMap<KeyId, Cipher>,
    active_key_id: KeyId,
    /// Values encrypted under the active key.
    seal_count: AtomicU64,
    blind_index: BlindIndexKey,
    fingerprints: FingerprintKey,
}

impl Vault {
    /// Whether codes encrypted under this key can be decrypted.
    #[must_use]
    pub fn has_key(&self, key_id: KeyId) -> bool {
        self.ciphers.contains_key(&key_id)
    }

    /// A vault of these data keys. `active_seals` is the number of codes stored under the highest key for
    /// codes.
    ///
    /// # Errors
    /// [`IncompleteKeySet`] when a purpose has no key.
    pub fn new(keys: &[DataKey], active_seals: u64) -> Result<Self, IncompleteKeySet> {
        let codes: HashMap<_, _> = keys_for(keys, KeyPurpose::Codes)
            .map(|key| (key.key_id(), Cipher::new(key.bytes())))
            .collect();
        let active = codes.keys().max().copied().ok_or(IncompleteKeySet::NoCodesKey)?;
        let blind_index = find_blind_index_key(keys)?;
        Ok(Self {
            ciphers: codes,
            active_key_id: active,
            seal_count: AtomicU64::new(active_seals),
            fingerprints: FingerprintKey::new(&blind_index.derive(FINGERPRINT_CONTEXT)),
            blind_index,
        })
    }

    /// The key that encrypts.
    #[must_use]
    pub const fn active_key(&self) -> KeyId {
        self.active_key_id
    }

    /// Whether the next data key is due. The active key remains usable until [`MAX_SEALS`].
    #[must_use]
    pub fn needs_rotation(&self) -> bool {
        self.seal_count.load(Ordering::Relaxed) >= SEALS_BEFORE_ROTATION
    }

    /// Whether the active key encrypts no more.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.seal_count.load(Ordering::Relaxed) >= MAX_SEALS
    }

    /// Encrypts a code for its row.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn seal(&self, code_id: CodeId, sku: &Sku, code: &VoucherCode) -> Result<SealedBlob, SealError> {
        self.seal_with(|key_id| associated_data(key_id, code_id, sku), &code.encode())
    }

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

    /// Decrypts the code of a row.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, code_id: CodeId, sku: &Sku, sealed: &SealedBlob) -> Result<VoucherCode, OpenError> {
        let key_id = sealed.key_id;
        let cipher = self
            .ciphers
            .get(&key_id)
            .ok_or(OpenError::UnknownKey { key_id })?;
        let plain = cipher
            .open(
                sealed.nonce,
                &associated_data(key_id, code_id, sku),
                &sealed.ciphertext,
            )
            .ok_or(OpenError::AuthenticationFailed { code_id })?;
        Ok(VoucherCode::decode(&plain)?)
    }

    /// The key of the rows that grant access. It never changes: it comes from that of the blind index.
    #[must_use]
    pub fn grant_key(&self) -> GrantKey {
        GrantKey::new(&self.blind_index.derive(GRANT_CONTEXT))
    }

    /// The key of the audit checkpoints. It never changes: it comes from that of the blind index.
    #[must_use]
    pub fn checkpoint_key(&self) -> CheckpointKey {
        self.blind_index.derive_checkpoint_key()
    }

    /// The key of cookies that begin a sign-in.
    #[must_use]
    pub fn cookie_key(&self) -> CookieKey {
        CookieKey::new(&self.blind_index.derive(COOKIE_CONTEXT))
    }

    /// The key of request fingerprints.
    #[must_use]
    pub const fn fingerprints(&self) -> &FingerprintKey {
        &self.fingerprints
    }

    /// The blind index of a code and its PIN, which detects duplicates within a brand.
    #[must_use]
    pub fn blind_index(&self, scope: CodeScope<'_>, code: &VoucherCode) -> BlindIndex {
        self.blind_index.compute(scope, code)
    }

    /// The index of a code without its PIN, which finds the same code with another PIN within a brand.
    #[must_use]
    pub fn code_index(&self, scope: CodeScope<'_>, code: &VoucherCode) -> BlindIndex {
        self.blind_index.compute_without_pin(scope, code)
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Vault({} keys, active {})",
            self.ciphers.len(),
            self.active_key_id
        )
    }
}

fn keys_for(keys: &[DataKey], purpose: KeyPurpose) -> impl Iterator<Item = &DataKey> {
    keys.iter().filter(move |key| key.purpose() == purpose)
}

fn find_blind_index_key(keys: &[DataKey]) -> Result<BlindIndexKey, IncompleteKeySet> {
    let index_keys: Vec<_> = keys_for(keys, KeyPurpose::BlindIndex).collect();
    let [key] = index_keys[..] else {
        return Err(IncompleteKeySet::BlindIndexKeys {
            count: index_keys.len(),
        });
    };
    Ok(BlindIndexKey::new(key.bytes().clone()))
}

/// The numbers have fixed lengths and precede the product, so that the associated data is unambiguous.
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
