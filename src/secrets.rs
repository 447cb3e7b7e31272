//! What the service must remember beside its database: master key, operator's token, the node's name.
//!
//! In the sandbox they are made at the first start and kept in the data directory, readable by its owner alone; in
//! production they are handed in.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use secrecy::{ExposeSecret as _, SecretString};

use crate::admin::OperatorToken;
use crate::settings::ServeSettings;
use crate::vault::key_file;
use crate::vault::master_key::MasterKey;

/// Where the sandbox keeps the operator's token.
pub const OPERATOR_TOKEN_FILE: &str = "operator-token";

/// Where the sandbox keeps its master key.
const MASTER_KEY_FILE: &str = "master-key";

/// Where a node keeps its name: a restart is the same node, and takes its own stock back at once.
const NODE_FILE: &str = "node";

/// Shortest token that is accepted. Characters.
const MIN_TOKEN_LENGTH: usize = 32;

/// Random bytes of a token that is made here.
const TOKEN_BYTES: usize = 32;

/// The text of a secret, at the one place that needs it.
#[must_use]
pub fn expose(secret: &SecretString) -> &str {
    secret.expose_secret()
}

/// The master key, as it was set or as the data directory keeps it.
///
/// # Errors
/// When it is no key, or its file cannot be read or made, or others may read it.
pub fn master_key(settings: &ServeSettings, data_dir: &Path) -> anyhow::Result<MasterKey> {
    match &settings.master_key {
        Some(key) => MasterKey::parse(expose(key)).context("read VOUCHSAFE_MASTER_KEY"),
        None => {
            key_file::load_or_create(&data_dir.join(MASTER_KEY_FILE)).context("read or make the master key")
        }
    }
}

/// The operator's token, as it was set or as the data directory keeps it.
///
/// # Errors
/// When it is too short, or its file cannot be read or made.
pub fn operator_token(settings: &ServeSettings, data_dir: &Path) -> anyhow::Result<OperatorToken> {
    let token = match &settings.operator_token {
        Some(token) => expose(token).to_owned(),
        None => read_or_create(&data_dir.join(OPERATOR_TOKEN_FILE), || random_hex(TOKEN_BYTES))?,
    };
    if token.len() < MIN_TOKEN_LENGTH {
        bail!("the operator's token has at least {MIN_TOKEN_LENGTH} characters");
    }
    Ok(OperatorToken::new(&token))
}

/// The name of this node.
///
/// # Errors
/// When its file cannot be read or made.
pub fn node_name(data_dir: &Path) -> anyhow::Result<String> {
    read_or_create(&data_dir.join(NODE_FILE), || {
        Ok(format!("node-{}", random_hex(4)?))
    })
}

/// What the file holds; made by `make` where there is none.
fn read_or_create(path: &Path, make: impl FnOnce() -> anyhow::Result<String>) -> anyhow::Result<String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let text = make()?;
            write_private(path, &format!("{text}\n"))?;
            Ok(text)
        }
        Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
    }
}

/// Writes a file that its owner alone can read, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let draft = path.with_extension("draft");
    let write = || -> std::io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        // The new name is on disk, too, before anything is committed that rests on it.
        let directory = path
            .parent()
            .filter(|directory| !directory.as_os_str().is_empty());
        fs::File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    };
    write().with_context(|| format!("write {}", path.display()))
}

fn random_hex(bytes: usize) -> anyhow::Result<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).context("draw random bytes")?;
    Ok(hex::encode(random))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_made_once_is_kept_and_private() {
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
