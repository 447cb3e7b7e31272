//! Who keeps the private Postgres running while the service lives, and ends it when the service is gone?
//!
//! The guard: a small process of the same executable, the server's parent. It outlives its service on purpose, because
//! no process can tidy up after its own kill -9.
//!
//! | What happens | What the guard does |
//! |---|---|
//! | the server ends | starts it again, ever more slowly ([`super::restarts`]) |
//! | nobody holds the service's lock for the grace | stops the server and goes |
//! | a new service takes the lock within the grace | nothing: that service has adopted both |
//! | SIGTERM or SIGINT | stops the server, with time for a checkpoint, and goes |
//! | its own lock file is removed | the same: the data directory is no longer there |
//!
//! Whoever stops a service by a signal to all its processes (systemd does, unless told `KillMode=mixed`) takes the server
//! away while the service still drains.
//!
//! The rule that makes adoption safe: a guard that goes because the service is away decides so while it holds the
//! service's lock itself, and writes "stopping" down before it lets go. A service that got the lock therefore either
//! prevented the decision or reads of it.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{io, mem};

use tokio::signal::unix::{SignalKind, signal};

use super::data_dir::service_lock;
use super::guard_lock::{self, GuardState};
use super::lock::{LockFile, LockProbe};
use super::plan::ServerPlan;
use super::postmaster::{self, StopTimeouts, Postmaster};
use super::restart_backoff::{ServiceAbsence, RestartDecision, RestartBackoff, ServicePresence};

/// Pause between two looks at the service's lock.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Bytes of log after which it is moved aside. With the one before it, this bounds what a server that fails for ever
/// can write.
const LOG_LIMIT_BYTES: u64 = 8 * 1024 * 1024;

/// For a server whose service is gone: grace, looks and both of these end within five seconds.
const ORPHAN_STOP: StopTimeouts = StopTimeouts {
    fast: Duration::from_secs(2),
    immediate: Duration::from_millis(500),
};

/// For an ordered stop: time for a checkpoint of everything that is dirty, so that the next start recovers nothing.
pub(super) const GRACEFUL_STOP: StopTimeouts = StopTimeouts {
    fast: Duration::from_secs(15),
    immediate: Duration::from_secs(2),
};

/// Runs the guard. To be called by `main` for [`guard_lock::GUARD_SUBCOMMAND`], with the arguments that follow it.
///
/// Returns when the server has ended; success if that was wanted. Installs a log to stderr, which is the log file.
pub fn run_guard(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // Whatever is wrong with the log, the server must be guarded.
    let _ = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        .log_internal_errors(false)
        .try_init();
    let Some(plan) = ServerPlan::from_arguments(arguments) else {
        tracing::error!("a guard is started by the service, with its plan as arguments");
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(guard_loop(plan))) {
        Ok(ExitReason::GaveUp) => {
            tracing::error!("the server does not start; giving up");
            ExitCode::FAILURE
        }
        Ok(end) => {
            tracing::info!(reason = ?end, "the guard ends");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!(%error, "the guard fails");
            ExitCode::FAILURE
        }
    }
}

/// Why a guard ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExitReason {
    Ordered,
    ServiceGone,
    DirectoryGone,
    AnotherGuard,
    GaveUp,
}

/// The server, or the time of its next start.
#[derive(Debug)]
enum Server {
    Running(Postmaster),
    RestartAt(Instant),
}

struct Guard {
    plan: ServerPlan,
    fingerprint: String,
    lock: LockFile,
    server: Server,
    restarts: RestartBackoff,
    absence: ServiceAbsence,
}

async fn guard_loop(plan: ServerPlan) -> io::Result<ExitReason> {
    // Before the lock, by which others know that signals are heard.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut child_ended = signal(SignalKind::child())?;
    let Some(lock) = guard_lock::acquire(&plan.data_dir)? else {
        return Ok(ExitReason::AnotherGuard);
    };
    let mut guard = Guard::new(plan, lock);
    let end = loop {
        match guard.step() {
            Ok(None) => {}
            Ok(Some(end)) => break Ok(end),
            Err(error) => break Err(error),
        }
        tokio::select! {
            _ = terminate.recv() => break Ok(ExitReason::Ordered),
            _ = interrupt.recv() => break Ok(ExitReason::Ordered),
            _ = child_ended.recv() => {}
            () = tokio::time::sleep(guard.next_delay()) => {}
        }
    };
    guard.stop(if matches!(end, Ok(ExitReason::ServiceGone)) {
        ORPHAN_STOP
    } else {
        GRACEFUL_STOP
    })?;
    end
}

impl Guard {
    fn new(plan: ServerPlan, lock: LockFile) -> Self {
        let now = Instant::now();
        let guard = Self {
            fingerprint: plan.fingerprint(),
            plan,
            lock,
            server: Server::RestartAt(now),
            restarts: RestartBackoff::new(now),
            absence: ServiceAbsence::default(),
        };
        guard.write_state(GuardState::Starting);
        guard
    }

