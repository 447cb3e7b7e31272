//! Encrypted payout destinations, bound to their partner (`bound.rs`).

use zeroize::Zeroizing;

use super::{SealError, Vault};

/// Domain separation from other encrypted values.
const DESTINATION_CONTEXT: &[u8] = b"vouchsafe payout destination v1";

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot decrypt the payout destination: it was altered, belongs to another partner, or its data key is not loaded"
)]
pub struct OpenDestinationError;

impl Vault {
    /// Encrypts a destination of this partner: the text of a JSON object.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn seal_destination(&self, partner_id: uuid::Uuid, text: &str) -> Result<Vec<u8>, SealError> {
        self.seal_bound(DESTINATION_CONTEXT, partner_id, text.as_bytes())
    }

    /// Decrypts a destination of this partner.
    ///
    /// # Errors
    /// [`OpenDestinationError`].
    pub fn open_destination(
        &self,
        partner_id: uuid::Uuid,
        sealed: &[u8],
    ) -> Result<Zeroizing<String>, OpenDestinationError> {
        let plain = self.open_bound(DESTINATION_CONTEXT, partner_id, sealed);
        let plain = plain.ok_or(OpenDestinationError)?;
        let text = std::str::from_utf8(&plain).map_err(|_| OpenDestinationError)?;
        Ok(Zeroizing::new(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use crate::vault::aead::NONCE_BYTES;
    use crate::vault::seal::tests::vault;

    /// Bytes of the leading key id.
    const KEY_BYTES: usize = 4;

    #[test]
    fn destination_opens_for_its_partner_only_and_unaltered() {
        let (vault, partner) = (vault(), Uuid::from_u128(7));
        let sealed = vault.seal_destination(partner, r#"{"iban":"DE89"}"#).unwrap();
        assert_eq!(
            *vault.open_destination(partner, &sealed).unwrap(),
            r#"{"iban":"DE89"}"#
        );
        assert!(!sealed.windows(4).any(|bytes| bytes == b"DE89"));
        assert!(vault.open_destination(Uuid::from_u128(8), &sealed).is_err());
        for offset in [0, KEY_BYTES, KEY_BYTES + NONCE_BYTES, sealed.len() - 1] {
            let mut altered = sealed.clone();
            altered[offset] ^= 1;
            assert!(
                vault.open_destination(partner, &altered).is_err(),
                "byte {offset}"
            );
        }
        assert!(vault.open_destination(partner, &sealed[..10]).is_err());
    }
}
