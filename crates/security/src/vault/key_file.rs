//! Master key file of the sandbox, created in the data directory at the first start.
//!
//! The file is readable by its owner only, appears atomically, and is never overwritten: that would lose
//! every code encrypted under it.
//!
//! | Step | On disk after it |
//! |---|---|
//! | write and sync a temporary file | a harmless leftover with a unique name |
//! | hard-link it to the final name, which fails if that exists | the key, under both names |
//! | unlink the temporary name, sync the directory | the key |

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::master_key::{InvalidMasterKey, MasterKey};
use super::random::{NoRandomness, fill};

/// Name of the file in the data directory.
pub const NAME: &str = "master-key";

/// Read and write for the owner.
const OWNER_ONLY: u32 = 0o600;
const GROUP_AND_OTHERS: u32 = 0o077;
/// A key has 65 bytes; a longer file is something else.
const MAX_FILE_BYTES: u64 = 1024;

/// Why the key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// Reading or writing failed.
    #[error("cannot read or create the master key file {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// Group or others may read or write it.
    #[error("the master key file {path} is accessible to other users (mode {mode:03o}); run chmod 600 on it")]
    Exposed { path: PathBuf, mode: u32 },
    /// The content is not a key.
    #[error("the master key file {path} contains no valid master key: {source}")]
    Invalid { path: PathBuf, source: InvalidMasterKey },
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

/// Loads the key of this file, or generates and stores one. Of processes that create it concurrently, all
/// load the key of the first.
///
/// # Errors
/// [`KeyFileError`]; an existing file is never changed.
pub fn load_or_create(path: &Path) -> Result<MasterKey, KeyFileError> {
    let io = |source| KeyFileError::Io {
        path: path.to_owned(),
        source,
    };
    if !path.try_exists().map_err(io)? {
        let key = MasterKey::generate()?;
        let mut suffix = [0; 8];
        fill(&mut suffix)?;
        let temporary = path.with_extension(format!("new-{}", hex::encode(suffix)));
        create(path, &temporary, &key).map_err(io)?;
    }
    load(path)
}

/// Loads the key of this file.
///
/// # Errors
/// [`KeyFileError`].
pub fn load(path: &Path) -> Result<MasterKey, KeyFileError> {
    let (mode, text) = read(path).map_err(|source| KeyFileError::Io {
        path: path.to_owned(),
        source,
    })?;
    if mode & GROUP_AND_OTHERS != 0 {
        return Err(KeyFileError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    MasterKey::parse(&text).map_err(|source| KeyFileError::Invalid {
        path: path.to_owned(),
        source,
    })
}

/// Permission bits and text of the same open file.
fn read(path: &Path) -> io::Result<(u32, Zeroizing<String>)> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok((mode, text))
}

fn create(path: &Path, temporary: &Path, key: &MasterKey) -> io::Result<()> {
    let written = write_synced(temporary, key).and_then(|()| link_if_absent(temporary, path));
    // Also after a failure: the temporary name is never needed again.
    let removed = fs::remove_file(temporary);
    written.and(removed)?;
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .map_or(Ok(()), sync_directory)
}

fn write_synced(path: &Path, key: &MasterKey) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(OWNER_ONLY)
        .open(path)?;
    file.write_all(key.to_hex().as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

fn link_if_absent(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn key_created_once_is_loaded_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master-key");
        let created = load_or_create(&path).unwrap();
        let loaded = load_or_create(&path).unwrap();
        assert_eq!(*created.to_hex(), *loaded.to_hex());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            OWNER_ONLY
        );
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            1,
            "no temporary file remains"
        );
    }

    #[test]
    fn concurrent_creation_gives_one_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master-key");
        let make = || load_or_create(&path).unwrap().to_hex().to_string();
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn exposed_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master-key");
        for mode in [0o640, 0o604, 0o620, 0o601] {
            write(&path, &"ab".repeat(32), mode);
            let error = load_or_create(&path).unwrap_err();
            assert!(
                matches!(error, KeyFileError::Exposed { mode: m, .. } if m == mode),
                "{error}"
            );
        }
        write(&path, &"ab".repeat(32), 0o400);
        assert!(load_or_create(&path).is_ok());
    }

    #[test]
    fn invalid_file_is_refused_and_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master-key");
        for text in ["", "canary-that-is-no-key", &"ab".repeat(4096)] {
            write(&path, text, OWNER_ONLY);
            let error = load_or_create(&path).unwrap_err();
            assert!(matches!(error, KeyFileError::Invalid { .. }), "{error}");
            assert!(!format!("{error} {error:?}").contains("canary"));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn missing_directory_is_named_in_the_error() {
        let directory = tempfile::tempdir().unwrap();
        let error = load_or_create(&directory.path().join("missing/master-key")).unwrap_err();
        assert!(error.to_string().contains("missing/master-key"), "{error}");
    }
}
