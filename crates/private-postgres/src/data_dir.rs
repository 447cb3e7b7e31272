//! Data directory of a service, locked by `service.lock` for the lifetime of the process.
//!
//! The guard of the private Postgres uses the same lock to detect whether the service is alive; therefore it
//! is also taken with an external database.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::error::DataDirError;
use super::lock::LockFile;

/// Longer than a guard's probe of the lock, which takes microseconds, and short for an operator who started a
/// second service by mistake.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Other users may traverse the directory, because Postgres runs as another user below it, but not list it.
const MODE_AS_ROOT: u32 = 0o711;

/// Postgres runs as the same user.
const MODE_AS_USER: u32 = 0o700;

/// An open data directory and its exclusive lock.
///
/// The lock is released when the last clone is dropped; a running [`super::PrivatePostgres`] keeps one.
#[derive(Clone, Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: Arc<LockFile>,
}

impl DataDir {
    /// Creates the directory if it is missing and takes its lock. Blocks up to one second.
    ///
    /// # Errors
    /// [`DataDirError::InUse`] with the pid of the service that holds the lock; [`DataDirError::Io`] if the
    /// directory or its lock file cannot be created.
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

    /// Absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The lock file whose holder is the service.
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
        // Set again: a strict umask removes bits that the Postgres account needs.
        Ok(()) => {
            fs::set_permissions(path, Permissions::from_mode(mode)).map_err(io_at("set the mode of", path))
        }
        // Another process created it since the check: the lock decides which one may use it.
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

fn io_at(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> DataDirError {
    let path = path.to_path_buf();
    move |source| DataDirError::Io {
        operation,
        path,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_service_is_refused_with_the_pid_of_the_first() {
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
    fn short_probe_of_the_lock_does_not_refuse_a_service() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        drop(DataDir::open(&path).unwrap());
        let probe = LockFile::acquire(&service_lock(&path), Duration::ZERO)
            .unwrap()
            .expect("free");
        let opening = std::thread::scope(|scope| {
            let opening = scope.spawn(|| DataDir::open(&path));
            drop(probe);
            opening.join().unwrap()
        });
        opening.unwrap();
    }
}
