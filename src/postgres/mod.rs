//! Where does the database come from when nobody has given us one?
//!
//! From a private Postgres: a real server, in the data directory, reached through a unix socket alone. Its life:
//!
//! | Step | In memory | On disk |
//! |---|---|---|
//! | [`DataDir::open`] | the right to be the only service | `service.lock`, locked by the service |
//! | [`PrivatePostgres::start`] | how to run and reach the server | `postgres-password`, `postgres/data` by `initdb` |
//! | … no guard lives | the guard as a child | `guard.lock`, locked by the guard; `postgres.log` |
//! | … a guard lives | nothing: guard and server are adopted | as it was |
//! | [`PrivatePostgres::stop`] | nothing | a cluster that was shut down properly |
//! | kill -9 instead | nothing | within 5 s, the same: the guard sees the lock free, and ends both |
//!
//! The rule: one lock, one life. Whoever holds `service.lock` is the service, whoever holds `guard.lock` is the guard,
//! and a pid is only a place to send signals to.

mod account;
mod cluster;
mod data_dir;
mod error;
mod guard;
mod guard_lock;
mod cluster_home;
mod guard_supervisor;
mod lock;
mod password;
mod plan;
mod postmaster;
mod process;
mod programs;
mod restart_backoff;
mod settings;
mod socket;
mod connection;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;

use self::error::io_at;
use self::cluster_home::ClusterHome;
use self::guard_supervisor::{GuardSupervisor, SupervisorThread};
use self::password::Password;
use self::connection::{ConnectionInfo, WaitError};

pub use self::data_dir::DataDir;
pub use self::error::{DataDirError, PostgresError};
pub use self::guard::run_guard;
pub use self::guard_lock::GUARD_SUBCOMMAND;
pub use self::guard_supervisor::GuardStatus;
pub use self::settings::Durability;

/// How long a start waits for the server: a recovery reads at most the 2 GB of log that the settings allow.
const READY_TIMEOUT: Duration = Duration::from_secs(120);

/// A running private Postgres, and the right to it.
///
/// Dropped without [`PrivatePostgres::stop`], it gives up its share of the data directory's lock; once nobody has one,
/// the guard stops the server within five seconds.
pub struct PrivatePostgres {
    connection: ConnectionInfo,
    supervisor: Arc<GuardSupervisor>,
    supervisor_thread: SupervisorThread,
    _data_dir: DataDir,
}

impl PrivatePostgres {
    /// Starts the server of this data directory, or adopts the one that an earlier service left; makes cluster, role and
    /// database where they are missing. Returns when the server accepts connections.
    ///
    /// `guard_executable` is this service's own executable, whose `main` must pass [`GUARD_SUBCOMMAND`] on to
    /// [`run_guard`]. Blocks: about a second the first time, a tenth of one later, up to 120 s for a recovery.
    ///
    /// # Errors
    /// [`PostgresError`], each variant of which says what to do or where to read on.
    pub fn start(
        data_dir: &DataDir,
        guard_executable: &Path,
        durability: Durability,
    ) -> Result<Self, PostgresError> {
        let (plan, access) = cluster::prepare(data_dir.path(), durability)?;
        let log = plan.log();
        let keeper = Arc::new(GuardSupervisor::new(plan, guard_executable));
        let mut starts = 0;
        let ready = access.wait_until_ready(Instant::now() + READY_TIMEOUT, || {
            let guarding = keeper.ensure_guard()?;
            if guarding == GuardStatus::Started {
                starts += 1;
            }
            // A guard that we started does not end while there is hope.
            if starts > 1 {
                return Err(PostgresError::StartFailed { log: log.clone() });
            }
            // The server's own file is asked first: while it recovers, it would log each attempt to connect.
            match guarding {
                GuardStatus::Serving if !postmaster::is_serving(keeper.plan()) => Ok(GuardStatus::Changing),
                guarding => Ok(guarding),
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
        let watch = SupervisorThread::spawn(Arc::clone(&keeper)).map_err(io_at("start a thread for", &log))?;
        Ok(Self {
            connection: access,
            supervisor: keeper,
            supervisor_thread: watch,
            _data_dir: data_dir.clone(),
        })
    }

    /// How the service reaches its database: role and database `vouchsafe`.
    pub fn connect_options(&self) -> PgConnectOptions {
        self.connection.service_options()
    }

    /// How the superuser reaches the server, for tests and for the operator's emergencies.
    pub fn superuser_options(&self) -> PgConnectOptions {
        self.connection.superuser_options()
    }

    /// Makes a further database that belongs to the service's role, empty or as a copy of `template`; reached by
    /// `connect_options().database(name)`. Blocks.
    ///
    /// # Errors
    /// [`PostgresError::BadDatabaseName`]; [`PostgresError::Sql`], for example if it exists or somebody is connected to
    /// the template.
    pub fn create_database(&self, name: &str, template: Option<&str>) -> Result<(), PostgresError> {
        self.connection.create_database(name, template)
    }

    /// The pid of the server, while there is one.
    pub fn postmaster_pid(&self) -> Option<u32> {
        postmaster::running_pid(self.supervisor.plan())
    }

    /// The pid of the guard, while there is one.
    pub fn guard_pid(&self) -> Option<u32> {
        self.supervisor.guard_pid()
    }

    /// Starts a guard if none lives. A thread does so twice a second; calling it is for those who cannot wait.
    ///
    /// # Errors
    /// [`PostgresError::Io`] if the lock cannot be looked at or the guard cannot be started.
    pub fn ensure_guard(&self) -> Result<GuardStatus, PostgresError> {
        self.supervisor.ensure_guard()
    }

    /// Shuts the server down properly, and returns when it and its guard have ended. Blocks, milliseconds as a rule.
    ///
    /// # Errors
    /// [`PostgresError::DoesNotStop`] after 22 s.
    pub fn stop(self) -> Result<(), PostgresError> {
        let Self { supervisor: keeper, supervisor_thread: watch, .. } = self;
        drop(watch);
        keeper.stop()
    }
}

/// How a command reaches the database of a service that is running on `data_dir`, beside it and without its lock.
///
/// # Errors
/// [`PostgresError::NotRunning`] if no server of ours has said there where it listens; [`PostgresError::PasswordLost`] or
/// [`PostgresError::Unusable`] if this process may not use it.
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
