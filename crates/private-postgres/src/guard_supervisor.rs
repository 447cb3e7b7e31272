//! Supervision of the guard by the service.
//!
//! [`GuardSupervisor::ensure_guard`] probes the guard's lock and starts a guard if none is alive. It waits
//! for an exiting guard and stops a guard with another plan; repeated calls therefore converge from every
//! state.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::Signal;

use super::account::Account;
use super::error::{PostgresError, io_at};
use super::guard::GRACEFUL_STOP;
use super::guard_lock::{self, GUARD_SUBCOMMAND, GuardNote, GuardPresence, GuardState};
use super::plan::ServerPlan;
use super::{postmaster, process};

/// Interval between probes of the guard's lock while the service runs.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Delay after a failed probe, so that a lasting failure does not fill the log.
const ERROR_BACKOFF: Duration = Duration::from_secs(5);

/// Interval between probes while waiting for a guard to exit.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Margin beyond the guard's own stop timeouts: its polling, and a server that had to be killed.
const STOP_MARGIN: Duration = Duration::from_secs(5);

/// The log names paths and tables.
const LOG_MODE: u32 = 0o600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardStatus {
    /// A guard runs our plan.
    Serving,
    /// A guard is starting, or another one is exiting; probe again.
    Changing,
    /// A guard was missing and has been started; probe again.
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

    /// Starts a guard if none is alive; stops one with another plan.
    ///
    /// # Errors
    /// [`PostgresError::Io`] if the lock cannot be probed or the guard cannot be started.
    pub(super) fn ensure_guard(&self) -> Result<GuardStatus, PostgresError> {
        let mut child = self.child();
        match guard_lock::probe(&self.plan.data_dir)? {
            GuardPresence::Alive(Some(note)) if note.fingerprint == self.plan.fingerprint() => {
                Ok(match note.state {
                    GuardState::Serving => GuardStatus::Serving,
                    GuardState::Starting | GuardState::Stopping => GuardStatus::Changing,
                })
            }
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

    /// The pid of the live guard.
    pub(super) fn guard_pid(&self) -> Option<u32> {
        match guard_lock::probe(&self.plan.data_dir) {
            Ok(GuardPresence::Alive(note)) => note.map(|note| note.pid),
            _ => None,
        }
    }

    /// Stops the server through the guard and returns when both have exited.
    ///
    /// # Errors
    /// [`PostgresError::StopTimedOut`] if they do not exit within the guard's timeouts.
    pub(super) fn stop(&self) -> Result<(), PostgresError> {
        let timeout = GRACEFUL_STOP.fast + GRACEFUL_STOP.immediate + STOP_MARGIN;
        let deadline = Instant::now() + timeout;
        let mut stopped_pid = None;
        while Instant::now() < deadline {
            match guard_lock::probe(&self.plan.data_dir)? {
                GuardPresence::Alive(Some(note)) if stopped_pid != Some(note.pid) => {
                    request_stop(&note)?;
                    stopped_pid = Some(note.pid);
                }
                GuardPresence::Alive(_) => {}
                GuardPresence::Absent if is_running(&mut self.child()) => {}
                GuardPresence::Absent if postmaster::running_pid(&self.plan).is_none() => return Ok(()),
                // The guard was killed and its server is alive: only a new guard can stop it.
                GuardPresence::Absent => *self.child() = Some(self.spawn()?),
            }
            thread::sleep(EXIT_POLL_INTERVAL);
        }
        Err(PostgresError::StopTimedOut {
            seconds: timeout.as_secs(),
            log: self.plan.log(),
        })
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock()
    }

    /// A separate process group shields the guard from Ctrl-C, and `/` as working directory keeps no file
    /// system busy.
    fn spawn(&self) -> Result<Child, PostgresError> {
        let log = self.plan.log();
        let stdout = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(LOG_MODE)
            .open(&log)
            .map_err(io_at("open", &log))?;
        let stderr = stdout.try_clone().map_err(io_at("open", &log))?;
        let spawned = Account::current()
            .command(&self.executable, Path::new("/"))
            .arg(OsString::from(GUARD_SUBCOMMAND))
            .args(self.plan.to_arguments())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn();
        spawned.map_err(io_at("run", &self.executable))
    }
}

/// Background thread that keeps a guard alive, until it is dropped.
pub(super) struct SupervisorThread {
    /// Dropping the sender ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SupervisorThread {
    /// # Errors
    /// If the thread cannot be created.
    pub(super) fn spawn(supervisor: Arc<GuardSupervisor>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("postgres-watch".to_owned())
            .spawn(move || {
                let mut pause = POLL_INTERVAL;
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                    pause = POLL_INTERVAL;
                    match supervisor.ensure_guard() {
                        Ok(GuardStatus::Started) => {
                            tracing::warn!("database guard was gone; restarted")
                        }
                        Ok(GuardStatus::Serving | GuardStatus::Changing) => {}
                        Err(error) => {
                            tracing::error!(error.message = %error, "cannot restart the database guard");
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
            // The thread has reported its panic, and there is nothing to undo.
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

/// Whether the guard that this process started still runs; reaps it otherwise.
fn is_running(child: &mut Option<Child>) -> bool {
    let is_running = child
        .as_mut()
        .is_some_and(|child| matches!(child.try_wait(), Ok(None)));
    if !is_running {
        *child = None;
    }
    is_running
}
