//! How is Postgres made slow? Its backends that serve the service are stopped (SIGSTOP) for a while and go on (SIGCONT),
//! again and again: what a saturated disk or a paused machine does to it, without a word to anybody.
//!
//! Rule: only on a stand, whose server nobody else uses; and whoever was stopped goes on, however the run ends.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::PgConnectOptions;
use tokio::runtime::Runtime;

use crate::pause_recovery::Pause;
use crate::database::DatabaseInspector;
use crate::scenario;

/// Pauses that go on until they are ended.
pub struct PostgresPauser {
    ends: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<Vec<Pause>, PauseError>>>,
}

/// Why Postgres could not be paused.
#[derive(Debug, thiserror::Error)]
pub enum PauseError {
    /// Its backends could not be asked for.
    #[error("cannot ask for the backends to pause")]
    Database(#[from] sqlx::Error),
    /// The system refused, or gave no runtime.
    #[error("cannot pause a backend")]
    System(#[from] std::io::Error),
    /// There was nobody to stop: the run would have shown nothing.
    #[error("there is no backend to pause")]
    NoBackend,
}

impl PostgresPauser {
    /// Begins, with the first pause after `every_ms`. `options` are the superuser's, `database` is whose backends stop.
    ///
    /// # Errors
    /// [`PauseError`] if the server cannot be reached.
    pub fn start(
        plan: scenario::PauseSchedule,
        options: &PgConnectOptions,
        database: &'static str,
    ) -> Result<Self, PauseError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut server = runtime.block_on(DatabaseInspector::connect_with(options))?;
        let (ends, ended) = channel();
        let thread = std::thread::spawn(move || {
            let (every, length) = (
                Duration::from_millis(plan.every_ms),
                Duration::from_millis(plan.for_ms),
            );
            let mut pauses = Vec::new();
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let from = Instant::now();
                let stopped = Stopped::those_of(&runtime, &mut server, database)?;
                // Cut short by the end of the run.
                let _ = ended.recv_timeout(length);
                drop(stopped);
                let until = Instant::now();
                pauses.push(Pause { from, until });
            }
            Ok(pauses)
        });
        Ok(Self {
            ends: Some(ends),
            thread: Some(thread),
        })
    }

    /// Ends; says when the pauses were.
    ///
    /// # Errors
    /// [`PauseError`] if one of them could not be made.
    pub fn stop(mut self) -> Result<Vec<Pause>, PauseError> {
        drop(self.ends.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(pauses)) => pauses,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(Vec::new()),
        }
    }
}

impl Drop for PostgresPauser {
    fn drop(&mut self) {
        drop(self.ends.take());
        if let Some(thread) = self.thread.take() {
            // Whoever gave up the run has another error to tell.
            let _ = thread.join();
        }
    }
}

/// Processes that stand still until this is dropped.
struct Stopped(Vec<Pid>);

impl Stopped {
    fn those_of(runtime: &Runtime, server: &mut DatabaseInspector, database: &str) -> Result<Self, PauseError> {
        let pids = runtime.block_on(server.list_backend_pids(database))?;
        let mut stopped = Self(Vec::new());
        for pid in pids.into_iter().filter_map(Pid::from_raw) {
            match kill_process(pid, Signal::STOP) {
                Ok(()) => stopped.0.push(pid),
                // It has ended since it was asked for.
                Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(PauseError::System(error.into())),
            }
        }
        if stopped.0.is_empty() {
            return Err(PauseError::NoBackend);
        }
        Ok(stopped)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for pid in &self.0 {
            // One that has ended meanwhile needs no signal.
            let _ = kill_process(*pid, Signal::CONT);
        }
    }
}
