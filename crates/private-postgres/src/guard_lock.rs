//! Lock file of the guard (`guard.lock`), which contains the guard's pid and state.
//!
//! A guard holds the lock for its lifetime. The content of a dead guard's file is stale: only the lock
//! decides.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::{PostgresError, io_at};
use super::lock::{LockFile, LockProbe};
use super::process;

/// The hidden subcommand that runs the service's executable as a guard.
pub const GUARD_SUBCOMMAND: &str = "postgres-guard";

/// Longer than a service's probe of the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardState {
    /// About to start or adopt the server.
    Starting,
    /// The server is running.
    Serving,
    /// Stopping the server and exiting. Irreversible.
    Stopping,
}

const LABELS: [(GuardState, &str); 3] = [
    (GuardState::Starting, "starting"),
    (GuardState::Serving, "serving "),
    (GuardState::Stopping, "stopping"),
];

/// The content of a live guard's lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GuardNote {
    pub(super) pid: u32,
    pub(super) state: GuardState,
    pub(super) fingerprint: String,
}

impl GuardNote {
    /// All texts have the same length, so that a reader never sees a mix of two.
    fn to_text(&self) -> String {
        let label = LABELS
            .iter()
            .find(|(state, _)| *state == self.state)
            .map_or("", |(_, label)| label);
        format!("{:>10} {label} {}\n", self.pid, self.fingerprint)
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut fields = text.split_whitespace();
        let pid = fields.next()?.parse().ok()?;
        let label = fields.next()?;
        let (state, _) = LABELS.iter().find(|(_, known)| known.trim() == label)?;
        Some(Self {
            pid,
            state: *state,
            fingerprint: fields.next()?.to_owned(),
        })
    }

    /// Whether the pid belongs to a guard: between locking and writing, a new guard's file contains its
    /// predecessor's pid.
    pub(super) fn is_guard_process(&self) -> bool {
        process::inspect(self.pid)
            .is_some_and(|process_info| process_info.command_line.contains(GUARD_SUBCOMMAND))
    }
}

#[derive(Debug)]
pub(super) enum GuardPresence {
    Absent,
    /// The guard's note, if it has written one.
    Alive(Option<GuardNote>),
}

/// Checks for a live guard.
///
/// # Errors
/// [`PostgresError::Io`] if the lock file cannot be opened.
pub(super) fn probe(data_dir: &Path) -> Result<GuardPresence, PostgresError> {
    let path = path(data_dir);
    match LockFile::probe(&path).map_err(io_at("inspect", &path))? {
        LockProbe::Held => Ok(GuardPresence::Alive(
            fs::read_to_string(&path)
                .ok()
                .as_deref()
                .and_then(GuardNote::from_text),
        )),
        LockProbe::Free(_) | LockProbe::Missing => Ok(GuardPresence::Absent),
    }
}

/// Takes the lock for a guard; `None` if another guard holds it.
///
/// # Errors
/// Those of the file system.
pub(super) fn acquire(data_dir: &Path) -> std::io::Result<Option<LockFile>> {
    LockFile::acquire(&path(data_dir), LOCK_TIMEOUT)
}

/// Writes the state of this process, the guard.
///
/// # Errors
/// Those of the file system.
pub(super) fn write_state(lock: &LockFile, state: GuardState, fingerprint: &str) -> std::io::Result<()> {
    let note = GuardNote {
        pid: std::process::id(),
        state,
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
    fn notes_of_every_state_round_trip_with_equal_length() {
        let mut lengths = std::collections::BTreeSet::new();
        for (pid, (state, _)) in [1, 99_999, u32::MAX].into_iter().zip(LABELS) {
            let note = GuardNote {
                pid,
                state,
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
    fn note_of_a_dead_guard_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(probe(dir.path()).unwrap(), GuardPresence::Absent));
        let lock = acquire(dir.path()).unwrap().expect("the lock is free");
        assert!(matches!(probe(dir.path()).unwrap(), GuardPresence::Alive(None)));
        write_state(&lock, GuardState::Serving, "ff").unwrap();
        let GuardPresence::Alive(Some(note)) = probe(dir.path()).unwrap() else {
            panic!("the note is missing")
        };
        assert_eq!((note.pid, note.state), (std::process::id(), GuardState::Serving));
        assert!(!note.is_guard_process(), "this process is a test, not a guard");
        drop(lock);
        assert!(matches!(probe(dir.path()).unwrap(), GuardPresence::Absent));
    }
}
