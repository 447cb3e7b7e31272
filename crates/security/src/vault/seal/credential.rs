//! Encrypted vendor credentials, bound to their vendor and its URL.
//!
//! Encrypted under the active data key like codes, with associated data that no code has: a credential does
//! not decrypt as a code, nor for another vendor or URL. A database user who writes another URL does not
//! receive the credential.

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::{SealError, SealedBlob, Vault};
use crate::secret::expose;
use crate::vault::data_key::KeyId;

/// Domain separation from other encrypted values.
const CREDENTIAL_CONTEXT: &[u8] = b"vouchsafe vendor credential v2";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenCredentialError {
    /// The data key is not loaded.
    #[error("data key {key_id} is not loaded")]
    UnknownKey { key_id: KeyId },
    /// It was altered, or belongs to another vendor or URL.
    #[error(
        "cannot decrypt the credential of vendor {vendor_id}: it was altered, or belongs to another vendor or url; put both again"
    )]
    AuthenticationFailed { vendor_id: String },
}

impl Vault {
    /// Encrypts the credential of a vendor at a URL.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn seal_credential(
        &self,
        vendor_id: &str,
        url: Option<&str>,
        credential: &SecretString,
    ) -> Result<SealedBlob, SealError> {
        self.seal_with(
            |key_id| associated_data(key_id, vendor_id, url),
            expose(credential).as_bytes(),
        )
    }

    /// Decrypts the credential of a vendor at a URL.
    ///
    /// # Errors
    /// [`OpenCredentialError`].
    pub fn open_credential(
        &self,
        vendor_id: &str,
        url: Option<&str>,
        sealed: &SealedBlob,
    ) -> Result<SecretString, OpenCredentialError> {
        let key_id = sealed.key_id;
        let cipher = self
            .ciphers
            .get(&key_id)
            .ok_or(OpenCredentialError::UnknownKey { key_id })?;
        let refused = || OpenCredentialError::AuthenticationFailed {
            vendor_id: vendor_id.to_owned(),
        };
        let data = associated_data(key_id, vendor_id, url);
        let plain: Zeroizing<Vec<u8>> = cipher
            .open(sealed.nonce, &data, &sealed.ciphertext)
            .ok_or_else(refused)?;
        std::str::from_utf8(&plain)
            .map(SecretString::from)
            .map_err(|_| refused())
    }
}

/// The key id has a fixed length, and neither a vendor id nor a URL has a zero byte, so that the associated
/// data is unambiguous.
fn associated_data(key_id: KeyId, vendor_id: &str, url: Option<&str>) -> Vec<u8> {
    let (key_id, url) = (key_id.0.to_be_bytes(), url.unwrap_or_default());
    [
        CREDENTIAL_CONTEXT,
        &key_id,
        vendor_id.as_bytes(),
        b"\0",
        url.as_bytes(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use vouchsafe_domain::money::Amount;
    use vouchsafe_domain::product::Sku;

    use super::*;
    use crate::vault::seal::CodeId;
    use crate::vault::seal::tests::vault;

    const URL: Option<&str> = Some("https://acme.example/");

    #[test]
    fn credential_opens_for_its_vendor_and_url_only() {
        let vault = vault();
        let sealed = vault
            .seal_credential("acme", URL, &"a credential".to_owned().into())
            .unwrap();
        assert_eq!(
            expose(&vault.open_credential("acme", URL, &sealed).unwrap()),
            "a credential"
        );
        let mut altered = sealed.clone();
        altered.ciphertext[0] ^= 1;
        for (vendor_id, url, sealed) in [
            ("acm", URL, &sealed),
            ("acme2", URL, &sealed),
            ("", URL, &sealed),
            ("acme", Some("https://evil.example/"), &sealed),
            ("acme", None, &sealed),
            ("acme", URL, &altered),
        ] {
            let refused = OpenCredentialError::AuthenticationFailed {
                vendor_id: vendor_id.to_owned(),
            };
            assert_eq!(
                vault.open_credential(vendor_id, url, sealed).err(),
                Some(refused),
                "{vendor_id}"
            );
        }
        let unknown = SealedBlob {
            key_id: KeyId(9),
            ..sealed
        };
        let missing = OpenCredentialError::UnknownKey { key_id: KeyId(9) };
        assert_eq!(vault.open_credential("acme", URL, &unknown).err(), Some(missing));
    }

    #[test]
    fn credential_does_not_open_as_a_code() {
        let vault = vault();
        let sealed = vault
            .seal_credential("acme", URL, &"a credential".to_owned().into())
            .unwrap();
        let sku = Sku {
            product_id: "acme".parse().unwrap(),
            denomination: Amount::from_minor(0),
        };
        assert!(vault.open(CodeId(0), &sku, &sealed).is_err());
    }
}
