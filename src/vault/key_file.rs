//! Where does the sandbox's master key live?
//!
//! In a file of the data directory, made at the first start. The rules: nobody but its owner may read it, it appears
//! whole or not at all, and it is never written over, as that would lose every code sealed under it.
//!
//! | Step | On disk after it |
//! |---|---|
//! | write and sync a file beside it | a leftover with a name of its own, harmless |
//! | link it to the name, which fails if the name is taken | the key, under both names |
//! | unlink the first name, sync the directory | the key |

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::master_key::{InvalidMasterKey, MasterKey};
use super::random::{NoRandomness, fill};

/// Read and write for the owner alone.
const OWNER_ONLY: u32 = 0o600;
/// The permissions that group and others must not have.
const GROUP_AND_OTHERS: u32 = 0o077;
/// Most bytes that are read: a key is 65, and what is longer is something else.
const MAX_FILE_BYTES: u64 = 1024;

/// Why there is no key to be had from the file.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read or written.
    #[error("cannot read or make the master key file {path}: {source}")]
    Io {
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Others than its owner may read or write it.
    #[error("the master key file {path} is open to others (mode {mode:03o}): chmod 600 it")]
    Exposed {
        path: PathBuf,
        mode: u32,
    },
    /// It holds something else.
    #[error("the master key file {path} holds no master key: {source}")]
    Invalid {
        path: PathBuf,
        source: InvalidMasterKey,
    },
    /// A new key could not be made.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

/// The key of this file; makes both if the file is not there. Of two processes that make it at once, both get the key
/// of the one that was first.
///
/// # Errors
/// [`KeyFileError`]; a file that is there is never changed.
pub fn load_or_create(path: &Path) -> Result<MasterKey, KeyFileError> {
    let io = |source| KeyFileError::Io {
        path: path.to_owned(),
        source,
    };
    if !path.try_exists().map_err(io)? {
        let key = MasterKey::generate()?;
        let mut suffix = [0; 8];
        fill(&mut suffix)?;
        let beside = path.with_extension(format!("new-{}", hex::encode(suffix)));
        create(path, &beside, &key).map_err(io)?;
    }
    load(path)
}

/// The key of this file.
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

/// The permission bits and the text of one and the same open file.
fn read(path: &Path) -> io::Result<(u32, Zeroizing<String>)> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok((mode, text))
}

fn create(path: &Path, beside: &Path, key: &MasterKey) -> io::Result<()> {
    let written = write_synced(beside, key).and_then(|()| link_if_absent(beside, path));
    // Whatever happened, the first name has done its work.
    let removed = fs::remove_file(beside);
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
    fn the_first_start_makes_the_key_and_later_ones_find_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master-key");
        let made = load_or_create(&path).unwrap();
        let found = load_or_create(&path).unwrap();
        assert_eq!(*made.to_hex(), *found.to_hex());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            OWNER_ONLY
        );
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn of_many_that_make_it_at_once_all_have_one_key() {
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
    fn a_file_that_others_may_read_is_refused() {
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
    fn a_file_with_something_else_is_refused_and_left_alone() {
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
    fn a_directory_that_is_not_there_is_an_error_that_names_it() {
        let directory = tempfile::tempdir().unwrap();
        let error = load_or_create(&directory.path().join("missing/master-key")).unwrap_err();
        assert!(error.to_string().contains("missing/master-key"), "{error}");
    }
}
