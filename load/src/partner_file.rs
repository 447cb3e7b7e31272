//! Who is the partner of a sandbox? The file that the service writes at its first start.

use std::path::Path;

use serde::Deserialize;

use crate::signer::{Credentials, CredentialEncodingError};

/// Why a partner cannot be read from a file.
#[derive(Debug, thiserror::Error)]
pub enum PartnerFileError {
    /// The file could not be read.
    #[error("cannot read the credentials file")]
    Read(#[source] std::io::Error),
    /// The file is not of the form named.
    #[error("the credentials file is not {{partner_id, api_key, api_secret}}")]
    Parse(#[source] serde_json::Error),
    /// The key or the secret cannot stand in a header.
    #[error(transparent)]
    Credentials(#[from] CredentialEncodingError),
}

/// A partner as the service's `sandbox-partner.json` names it.
#[derive(Clone, Debug)]
pub struct PartnerFile {
    /// The partner's id, `ptn_…`.
    pub partner_id: String,
    pub credentials: Credentials,
}

#[derive(Deserialize)]
struct PartnerFileText {
    partner_id: String,
    api_key: String,
    api_secret: String,
}

impl PartnerFile {
    /// Reads `{partner_id, api_key, api_secret}` from a JSON file.
    ///
    /// # Errors
    /// When the file cannot be read, is not of that form, or its credentials cannot stand in a header.
    pub fn read(path: &Path) -> Result<Self, PartnerFileError> {
        let text = std::fs::read(path).map_err(PartnerFileError::Read)?;
        let file: PartnerFileText = serde_json::from_slice(&text).map_err(PartnerFileError::Parse)?;
        let credentials = Credentials::new(&file.api_key, &file.api_secret)?;
        Ok(Self {
            partner_id: file.partner_id,
            credentials,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partner_file_is_read_and_a_broken_one_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sandbox-partner.json");
        assert!(matches!(PartnerFile::read(&path), Err(PartnerFileError::Read(_))));
        std::fs::write(&path, r#"{"partner_id":"ptn_1","api_key":"k"}"#).unwrap();
        assert!(matches!(
            PartnerFile::read(&path),
            Err(PartnerFileError::Parse(_))
        ));
        std::fs::write(
            &path,
            r#"{"partner_id":"ptn_1","api_key":"k","api_secret":"a\nb"}"#,
        )
        .unwrap();
        assert!(matches!(
            PartnerFile::read(&path),
            Err(PartnerFileError::Credentials(_))
        ));
        std::fs::write(&path, r#"{"partner_id":"ptn_1","api_key":"k","api_secret":"s"}"#).unwrap();
        assert_eq!(PartnerFile::read(&path).unwrap().partner_id, "ptn_1");
    }
}
