//! Credentials file of the peer, created if missing. The format is that of the service's `sandbox-partner.json`, so
//! that `load run` accepts either.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::schema::PeerPartner;

/// Balance of the peer's partner in minor units: more than any run spends.
pub const BALANCE: i64 = 90_000_000_000_000;

/// Reason for missing credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read or written.
    #[error("cannot use the credentials file {path}")]
    File {
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The file has another format.
    #[error("the credentials file {path} is not JSON with partner_id, api_key and api_secret")]
    Form {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
}

#[derive(Serialize, Deserialize)]
struct PartnerFileText {
    partner_id: String,
    api_key: String,
    api_secret: String,
}

/// Reads the file, or creates it with new credentials.
///
/// # Errors
/// [`CredentialsError`] if the file cannot be read, parsed or written.
pub fn read_or_create(path: &Path) -> Result<PeerPartner, CredentialsError> {
    let format_error = |source| CredentialsError::Form {
        path: path.to_owned(),
        source,
    };
    let file_error = |source| CredentialsError::File {
        path: path.to_owned(),
        source,
    };
    let text: PartnerFileText = match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(format_error)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let generated = generate();
            let bytes = serde_json::to_vec_pretty(&generated).map_err(format_error)?;
            std::fs::write(path, bytes).map_err(file_error)?;
            generated
        }
        Err(error) => return Err(file_error(error)),
    };
    Ok(PeerPartner {
        api_key: text.api_key,
        api_secret: text.api_secret,
        balance: BALANCE,
    })
}

/// Generates values as long as those of the service, so that hashing them costs the same.
fn generate() -> PartnerFileText {
    let random = || format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    PartnerFileText {
        partner_id: format!("ptn_{}", Uuid::now_v7().simple()),
        api_key: format!("vs_sandbox_{}", Uuid::new_v4().simple()),
        api_secret: random(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_created_once_and_then_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("peer-partner.json");
        let generated = read_or_create(&path).unwrap();
        let again = read_or_create(&path).unwrap();
        assert_eq!(
            (generated.api_key, generated.api_secret),
            (again.api_key, again.api_secret)
        );
        vouchsafe_api_client::partner_file::PartnerFile::read(&path).unwrap();
        std::fs::write(&path, "{}").unwrap();
        assert!(matches!(
            read_or_create(&path),
            Err(CredentialsError::Form { .. })
        ));
        assert!(matches!(
            read_or_create(dir.path()),
            Err(CredentialsError::File { .. })
        ));
    }
}
