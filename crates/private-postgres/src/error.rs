//! Errors of the data directory and the private Postgres.
//!
//! Operators read them at startup: each says what to do or which file to read.

use std::io;
use std::path::{Path, PathBuf};

/// The first major version with `log_parameter_max_length_on_error`, without which a failing statement's
/// values could reach the log.
pub(super) const OLDEST_MAJOR: u32 = 13;

#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error("the data directory {} is in use by process {pid}; stop it first, or choose another directory", .path.display())]
    InUse {
        path: PathBuf,
        /// The holder's pid from the lock file; "unknown" if it has not been written yet.
        pid: String,
    },
    #[error("cannot {operation} {}: {source}", .path.display())]
    Io {
        /// The failed operation, as a verb.
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// Why the private Postgres could not be prepared, started, reached or stopped.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error(
        "PostgreSQL's server programs (initdb, postgres) were not found in: {searched}; install the package \
         postgresql (Debian, Ubuntu, Alpine), postgresql-server (Fedora) or postgresql@17 (Homebrew), \
         or set DATABASE_URL"
    )]
    ProgramsMissing { searched: String },
    /// No installed version can open this cluster.
    #[error(
        "the data directory was created by PostgreSQL {required}, but only these versions were found: {found}; \
         install the server of PostgreSQL {required}"
    )]
    VersionMissing {
        /// Major version that created the cluster.
        required: u32,
        /// Formatted as `path (version)`.
        found: String,
    },
    /// The installed versions lack the settings that keep secrets out of the log.
    #[error("PostgreSQL {OLDEST_MAJOR} or later is required, but only these versions were found: {found}")]
    TooOld {
        /// Formatted as `path (version)`.
        found: String,
    },
    /// The service runs as root, and no other account exists for Postgres.
    #[error(
        "Postgres refuses to run as root, and the users postgres and nobody do not exist; create the user postgres"
    )]
    NoAccount,
    #[error("{} cannot be used for the private Postgres: {reason}", .path.display())]
    Unusable {
        path: PathBuf,
        /// The reason, and what would help.
        reason: String,
    },
    /// The cluster exists, but its password file does not.
    #[error("the private Postgres exists, but its password file {} is missing; restore it", .0.display())]
    PasswordMissing(PathBuf),
    #[error("initdb failed: {0}")]
    Initdb(String),
    /// The guard exited before the server was ready.
    #[error("the private Postgres failed to start; see its log: {}", .log.display())]
    StartFailed { log: PathBuf },
    /// The server did not accept connections in time.
    #[error("the private Postgres was not ready within {seconds} s ({last}); its log: {}", .log.display())]
    NotReady {
        seconds: u64,
        /// The error of the last connection attempt.
        last: String,
        log: PathBuf,
    },
    #[error("the private Postgres did not stop within {seconds} s; its log: {}", .log.display())]
    StopTimedOut { seconds: u64, log: PathBuf },
    #[error("no private Postgres is running in {}; start the service first", .0.display())]
    NotRunning(PathBuf),
    #[error(
        "invalid database name {0:?}: expected a lower-case letter followed by lower-case letters, digits \
         and _, at most 63 characters"
    )]
    BadDatabaseName(String),
    #[error("a statement failed on the private Postgres: {0}")]
    Sql(#[from] sqlx::Error),
    #[error("cannot {operation} {}: {source}", .path.display())]
    Io {
        /// The failed operation, as a verb.
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// Adds the operation and the path to an [`io::Error`], as an argument of `map_err`.
pub(super) fn io_at(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PostgresError {
    let path = path.to_path_buf();
    move |source| PostgresError::Io {
        operation,
        path,
        source,
    }
}
