//! Private Postgres: a real server in the data directory, reached only through a unix socket. Used when no
//! external database is configured.
//!
//! | Step | In memory | On disk |
//! |---|---|---|
//! | [`DataDir::open`] | the exclusive lock | `service.lock`, locked by the service |
//! | [`PrivatePostgres::start`] | how to run and reach the server | `postgres-password`, `postgres/data` by `initdb` |
//! | … without a live guard | the guard as a child process | `guard.lock`, locked by the guard; `postgres.log` |
//! | … with a live guard | nothing: guard and server are adopted | unchanged |
//! | [`PrivatePostgres::stop`] | nothing | a cleanly shut down cluster |
//! | kill -9 instead | nothing | within 5 s the same: the guard finds the lock free and stops the server |
//!
//! Locks decide which process is alive: the holder of `service.lock` is the service, the holder of
//! `guard.lock` is the guard. A pid is only an address for signals.

mod account;
mod cluster;
mod cluster_home;
mod connection;
mod data_dir;
mod error;
mod guard;
mod guard_lock;
mod guard_supervisor;
mod lock;
mod password;
mod plan;
mod postmaster;
mod private_file;
mod process;
mod programs;
mod restart_backoff;
mod settings;
mod socket;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;

use self::cluster_home::ClusterHome;
use self::connection::{ConnectionInfo, WaitError};
use self::error::io_at;
use self::guard_supervisor::{GuardSupervisor, SupervisorThread};
use self::password::Password;

pub use self::data_dir::DataDir;
pub use self::error::{DataDirError, PostgresError};
pub use self::guard::run_guard;
pub use self::guard_lock::GUARD_SUBCOMMAND;
pub use self::guard_supervisor::GuardStatus;
pub use self::private_file::{OPERATOR_TOKEN_FILE, SANDBOX_PARTNER_FILE, write_private};
pub use self::settings::Durability;

/// A recovery reads at most the 2 GB of WAL that the settings allow.
const READY_TIMEOUT: Duration = Duration::from_secs(120);

/// A running private Postgres.
///
/// Dropping it without [`PrivatePostgres::stop`] releases its share of the data directory's lock; once the
/// lock is free, the guard stops the server within five seconds.
pub struct PrivatePostgres {
    connection: ConnectionInfo,
    supervisor: Arc<GuardSupervisor>,
    supervisor_thread: SupervisorThread,
    _data_dir: DataDir,
}

impl PrivatePostgres {
    /// Starts the server of this data directory, or adopts the one of an earlier service; creates cluster,
    /// role and database if they are missing. Returns when the server accepts connections.
    ///
    /// `guard_executable` is the service's own executable, whose `main` must pass [`GUARD_SUBCOMMAND`] to
    /// [`run_guard`]. Blocks: about one second the first time, a tenth of a second later, up to 120 s for a
    /// recovery.
    ///
    /// # Errors
    /// [`PostgresError`], each variant of which says what to do or what to read.
    pub fn start(
        data_dir: &DataDir,
        guard_executable: &Path,
        durability: Durability,
    ) -> Result<Self, PostgresError> {
        let (plan, access) = cluster::prepare(data_dir.path(), durability)?;
        let log = plan.log();
        let supervisor = Arc::new(GuardSupervisor::new(plan, guard_executable));
        let mut starts = 0;
        let ready = access.wait_until_ready(Instant::now() + READY_TIMEOUT, || {
            let status = supervisor.ensure_guard()?;
            if status == GuardStatus::Started {
                starts += 1;
            }
            // A guard exits early only if the server cannot start: do not restart it.
            if starts > 1 {
                return Err(PostgresError::StartFailed { log: log.clone() });
            }
            // Reads the server's status file first: during recovery the server would log each connection
            // attempt.
            match status {
                GuardStatus::Serving if !postmaster::is_serving(supervisor.plan()) => {
                    Ok(GuardStatus::Changing)
                }
                status => Ok(status),
            }
        });
        ready.map_err(|error| match error {
            WaitError::Failed(error) => error,
            WaitError::TimedOut { last } => PostgresError::NotReady {
                seconds: READY_TIMEOUT.as_secs(),
                last,
                log: log.clone(),
            },
        })?;
        access.ensure_database()?;
        let supervisor_thread =
            SupervisorThread::spawn(Arc::clone(&supervisor)).map_err(io_at("start a thread for", &log))?;
        Ok(Self {
            connection: access,
            supervisor,
            supervisor_thread,
            _data_dir: data_dir.clone(),
        })
    }

    /// Connection options of the service: role and database `vouchsafe`.
    pub fn connect_options(&self) -> PgConnectOptions {
        self.connection.service_options()
    }

    /// Connection options of the superuser, for tests and emergencies.
    pub fn superuser_options(&self) -> PgConnectOptions {
        self.connection.superuser_options()
    }

    /// Creates another database owned by the service's role, empty or as a copy of `template`; connect with
    /// `connect_options().database(name)`. Blocks.
    ///
    /// # Errors
    /// [`PostgresError::BadDatabaseName`]; [`PostgresError::Sql`], for example if the database exists or the
    /// template has connections.
    pub fn create_database(&self, name: &str, template: Option<&str>) -> Result<(), PostgresError> {
        self.connection.create_database(name, template)
    }

    /// The pid of the server, if it is running.
    pub fn postmaster_pid(&self) -> Option<u32> {
        postmaster::running_pid(self.supervisor.plan())
    }

    /// The pid of the guard, if it is alive.
    pub fn guard_pid(&self) -> Option<u32> {
        self.supervisor.guard_pid()
    }

    /// Starts a guard if none is alive. A background thread calls this twice a second; call it directly to
    /// avoid the delay.
    ///
    /// # Errors
    /// [`PostgresError::Io`] if the lock cannot be probed or the guard cannot be started.
    pub fn ensure_guard(&self) -> Result<GuardStatus, PostgresError> {
        self.supervisor.ensure_guard()
    }

    /// Shuts the server down cleanly and returns when server and guard have exited. Blocks, usually for
    /// milliseconds.
    ///
    /// # Errors
    /// [`PostgresError::StopTimedOut`] after 22 s.
    pub fn stop(self) -> Result<(), PostgresError> {
        let Self {
            supervisor,
            supervisor_thread,
            ..
        } = self;
        drop(supervisor_thread);
        supervisor.stop()
    }
}

/// Connection options for the database of a service running on `data_dir`, without taking its lock.
///
/// # Errors
/// [`PostgresError::NotRunning`] if no server has written its socket path there;
/// [`PostgresError::PasswordMissing`] or [`PostgresError::Unusable`] if this process may not use it.
pub fn find_running(data_dir: &Path) -> Result<PgConnectOptions, PostgresError> {
    let data_dir = fs::canonicalize(data_dir).map_err(io_at("resolve", data_dir))?;
    let home = ClusterHome::find(&data_dir)?;
    let socket = home.and_then(|home| postmaster::recorded_socket(&home.pgdata()));
    let socket_directory = socket
        .ok_or_else(|| PostgresError::NotRunning(data_dir.clone()))?
        .into();
    let password = Password::read(&data_dir)?;
    Ok(ConnectionInfo {
        socket_directory,
        password,
    }
    .service_options())
}
