//! Encrypted values bound to an owner, as a single byte string.
//!
//! Encrypted under the active data key like codes; the associated data is a context of the value's kind, the
//! key id and the owner. Key id and nonce precede the ciphertext.

use uuid::Uuid;
use zeroize::Zeroizing;

use super::{SealError, SealedBlob, Vault};
use crate::vault::aead::NONCE_BYTES;
use crate::vault::data_key::KeyId;

const KEY_ID_BYTES: usize = 4;

/// The data key of an encrypted value with an owner; `None` if it is too short to name one.
#[must_use]
pub fn sealed_key_id(sealed: &[u8]) -> Option<KeyId> {
    let key_id = sealed.first_chunk::<KEY_ID_BYTES>()?;
    Some(KeyId(i32::from_be_bytes(*key_id)))
}

impl Vault {
    pub(super) fn seal_bound(&self, context: &[u8], owner: Uuid, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let SealedBlob {
            key_id,
            nonce,
            ciphertext,
        } = self.seal_with(|key_id| associated_data(context, key_id, owner), plain)?;
        Ok([&key_id.0.to_be_bytes()[..], &nonce, &ciphertext].concat())
    }

    /// `None` if the value was altered, belongs to another owner, or its key is not loaded.
    pub(super) fn open_bound(
        &self,
        context: &[u8],
        owner: Uuid,
        sealed: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let key_id = sealed_key_id(sealed)?;
        let (nonce, ciphertext) = sealed[KEY_ID_BYTES..].split_first_chunk::<NONCE_BYTES>()?;
        let cipher = self.ciphers.get(&key_id)?;
        cipher.open(*nonce, &associated_data(context, key_id, owner), ciphertext)
    }
}

/// All parts but the context have a fixed length.
fn associated_data(context: &[u8], key_id: KeyId, owner: Uuid) -> Vec<u8> {
    [context, &key_id.0.to_be_bytes(), owner.as_bytes()].concat()
}
