//! Guard process of the private Postgres: restarts the server while the service lives, and stops it
//! afterwards.
//!
//! The guard is a small process of the same executable and the server's parent. It outlives the service,
//! because a process cannot clean up after its own kill -9.
//!
//! | Event | Action of the guard |
//! |---|---|
//! | the server exits | restarts it with a growing backoff ([`super::restart_backoff`]) |
//! | the service's lock is free for the grace period | stops the server and exits |
//! | a new service takes the lock within the grace period | none: that service has adopted guard and server |
//! | SIGTERM or SIGINT | stops the server, with time for a checkpoint, and exits |
//! | its own lock file is removed | the same: the data directory is gone |
//!
//! A signal to all processes of the service (systemd without `KillMode=mixed`) stops the server while the
//! service still drains.
//!
//! Adoption is safe because a guard decides to exit while it holds the service's lock itself, and writes
//! "stopping" before it releases the lock. A service that gets the lock therefore either prevented the
//! decision or reads of it.

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
use super::postmaster::{self, Postmaster, StopTimeouts};
use super::restart_backoff::{RestartBackoff, RestartDecision, ServiceAbsence, ServicePresence};

/// Interval between probes of the service's lock.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Size at which the log is rotated. With one rotated file this bounds what a failing server can write.
const LOG_LIMIT_BYTES: u64 = 8 * 1024 * 1024;

/// Stops a server whose service is gone: grace period, probes and both timeouts end within five seconds.
const ORPHAN_STOP: StopTimeouts = StopTimeouts {
    fast: Duration::from_secs(2),
    immediate: Duration::from_millis(500),
};

/// Stops a server on request: time for a checkpoint, so that the next start needs no recovery.
pub(super) const GRACEFUL_STOP: StopTimeouts = StopTimeouts {
    fast: Duration::from_secs(15),
    immediate: Duration::from_secs(2),
};

/// Runs the guard. Called by `main` for [`guard_lock::GUARD_SUBCOMMAND`], with the arguments that follow it.
///
/// Returns when the server has exited; success if that was intended. Installs a log to stderr, which is the
/// log file.
pub fn run_guard(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // The server must be guarded even if logging fails.
    let _ = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        .log_internal_errors(false)
        .try_init();
    let Some(plan) = ServerPlan::from_arguments(arguments) else {
        tracing::error!("invalid arguments: only the service starts a guard");
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(guard_loop(plan))) {
        Ok(ExitReason::GaveUp) => {
            tracing::error!("the server failed to start; giving up");
            ExitCode::FAILURE
        }
        Ok(exit) => {
            tracing::info!(reason = ?exit, "guard exits");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!(error.message = %error, "guard failed");
            ExitCode::FAILURE
        }
    }
}

/// Why a guard exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExitReason {
    Ordered,
    ServiceGone,
    DirectoryGone,
    AnotherGuard,
    GaveUp,
}

/// The running server, or the time of its next start.
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
    // Before the lock: other processes take a held lock as a sign that signals are handled.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut child_ended = signal(SignalKind::child())?;
    let Some(lock) = guard_lock::acquire(&plan.data_dir)? else {
        return Ok(ExitReason::AnotherGuard);
    };
    let mut guard = Guard::new(plan, lock);
    let exit = loop {
        match guard.step() {
            Ok(None) => {}
            Ok(Some(exit)) => break Ok(exit),
            Err(error) => break Err(error),
        }
        tokio::select! {
            _ = terminate.recv() => break Ok(ExitReason::Ordered),
            _ = interrupt.recv() => break Ok(ExitReason::Ordered),
            _ = child_ended.recv() => {}
            () = tokio::time::sleep(guard.next_delay()) => {}
        }
    };
    guard.stop(if matches!(exit, Ok(ExitReason::ServiceGone)) {
        ORPHAN_STOP
    } else {
        GRACEFUL_STOP
    })?;
    exit
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

    /// Checks everything once; returns a reason to exit, if there is one.
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

    /// Time until the next check, or the next start if that is sooner. An overdue start waits for the
    /// service.
    fn next_delay(&self) -> Duration {
        let remaining = match self.server {
            Server::Running(_) => Duration::ZERO,
            Server::RestartAt(at) => at.saturating_duration_since(Instant::now()),
        };
        if remaining.is_zero() {
            POLL_INTERVAL
        } else {
            remaining.min(POLL_INTERVAL)
        }
    }

    fn supervise_server(&mut self, service: ServicePresence, now: Instant) -> io::Result<Option<ExitReason>> {
        match &mut self.server {
            Server::Running(postmaster) => {
                if postmaster.has_ended(&self.plan)? {
                    tracing::warn!(postmaster.pid = postmaster.pid(), "server exited");
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
                        tracing::error!(error.message = %error, program = %self.plan.program.display(), "cannot start the server");
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

    /// Decides to exit unless the service is back; see the protocol at the top of this file.
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
            // An unknown state must not take the database away from a live service.
            tracing::warn!(error.message = %error, path = %path.display(), "cannot probe the service lock");
            LockProbe::Held
        })
    }

    fn stop(self, timeouts: StopTimeouts) -> io::Result<()> {
        if self.lock.is_at_its_path() {
            self.write_state(GuardState::Stopping);
        }
        let stopped = match self.server {
            Server::Running(postmaster) => postmaster.stop(&self.plan, timeouts),
            Server::RestartAt(_) => Ok(()),
        };
        // The kernel releases the lock when this process has fully exited, which is what waiters on the lock
        // need.
        mem::forget(self.lock);
        stopped
    }

    /// Best effort: on a full disk the server must still be guarded, and a service that reads a stale state
    /// of an exiting guard starts another one.
    fn write_state(&self, state: GuardState) {
        if let Err(error) = guard_lock::write_state(&self.lock, state, &self.fingerprint) {
            tracing::warn!(error.message = %error, ?state, "cannot write the guard state");
        }
    }

    /// All writers append, so truncating needs no coordination. Output between copy and truncation is lost; a
    /// log that grows by megabytes repeats itself.
    fn rotate_log(&self) {
        let log = self.plan.log();
        let is_full = fs::metadata(&log).is_ok_and(|metadata| metadata.len() > LOG_LIMIT_BYTES);
        if is_full {
            let mut rotated = log.clone().into_os_string();
            rotated.push(".1");
            let result = fs::copy(&log, PathBuf::from(rotated))
                .and_then(|_| OpenOptions::new().write(true).truncate(true).open(&log));
            if let Err(error) = result {
                tracing::warn!(error.message = %error, "cannot rotate the log");
            }
        }
    }
}

#[cfg(test)]
mod tests;
