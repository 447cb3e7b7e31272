//! How does a service make sure that its server has a guard?
//!
//! It looks at the guard's lock, and starts a guard where none lives. A guard that goes is waited for, one that runs
//! another plan is asked to go; so the same look, repeated, leads from every state to the wanted one.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::account::Account;
use super::error::{PostgresError, io_at};
use super::guard::GRACEFUL_STOP;
use super::guard_lock::{self, GuardState, GUARD_SUBCOMMAND, GuardNote, GuardPresence};
use super::plan::ServerPlan;
use super::postmaster;
use super::process;

/// Pause between two looks at the guard's lock while the service runs.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Pause after a look that failed, so that a lasting failure does not fill the log.
const ERROR_BACKOFF: Duration = Duration::from_secs(5);

/// Pause between two looks while waiting for a guard to end.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What an ordered stop may take beyond the guard's own patience: its looks, and a server that had to be killed.
const STOP_MARGIN: Duration = Duration::from_secs(5);

/// Mode of the log: it names paths and tables.
const LOG_MODE: u32 = 0o600;

/// How the server is guarded at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardStatus {
    /// A guard runs our plan.
    Serving,
    /// A guard is beginning, or another one is ending; look again.
    Changing,
    /// There was none, and one has been started now; look again.
    Started,
}

/// Keeps one server guarded.
pub(super) struct GuardSupervisor {
    plan: ServerPlan,
    executable: PathBuf,
    /// The guard that this process started last, to be reaped.
    child: Mutex<Option<Child>>,
}

impl GuardSupervisor {
    pub(super) fn new(plan: ServerPlan, executable: &Path) -> Self {
        Self {
            plan,
            executable: executable.to_path_buf(),
            child: Mutex::new(None),
        }
    }

    pub(super) fn plan(&self) -> &ServerPlan {
        &self.plan
    }

    /// Starts a guard if none lives; asks one with another plan to go.
    ///
    /// # Errors
    /// [`PostgresError::Io`] if the lock cannot be looked at or the guard cannot be started.
    pub(super) fn ensure_guard(&self) -> Result<GuardStatus, PostgresError> {
        let mut child = self.child();
        match guard_lock::probe(&self.plan.data_dir)? {
            GuardPresence::Alive(Some(note)) if note.fingerprint == self.plan.fingerprint() => Ok(match note.state {
                GuardState::Serving => GuardStatus::Serving,
                GuardState::Starting | GuardState::Stopping => GuardStatus::Changing,
            }),
            GuardPresence::Alive(Some(note)) => {
                request_stop(&note)?;
                Ok(GuardStatus::Changing)
            }
            GuardPresence::Alive(None) => Ok(GuardStatus::Changing),
            GuardPresence::Absent if is_running(&mut child) => Ok(GuardStatus::Changing),
            GuardPresence::Absent => {
                *child = Some(self.spawn()?);
                Ok(GuardStatus::Started)
            }
        }
    }

    /// The pid of the living guard.
    pub(super) fn guard_pid(&self) -> Option<u32> {
        match guard_lock::probe(&self.plan.data_dir) {
            Ok(GuardPresence::Alive(note)) => note.map(|note| note.pid),
            _ => None,
        }
    }

    /// Has the guard stop the server, and returns when both have ended.
    ///
    /// # Errors
    /// [`PostgresError::DoesNotStop`] if they do not within the guard's patience.
    pub(super) fn stop(&self) -> Result<(), PostgresError> {
        let patience = GRACEFUL_STOP.fast + GRACEFUL_STOP.immediate + STOP_MARGIN;
        let deadline = Instant::now() + patience;
        let mut dismissed = None;
        while Instant::now() < deadline {
            match guard_lock::probe(&self.plan.data_dir)? {
                GuardPresence::Alive(Some(note)) if dismissed != Some(note.pid) => {
                    request_stop(&note)?;
                    dismissed = Some(note.pid);
                }
                GuardPresence::Alive(_) => {}
                GuardPresence::Absent if is_running(&mut self.child()) => {}
                GuardPresence::Absent if postmaster::running_pid(&self.plan).is_none() => return Ok(()),
                // The guard was killed and its server lives: only a new guard knows how to end it.
                GuardPresence::Absent => *self.child() = Some(self.spawn()?),
            }
            thread::sleep(EXIT_POLL_INTERVAL);
        }
        Err(PostgresError::StopTimedOut {
            seconds: patience.as_secs(),
            log: self.plan.log(),
        })
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process group of its own keeps Ctrl-C from it, and the file system's root as its directory keeps nothing busy.
    fn spawn(&self) -> Result<Child, PostgresError> {
        let log = self.plan.log();
        let out = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(LOG_MODE)
            .open(&log)
            .map_err(io_at("open", &log))?;
        let errors = out.try_clone().map_err(io_at("open", &log))?;
        let spawned = Account::current()
            .command(&self.executable, Path::new("/"))
            .arg(OsString::from(GUARD_SUBCOMMAND))
            .args(self.plan.to_arguments())
            .stdout(out)
            .stderr(errors)
            .process_group(0)
            .spawn();
        spawned.map_err(io_at("run", &self.executable))
    }
}

/// Looks after the guard in the background until it is dropped.
pub(super) struct SupervisorThread {
    /// Closing it ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SupervisorThread {
    /// Begins to look.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub(super) fn spawn(keeper: Arc<GuardSupervisor>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("postgres-watch".to_owned())
            .spawn(move || {
                let mut pause = POLL_INTERVAL;
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                    pause = POLL_INTERVAL;
                    match keeper.ensure_guard() {
                        Ok(GuardStatus::Started) => {
                            tracing::warn!("the guard of the database was gone; started another")
                        }
                        Ok(GuardStatus::Serving | GuardStatus::Changing) => {}
                        Err(error) => {
                            tracing::error!(%error, "the database has no guard");
                            pause = ERROR_BACKOFF;
                        }
                    }
                }
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for SupervisorThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was reported there, and there is nothing left to be undone.
            let _ = thread.join();
        }
    }
}

fn request_stop(note: &GuardNote) -> Result<(), PostgresError> {
    if note.state != GuardState::Stopping && note.is_guard_process() {
        let sent = process::signal(note.pid, Signal::TERM);
        sent.map_err(io_at("send a signal to", Path::new("the guard")))?;
    }
    Ok(())
}

/// Whether the guard that this process started still runs; one that has ended is reaped.
fn is_running(child: &mut Option<Child>) -> bool {
    let runs = child
        .as_mut()
        .is_some_and(|child| matches!(child.try_wait(), Ok(None)));
    if !runs {
        *child = None;
    }
    runs
}
