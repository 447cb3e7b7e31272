//! File locks (flock) for process liveness.
//!
//! The kernel releases a lock at the end of its holder, however it ends, and unlike a pid a lock cannot be
//! mistaken for another process's. The file's content is for people and for signals.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, thread};

/// Interval between attempts to take a held lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The content names processes, which is private.
const LOCK_MODE: u32 = 0o600;

/// A file whose exclusive lock this process holds while the value lives.
#[derive(Debug)]
pub(super) struct LockFile {
    file: File,
    path: PathBuf,
}

/// State of a lock.
#[derive(Debug)]
pub(super) enum LockProbe {
    Held,
    /// The lock was free; this value holds it until it is dropped.
    Free(LockFile),
    /// The file does not exist.
    Missing,
}

impl LockFile {
    /// Takes the lock and creates the file if needed; `None` if it is still held after `timeout`.
    ///
    /// # Errors
    /// Those of the file system when opening or locking.
    pub(super) fn acquire(path: &Path, timeout: Duration) -> io::Result<Option<Self>> {
        let deadline = Instant::now() + timeout;
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(LOCK_MODE);
        loop {
            match try_lock(options.open(path)?, path)? {
                Some(held) => return Ok(Some(held)),
                None if Instant::now() >= deadline => return Ok(None),
                None => thread::sleep(RETRY_INTERVAL),
            }
        }
    }

    /// Tests whether the lock is held, without creating the file.
    ///
    /// # Errors
    /// Those of the file system when opening or locking, except for a missing file.
    pub(super) fn probe(path: &Path) -> io::Result<LockProbe> {
        match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => Ok(try_lock(file, path)?.map_or(LockProbe::Held, LockProbe::Free)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LockProbe::Missing),
            Err(error) => Err(error),
        }
    }

    /// Replaces the content. Texts of one lock have the same length, so that a reader never sees a partial
    /// one.
    ///
    /// # Errors
    /// Those of the file system when writing.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }

    /// Whether the path still leads to the locked file: false once the directory was removed or replaced.
    pub(super) fn is_at_its_path(&self) -> bool {
        match (self.file.metadata(), std::fs::metadata(&self.path)) {
            (Ok(held), Ok(found)) => (held.dev(), held.ino()) == (found.dev(), found.ino()),
            _ => false,
        }
    }
}

impl Drop for LockFile {
    /// Unlocks before the descriptor is closed: a child process that is between fork and exec has a copy of
    /// the descriptor, which would keep the lock for that moment.
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!(error.message = %error, path = %self.path.display(), "cannot unlock");
        }
    }
}

fn try_lock(file: File, path: &Path) -> io::Result<Option<LockFile>> {
    match file.try_lock() {
        Ok(()) => Ok(Some(LockFile {
            file,
            path: path.to_path_buf(),
        })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acquire_of_a_held_lock_times_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        let held = LockFile::acquire(&path, Duration::ZERO)
            .unwrap()
            .expect("the lock is free");
        assert!(
            LockFile::acquire(&path, Duration::from_millis(50))
                .unwrap()
                .is_none()
        );
        assert!(matches!(LockFile::probe(&path).unwrap(), LockProbe::Held));
        drop(held);
        assert!(matches!(LockFile::probe(&path).unwrap(), LockProbe::Free(_)));
        assert!(LockFile::acquire(&path, Duration::ZERO).unwrap().is_some());
    }

    #[test]
    fn dropped_lock_is_free_while_a_copy_of_its_descriptor_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        let held = LockFile::acquire(&path, Duration::ZERO)
            .unwrap()
            .expect("the lock is free");
        let copy = held.file.try_clone().unwrap();
        drop(held);
        assert!(matches!(LockFile::probe(&path).unwrap(), LockProbe::Free(_)));
        drop(copy);
    }

    #[test]
    fn probe_creates_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        assert!(matches!(LockFile::probe(&path).unwrap(), LockProbe::Missing));
        assert!(!path.exists());
    }

    #[test]
    fn replaced_file_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        let held = LockFile::acquire(&path, Duration::ZERO)
            .unwrap()
            .expect("the lock is free");
        assert!(held.is_at_its_path());
        std::fs::remove_file(&path).unwrap();
        assert!(!held.is_at_its_path());
        std::fs::write(&path, "").unwrap();
        assert!(!held.is_at_its_path());
    }
}
