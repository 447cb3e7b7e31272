//! Who owns the data directory?
//!
//! One service, for as long as it lives: it holds the lock on `service.lock`. That lock is also how the guard of the
//! private Postgres sees that the service is alive, so it is taken with an external database as well.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::error::DataDirError;
use super::lock::LockFile;

/// How long a start waits for the lock. Longer than any look by a guard, which takes microseconds, and short enough for a
/// person who started a second service by mistake.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Mode of a data directory made by root: others may pass through (Postgres runs as another user below it), not look.
const MODE_AS_ROOT: u32 = 0o711;

/// Mode of a data directory made by an ordinary user, under whom Postgres runs as well.
const MODE_AS_USER: u32 = 0o700;

/// An opened data directory, and the right to be the only service on it.
///
/// The right ends when the last clone is dropped; a running [`super::PrivatePostgres`] keeps one.
#[derive(Clone, Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: Arc<LockFile>,
}

impl DataDir {
    /// Makes the directory if it is missing and takes its lock.
    ///
    /// Waits up to a second for the lock, so blocks.
    ///
    /// # Errors
    /// [`DataDirError::InUse`] with the other's pid if a service lives on it; [`DataDirError::Io`] if the directory or its
    /// lock file cannot be made.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        create(path)?;
        let path = fs::canonicalize(path).map_err(io_at("resolve", path))?;
        let lock_path = service_lock(&path);
        let held = LockFile::acquire(&lock_path, LOCK_TIMEOUT).map_err(io_at("lock", &lock_path))?;
        let Some(lock) = held else {
            return Err(DataDirError::InUse {
                pid: read_holder_pid(&lock_path),
                path,
            });
        };
        lock.write(&format!("{:>10}\n", std::process::id()))
            .map_err(io_at("write", &lock_path))?;
        Ok(Self {
            path,
            _lock: Arc::new(lock),
        })
    }

    /// The directory, absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Where the lock lies whose holder is the service.
pub(super) fn service_lock(data_dir: &Path) -> PathBuf {
    data_dir.join("service.lock")
}

fn create(path: &Path) -> Result<(), DataDirError> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(io_at("create", parent))?;
    }
    let mode = if rustix::process::geteuid().is_root() {
        MODE_AS_ROOT
    } else {
        MODE_AS_USER
    };
    match DirBuilder::new().mode(mode).create(path) {
        // Set once more because a strict umask takes bits away that Postgres' user needs.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(mode)).map_err(io_at("open up", path)),
        // Made by somebody between the look and the deed: the lock decides who may use it.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(io_at("create", path)(error)),
    }
}

fn read_holder_pid(lock_path: &Path) -> String {
    let text = fs::read_to_string(lock_path).unwrap_or_default();
    let pid = text.trim();
    if pid.is_empty() {
        "unknown".to_owned()
    } else {
        pid.to_owned()
    }
}

fn io_at(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> DataDirError {
    let path = path.to_path_buf();
    move |source| DataDirError::Io { operation: doing, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_service_is_refused_and_told_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er");
        let first = DataDir::open(&path).unwrap();
        let second = DataDir::open(&path).unwrap_err();
        assert!(
            second.to_string().contains(&std::process::id().to_string()),
            "{second}"
        );
        drop(first);
        DataDir::open(&path).unwrap();
    }

    #[test]
    fn a_short_look_at_the_lock_refuses_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        drop(DataDir::open(&path).unwrap());
        let look = LockFile::acquire(&service_lock(&path), Duration::ZERO)
            .unwrap()
            .expect("free");
        let opening = std::thread::scope(|scope| {
            let opening = scope.spawn(|| DataDir::open(&path));
            drop(look);
            opening.join().unwrap()
        });
        opening.unwrap();
    }
}
