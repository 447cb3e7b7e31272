//! How does a service see whether its server has a guard, and what that guard is doing?
//!
//! By the lock on `guard.lock`, which a guard holds for its life, and the note in it. The note of a dead guard stays in
//! the file and means nothing: the lock decides.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::{PostgresError, io_at};
use super::lock::{LockFile, LockProbe};
use super::process;

/// The hidden subcommand under which the service's executable is a guard.
pub const GUARD_SUBCOMMAND: &str = "postgres-guard";

/// How long a new guard waits for the lock: longer than any service's look at it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// What a guard is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardState {
    /// It is about to start or adopt the server.
    Starting,
    /// It keeps the server running.
    Serving,
    /// It is ending the server, and will end with it. Not to be undone.
    Stopping,
}

const LABELS: [(GuardState, &str); 3] = [
    (GuardState::Starting, "starting"),
    (GuardState::Serving, "serving "),
    (GuardState::Stopping, "stopping"),
];

/// What a living guard wrote down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GuardNote {
    pub(super) pid: u32,
    pub(super) state: GuardState,
    pub(super) fingerprint: String,
}

impl GuardNote {
    /// One length for all, so that no reader sees parts of two.
    fn to_text(&self) -> String {
        let word = LABELS
            .iter()
            .find(|(doing, _)| *doing == self.state)
            .map_or("", |(_, word)| word);
        format!("{:>10} {word} {}\n", self.pid, self.fingerprint)
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let pid = words.next()?.parse().ok()?;
        let word = words.next()?;
        let (doing, _) = LABELS.iter().find(|(_, known)| known.trim() == word)?;
        Some(Self {
            pid,
            state: *doing,
            fingerprint: words.next()?.to_owned(),
        })
    }

    /// Whether the pid is a guard's: between taking the lock and writing, a new guard's file shows its predecessor's.
    pub(super) fn is_guard_process(&self) -> bool {
        process::inspect(self.pid).is_some_and(|running| running.command_line.contains(GUARD_SUBCOMMAND))
    }
}

/// What a look at the guard's lock saw.
#[derive(Debug)]
pub(super) enum GuardPresence {
    Absent,
    /// One lives; its note, if it has written one.
    Alive(Option<GuardNote>),
}

/// Looks for a living guard.
///
/// # Errors
/// [`PostgresError::Io`] if the lock file cannot be opened.
pub(super) fn probe(data_dir: &Path) -> Result<GuardPresence, PostgresError> {
    let path = path(data_dir);
    match LockFile::probe(&path).map_err(io_at("look at", &path))? {
        LockProbe::Held => Ok(GuardPresence::Alive(
            fs::read_to_string(&path)
                .ok()
                .as_deref()
                .and_then(GuardNote::from_text),
        )),
        LockProbe::Free(_) | LockProbe::Missing => Ok(GuardPresence::Absent),
    }
}

/// Takes the lock for a guard; `None` if another one has it.
///
/// # Errors
/// Whatever the file system says.
pub(super) fn acquire(data_dir: &Path) -> std::io::Result<Option<LockFile>> {
    LockFile::acquire(&path(data_dir), LOCK_TIMEOUT)
}

/// Writes down what this process, as the guard, is doing.
///
/// # Errors
/// Whatever the file system says.
pub(super) fn write_state(lock: &LockFile, doing: GuardState, fingerprint: &str) -> std::io::Result<()> {
    let note = GuardNote {
        pid: std::process::id(),
        state: doing,
        fingerprint: fingerprint.to_owned(),
    };
    lock.write(&note.to_text())
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("guard.lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_every_state_are_read_back_and_have_one_length() {
        let mut lengths = std::collections::BTreeSet::new();
        for (pid, (doing, _)) in [1, 99_999, u32::MAX].into_iter().zip(LABELS) {
            let note = GuardNote {
                pid,
                state: doing,
                fingerprint: "0123456789abcdef".to_owned(),
            };
            assert_eq!(GuardNote::from_text(&note.to_text()), Some(note.clone()));
            lengths.insert(note.to_text().len());
        }
        assert_eq!(lengths.len(), 1);
        for text in ["", "12", "12 sleeping ff", "x serving ff"] {
            assert_eq!(GuardNote::from_text(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_dead_guards_note_means_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(probe(dir.path()).unwrap(), GuardPresence::Absent));
        let lock = acquire(dir.path()).unwrap().expect("nobody holds it");
        assert!(matches!(probe(dir.path()).unwrap(), GuardPresence::Alive(None)));
        write_state(&lock, GuardState::Serving, "ff").unwrap();
        let GuardPresence::Alive(Some(note)) = probe(dir.path()).unwrap() else {
            panic!("the note is there")
        };
        assert_eq!((note.pid, note.state), (std::process::id(), GuardState::Serving));
        assert!(!note.is_guard_process(), "this is a test, not a guard");
        drop(lock);
        assert!(matches!(probe(dir.path()).unwrap(), GuardPresence::Absent));
    }
}
