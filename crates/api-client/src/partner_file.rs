//! Credentials file of the sandbox partner, which the service writes at its first start.

use std::path::Path;

use serde::Deserialize;

use super::signer::{CredentialEncodingError, Credentials};

/// Reason for an unusable credentials file.
#[derive(Debug, thiserror::Error)]
pub enum PartnerFileError {
    #[error("cannot read the credentials file")]
    Read(#[source] std::io::Error),
    #[error("the credentials file is not JSON with partner_id, api_key and api_secret")]
    Parse(#[source] serde_json::Error),
    #[error(transparent)]
    Credentials(#[from] CredentialEncodingError),
}

/// Content of the service's `sandbox-partner.json`.
#[derive(Clone, Debug)]
pub struct PartnerFile {
    /// `ptn_…`.
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
    /// Reads a JSON file with `partner_id`, `api_key` and `api_secret`.
    ///
    /// # Errors
    /// If the file cannot be read, has another format, or contains an invalid header value.
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
    fn partner_file_is_read_and_malformed_one_is_rejected() {
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
