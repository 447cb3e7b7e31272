//! Secrets outside the database: master key, operator token and node name.
//!
//! In the sandbox they are generated at the first start and stored in the data directory, readable by its
//! owner only; in production they come from settings.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use vouchsafe_kms::KeyFile;
use vouchsafe_private_postgres::{OPERATOR_TOKEN_FILE, write_private};
use vouchsafe_security::environment::Environment;
use vouchsafe_security::operator_token::{OperatorToken, OperatorTokenHash, TokenKind};
use vouchsafe_security::secret::expose;
use vouchsafe_security::vault::key_file;
use vouchsafe_security::vault::wrapping_key::WrappingKeys;

use crate::settings::ServeSettings;

/// The node name survives a restart, so that the node reclaims its own stock at once.
const NODE_FILE: &str = "node";

const MIN_TOKEN_LENGTH: usize = 32;

/// The wrapping keys from the settings, or the master key from the data directory of a sandbox.
///
/// # Errors
/// If a key is invalid, or its file cannot be read or created, or other users may read it.
pub(crate) fn wrapping_keys(settings: &ServeSettings, data_dir: &Path) -> anyhow::Result<WrappingKeys> {
    let path = data_dir.join(key_file::NAME);
    let file = match settings.environment {
        Environment::Sandbox => KeyFile::CreateIfMissing(&path),
        // A key that only this machine has would be lost with it, and differ from those of the other nodes.
        Environment::Production => KeyFile::None,
    };
    let keys = settings.keys.load(file)?;
    keys.context("no master key; set VOUCHSAFE_MASTER_KEY_FILE")
}

/// The operator token of the settings.
///
/// # Errors
/// If it is too short.
pub(crate) fn operator_token(settings: &ServeSettings) -> anyhow::Result<Option<OperatorTokenHash>> {
    let Some(token) = settings.operator_token.as_ref().map(expose) else {
        return Ok(None);
    };
    if token.len() < MIN_TOKEN_LENGTH {
        bail!("the operator token needs at least {MIN_TOKEN_LENGTH} characters");
    }
    Ok(Some(OperatorTokenHash::of(token.as_bytes())))
}

/// The token of the sandbox's admin in the data directory, which the first start creates.
///
/// # Errors
/// If it is too short, or its file cannot be read or created.
pub(crate) fn sandbox_token(data_dir: &Path) -> anyhow::Result<OperatorTokenHash> {
    let token = read_or_create(&data_dir.join(OPERATOR_TOKEN_FILE), || {
        let token = OperatorToken::generate(TokenKind::Api, getrandom::fill).context("read random bytes")?;
        Ok(token.expose().to_owned())
    })?;
    if token.len() < MIN_TOKEN_LENGTH {
        bail!("the token in {OPERATOR_TOKEN_FILE} needs at least {MIN_TOKEN_LENGTH} characters");
    }
    Ok(OperatorTokenHash::of(token.as_bytes()))
}

/// # Errors
/// If its file cannot be read or created.
pub(crate) fn node_name(data_dir: &Path) -> anyhow::Result<String> {
    read_or_create(&data_dir.join(NODE_FILE), || {
        Ok(format!("node-{}", random_hex(4)?))
    })
}

/// Returns the trimmed text of the file; creates it with `create` if it does not exist.
fn read_or_create(path: &Path, create: impl FnOnce() -> anyhow::Result<String>) -> anyhow::Result<String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let text = create()?;
            write_private(path, &format!("{text}\n")).with_context(|| format!("write {}", path.display()))?;
            Ok(text)
        }
        Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
    }
}

fn random_hex(bytes: usize) -> anyhow::Result<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).context("read random bytes")?;
    Ok(hex::encode(random))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::program::Cli;

    #[test]
    fn empty_master_key_creates_a_file_in_the_sandbox_only() {
        for (environment, is_created) in [("sandbox", true), ("production", false)] {
            let directory = tempfile::tempdir().unwrap();
            let arguments =
                ["vouchsafe", "--environment", environment, "--master-key", ""].map(std::ffi::OsString::from);
            let cli = Cli::read(&arguments).unwrap();
            let keys = wrapping_keys(cli.serve_settings(), directory.path());
            let has_file = directory.path().join(key_file::NAME).exists();
            assert_eq!(
                (keys.is_ok(), has_file),
                (is_created, is_created),
                "{environment}"
            );
        }
    }

    #[test]
    fn node_name_is_created_once_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let name = node_name(directory.path()).unwrap();
        assert_eq!(node_name(directory.path()).unwrap(), name);
        let mode = fs::metadata(directory.path().join(NODE_FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
