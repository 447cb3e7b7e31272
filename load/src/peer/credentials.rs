//! With which credentials is a peer called? Those of a file, which is written with new ones where there is none: the form is
//! that of the service's `sandbox-partner.json`, so that `load run` takes either.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::schema::PeerPartner;

/// What a partner of the peer has to spend unless told otherwise: more than any run spends. Minor units.
pub const BALANCE: i64 = 90_000_000_000_000;

/// Why a peer has no credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file can be neither read nor written.
    #[error("cannot use the credentials file {path}")]
    File {
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file is of another form.
    #[error("the credentials file {path} is not {{partner_id, api_key, api_secret}}")]
    Form {
        path: PathBuf,
        /// What is wrong with it.
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

/// Reads the file, or writes a new one.
///
/// # Errors
/// [`CredentialsError`].
pub fn read_or_create(path: &Path) -> Result<PeerPartner, CredentialsError> {
    let form = |source| CredentialsError::Form {
        path: path.to_owned(),
        source,
    };
    let file = |source| CredentialsError::File {
        path: path.to_owned(),
        source,
    };
    let text: PartnerFileText = match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(form)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = made();
            let bytes = serde_json::to_vec_pretty(&made).map_err(form)?;
            std::fs::write(path, bytes).map_err(file)?;
            made
        }
        Err(error) => return Err(file(error)),
    };
    Ok(PeerPartner {
        api_key: text.api_key,
        api_secret: text.api_secret,
        balance: BALANCE,
    })
}

/// As long as the service's, so that hashing them costs the same.
fn made() -> PartnerFileText {
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
    fn a_file_is_made_once_and_then_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("peer-partner.json");
        let made = read_or_create(&path).unwrap();
        let again = read_or_create(&path).unwrap();
        assert_eq!((made.api_key, made.api_secret), (again.api_key, again.api_secret));
        crate::partner_file::PartnerFile::read(&path).unwrap();
        std::fs::write(&path, "{}").unwrap();
        assert!(matches!(read_or_create(&path), Err(CredentialsError::Form { .. })));
        assert!(matches!(
            read_or_create(dir.path()),
            Err(CredentialsError::File { .. })
        ));
    }
}