    /// Looks at everything once; an end if there is a reason for one.
    fn step(&mut self) -> io::Result<Option<ExitReason>> {
        if !self.lock.is_at_its_path() {
            return Ok(Some(ExitReason::DirectoryGone));
        }
        let now = Instant::now();
        let service = match self.probe_service() {
            LockProbe::Held => ServicePresence::Alive,
            LockProbe::Free(_) | LockProbe::Missing => ServicePresence::Away,
        };
        if self.absence.has_expired(service, now) && self.commit_to_exit() {
            return Ok(Some(ExitReason::ServiceGone));
        }
        self.rotate_log();
        self.supervise_server(service, now)
    }

    /// Until the next look, or the next start if that comes first. A start that is overdue waits for the service.
    fn next_delay(&self) -> Duration {
        let left = match self.server {
            Server::Running(_) => Duration::ZERO,
            Server::RestartAt(at) => at.saturating_duration_since(Instant::now()),
        };
        if left.is_zero() { POLL_INTERVAL } else { left.min(POLL_INTERVAL) }
    }

    fn supervise_server(&mut self, service: ServicePresence, now: Instant) -> io::Result<Option<ExitReason>> {
        match &mut self.server {
            Server::Running(postmaster) => {
                if postmaster.has_ended(&self.plan)? {
                    tracing::warn!(postmaster.pid = postmaster.pid(), "the server has ended");
                    return Ok(self.schedule_restart(now));
                }
                if postmaster::is_ready(&self.plan.pgdata, postmaster.pid()) {
                    self.restarts.record_ready();
                }
            }
            Server::RestartAt(at) if *at <= now && service == ServicePresence::Alive => {
                match Postmaster::adopt_or_start(&self.plan, ORPHAN_STOP) {
                    Ok(postmaster) => {
                        self.server = Server::Running(postmaster);
                        self.write_state(GuardState::Serving);
                    }
                    Err(error) => {
                        tracing::error!(%error, program = %self.plan.program.display(), "cannot start the server");
                        return Ok(self.schedule_restart(now));
                    }
                }
            }
            Server::RestartAt(_) => {}
        }
        Ok(None)
    }

    fn schedule_restart(&mut self, now: Instant) -> Option<ExitReason> {
        match self.restarts.record_exit(now) {
            RestartDecision::StartAt(at) => {
                self.server = Server::RestartAt(at);
                None
            }
            RestartDecision::GiveUp => {
                self.server = Server::RestartAt(now);
                Some(ExitReason::GaveUp)
            }
        }
    }

    /// Decides to go, unless the service is back; see the rule at the top of this file.
    fn commit_to_exit(&self) -> bool {
        let _held = match self.probe_service() {
            LockProbe::Held => return false,
            LockProbe::Free(lock) => Some(lock),
            LockProbe::Missing => None,
        };
        self.write_state(GuardState::Stopping);
        true
    }

    fn probe_service(&self) -> LockProbe {
        let path = service_lock(&self.plan.data_dir);
        LockFile::probe(&path).unwrap_or_else(|error| {
            // Not knowing is no reason to take the database away from a service.
            tracing::warn!(%error, path = %path.display(), "cannot look for the service");
            LockProbe::Held
        })
    }

    fn stop(self, patience: StopTimeouts) -> io::Result<()> {
        if self.lock.is_at_its_path() {
            self.write_state(GuardState::Stopping);
        }
        let stopped = match self.server {
            Server::Running(postmaster) => postmaster.stop(&self.plan, patience),
            Server::RestartAt(_) => Ok(()),
        };
        // Left to the kernel, which releases it when this process has truly ended: who waits for that waits for the lock.
        mem::forget(self.lock);
        stopped
    }

    /// Best effort: on a full disk the server must be guarded all the same, and a service that reads an old note of a
    /// guard that goes will start another one.
    fn write_state(&self, doing: GuardState) {
        if let Err(error) = guard_lock::write_state(&self.lock, doing, &self.fingerprint) {
            tracing::warn!(%error, ?doing, "cannot write down what the guard is doing");
        }
    }

    /// Everybody who writes to the log appends, so cutting it needs nobody's help. What is written between the copy and
    /// the cut is lost; a log that grows by megabytes repeats itself.
    fn rotate_log(&self) {
        let log = self.plan.log();
        let is_full = fs::metadata(&log).is_ok_and(|metadata| metadata.len() > LOG_LIMIT_BYTES);
        if is_full {
            let mut aside = log.clone().into_os_string();
            aside.push(".1");
            let cut = fs::copy(&log, PathBuf::from(aside))
                .and_then(|_| OpenOptions::new().write(true).truncate(true).open(&log));
            if let Err(error) = cut {
                tracing::warn!(%error, "cannot bound the log");
            }
        }
    }
}

#[cfg(test)]
mod tests;
