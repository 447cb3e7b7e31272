//! Fault injection: stops the Postgres backends of the service with SIGSTOP and resumes them with SIGCONT,
//! repeatedly, as a saturated disk or a paused machine would.
//!
//! Rule: only for a private server. Stopped backends are resumed however the run ends.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use tokio::runtime::Runtime;

use super::pause_recovery::Pause;
use crate::resources::database::list_backend_pids;
use crate::stoppable_thread::{StopSignal, StoppableThread};
use crate::traffic::scenario::PauseSchedule;

/// Thread that pauses Postgres until stopped.
pub(crate) struct PostgresPauser(StoppableThread<anyhow::Result<Vec<Pause>>>);

impl PostgresPauser {
    /// Starts; the first pause follows after `every_ms`. `options` are the superuser's; pauses the backends
    /// of `database`.
    pub(crate) fn start(
        schedule: PauseSchedule,
        options: &PgConnectOptions,
        database: &'static str,
    ) -> anyhow::Result<Self> {
        let runtime = crate::runtime::new_runtime()?;
        let mut server = runtime.block_on(PgConnection::connect_with(options))?;
        let run = move |stop: StopSignal| {
            let mut pauses = Vec::new();
            while !stop.is_stopped_within(Duration::from_millis(schedule.every_ms)) {
                let from = Instant::now();
                let stopped = StoppedBackends::stop_all(&runtime, &mut server, database)?;
                // The end of the run shortens the pause.
                stop.is_stopped_within(Duration::from_millis(schedule.for_ms));
                drop(stopped);
                let until = Instant::now();
                pauses.push(Pause { from, until });
            }
            Ok(pauses)
        };
        Ok(Self(StoppableThread::start("pauser", run)?))
    }

    /// Stops; returns the pauses.
    pub(crate) fn stop(self) -> anyhow::Result<Vec<Pause>> {
        self.0.stop()
    }
}

/// Stopped processes; dropping resumes them.
struct StoppedBackends(Vec<Pid>);

impl StoppedBackends {
    fn stop_all(runtime: &Runtime, server: &mut PgConnection, database: &str) -> anyhow::Result<Self> {
        let pids = runtime.block_on(list_backend_pids(server, database))?;
        let mut stopped = Self(Vec::new());
        for pid in pids.into_iter().filter_map(Pid::from_raw) {
            match kill_process(pid, Signal::STOP) {
                Ok(()) => stopped.0.push(pid),
                // The backend ended since the query.
                Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(error).context("cannot pause a backend"),
            }
        }
        // Without a backend the run would show nothing.
        ensure!(!stopped.0.is_empty(), "the database has no backend to pause");
        Ok(stopped)
    }
}

impl Drop for StoppedBackends {
    fn drop(&mut self) {
        for pid in &self.0 {
            // The process may have ended.
            let _ = kill_process(*pid, Signal::CONT);
        }
    }
}
