//! How is it kept where a payout goes, which whoever pays must read again?
//!
//! The rule: it is sealed for its partner alone (`bound.rs`).

use zeroize::Zeroizing;

use super::{SealError, Vault};

/// Keeps the associated data of a destination apart from that of anything else.
const DESTINATION_CONTEXT: &[u8] = b"vouchsafe payout destination v1";

/// Why a sealed destination does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the destination does not open: it was altered, belongs to another partner, or its data key is not loaded"
)]
pub struct OpenDestinationError;

impl Vault {
    /// Seals a destination of this partner: the text of a JSON object.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn seal_destination(&self, partner_id: uuid::Uuid, text: &str) -> Result<Vec<u8>, SealError> {
        self.seal_bound(DESTINATION_CONTEXT, partner_id, text.as_bytes())
    }

    /// Opens a destination of this partner.
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

    use super::*;
    use crate::vault::aead::NONCE_BYTES;
    use crate::vault::data_key::{DataKey, KeyId, KeyPurpose};
    use crate::vault::master_key::MasterKey;

    /// Bytes of the key's number, which stands first.
    const KEY_BYTES: usize = 4;

    fn vault() -> Vault {
        let master = MasterKey::parse(&"ab".repeat(32)).unwrap();
        let key = |id, purpose| {
            DataKey::generate(KeyId(id), purpose)
                .unwrap()
                .wrap(&master)
                .unwrap()
        };
        let keys = [key(1, KeyPurpose::BlindIndex), key(2, KeyPurpose::Codes)];
        Vault::unlock(&master, &keys, 0).unwrap()
    }

    #[test]
    fn a_destination_opens_for_its_partner_alone_and_unaltered() {
        let (vault, partner) = (vault(), Uuid::from_u128(7));
        let sealed = vault.seal_destination(partner, r#"{"iban":"DE89"}"#).unwrap();
        assert_eq!(
            *vault.open_destination(partner, &sealed).unwrap(),
            r#"{"iban":"DE89"}"#
        );
        assert!(!sealed.windows(4).any(|bytes| bytes == b"DE89"));
        assert!(vault.open_destination(Uuid::from_u128(8), &sealed).is_err());
        for place in [0, KEY_BYTES, KEY_BYTES + NONCE_BYTES, sealed.len() - 1] {
            let mut altered = sealed.clone();
            altered[place] ^= 1;
            assert!(vault.open_destination(partner, &altered).is_err(), "byte {place}");
        }
        assert!(vault.open_destination(partner, &sealed[..10]).is_err());
    }
}
