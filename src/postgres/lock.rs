//! How does one process know that another one lives?
//!
//! By a lock on a file (flock), never by a pid alone: the kernel releases it at the very end of its holder, however that
//! end comes, and no pid can be mistaken for another. The text inside is for people and for signals.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Pause between two tries for a lock that somebody else holds.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Mode of a lock file: its text names processes, which is nobody else's business.
const LOCK_MODE: u32 = 0o600;

/// A file whose exclusive lock this process holds for as long as the value lives.
#[derive(Debug)]
pub(super) struct LockFile {
    file: File,
    path: PathBuf,
}

/// What a look at somebody else's lock saw.
#[derive(Debug)]
pub(super) enum LockProbe {
    Held,
    /// Nobody held it; now this value does, until it is dropped.
    Free(LockFile),
    /// There is no such file, or not any more.
    Missing,
}

impl LockFile {
    /// Takes the lock, making the file if needed; `None` if it is still held after `patience`.
    ///
    /// # Errors
    /// Whatever the file system says when opening or locking.
    pub(super) fn acquire(path: &Path, patience: Duration) -> io::Result<Option<Self>> {
        let deadline = Instant::now() + patience;
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

    /// Looks whether somebody holds the lock, without making the file.
    ///
    /// # Errors
    /// Whatever the file system says when opening or locking, except that the file is missing.
    pub(super) fn probe(path: &Path) -> io::Result<LockProbe> {
        match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => Ok(try_lock(file, path)?.map_or(LockProbe::Held, LockProbe::Free)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LockProbe::Missing),
            Err(error) => Err(error),
        }
    }

    /// Replaces the text in the file. Texts of one lock have one length, so that no reader sees half of one.
    ///
    /// # Errors
    /// Whatever the file system says when writing.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }

    /// Whether the path still leads to the file that is locked: false once the directory was removed or replaced.
    pub(super) fn is_at_its_path(&self) -> bool {
        match (self.file.metadata(), std::fs::metadata(&self.path)) {
            (Ok(held), Ok(found)) => (held.dev(), held.ino()) == (found.dev(), found.ino()),
            _ => false,
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
    fn a_second_taker_waits_its_patience_and_goes_without() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        let held = LockFile::acquire(&path, Duration::ZERO)
            .unwrap()
            .expect("nobody holds it");
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
    fn a_probe_makes_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        assert!(matches!(LockFile::probe(&path).unwrap(), LockProbe::Missing));
        assert!(!path.exists());
    }

    #[test]
    fn a_replaced_file_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        let held = LockFile::acquire(&path, Duration::ZERO)
            .unwrap()
            .expect("nobody holds it");
        assert!(held.is_at_its_path());
        std::fs::remove_file(&path).unwrap();
        assert!(!held.is_at_its_path());
        std::fs::write(&path, "").unwrap();
        assert!(!held.is_at_its_path());
    }
}
