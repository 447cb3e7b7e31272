//! Encrypted changes that wait for a second operator, bound to their request (`bound.rs`).

use zeroize::Zeroizing;

use super::{SealError, Vault};

/// Domain separation from other encrypted values.
const CHANGE_CONTEXT: &[u8] = b"vouchsafe change request v1";

impl Vault {
    /// Encrypts the change of this request: the text of a JSON object.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn seal_change(&self, request_id: uuid::Uuid, json: &[u8]) -> Result<Vec<u8>, SealError> {
        self.seal_bound(CHANGE_CONTEXT, request_id, json)
    }

    /// Decrypts the change of this request. `None` if it was altered, belongs to another request, or its data
    /// key is not loaded.
    #[must_use]
    pub fn open_change(&self, request_id: uuid::Uuid, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.open_bound(CHANGE_CONTEXT, request_id, sealed)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use crate::vault::seal::tests::vault;

    #[test]
    fn change_opens_for_its_request_only() {
        let (vault, request_id) = (vault(), Uuid::from_u128(7));
        let sealed = vault.seal_change(request_id, b"{\"code\":\"X1\"}").unwrap();
        assert_eq!(
            **vault.open_change(request_id, &sealed).unwrap(),
            *b"{\"code\":\"X1\"}"
        );
        assert!(vault.open_change(Uuid::from_u128(8), &sealed).is_none());
    }
}
