//! What can go wrong with the data directory and the private Postgres?
//!
//! Each variant is read by the person who starts the service, so each says what to do next or which file tells more.

use std::io;
use std::path::{Path, PathBuf};

use super::programs::OLDEST_MAJOR;

/// Why a data directory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another service lives on this directory.
    #[error("the data directory {} is in use by process {pid}; stop it first, or choose another directory", .path.display())]
    InUse {
        /// The directory that was asked for.
        path: PathBuf,
        /// The process that holds it, as it wrote itself down; "unknown" if it has not yet.
        pid: String,
    },
    /// The file system refused.
    #[error("cannot {operation} {}: {source}", .path.display())]
    Io {
        /// What was being done, as a verb.
        operation: &'static str,
        /// To which file or directory.
        path: PathBuf,
        source: io::Error,
    },
}

/// Why the private Postgres could not be prepared, started, reached or stopped.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// No `initdb` and `postgres` on this machine.
    #[error(
        "PostgreSQL's server programs (initdb, postgres) were not found in: {searched}; install the package \
         postgresql (Debian, Ubuntu, Alpine), postgresql-server (Fedora) or postgresql@17 (Homebrew), \
         or set DATABASE_URL"
    )]
    ProgramsMissing {
        /// The directories that were looked at.
        searched: String,
    },
    /// There are programs, but of no version that can open this cluster.
    #[error(
        "the data directory was made by PostgreSQL {required}, and only these were found: {found}; \
         install the server of PostgreSQL {required}"
    )]
    VersionMissing {
        /// Major version that made the cluster.
        required: u32,
        /// What was found, as `path (version)`.
        found: String,
    },
    /// The programs found are too old for the settings that keep secrets out of the log.
    #[error("PostgreSQL {OLDEST_MAJOR} or later is needed, and only these were found: {found}")]
    TooOld {
        /// What was found, as `path (version)`.
        found: String,
    },
    /// The service runs as root, and there is nobody else to run Postgres as.
    #[error("Postgres refuses to run as root, and there is neither a user postgres nor a user nobody")]
    NoAccount,
    /// The cluster's directory is not usable by this process.
    #[error("{} cannot be used for the private Postgres: {reason}", .path.display())]
    Unusable {
        path: PathBuf,
        /// Why not, and what would help.
        reason: String,
    },
    /// The cluster is there, its password is not.
    #[error("the private Postgres exists, but its password file {} is missing; restore it", .0.display())]
    PasswordMissing(PathBuf),
    /// `initdb` failed; its own words follow.
    #[error("initdb failed: {0}")]
    Initdb(String),
    /// The guard ended before the server was ready.
    #[error("the private Postgres does not start; its log says why: {}", .log.display())]
    StartFailed {
        /// The log of guard and server.
        log: PathBuf,
    },
    /// The server did not accept connections in time.
    #[error("the private Postgres was not ready within {seconds} s ({last}); its log: {}", .log.display())]
    NotReady {
        /// How long was waited, in seconds.
        seconds: u64,
        /// What the last attempt to connect said.
        last: String,
        /// The log of guard and server.
        log: PathBuf,
    },
    /// The server did not end in time.
    #[error("the private Postgres did not stop within {seconds} s; its log: {}", .log.display())]
    StopTimedOut {
        /// How long was waited, in seconds.
        seconds: u64,
        /// The log of guard and server.
        log: PathBuf,
    },
    /// Nothing runs where a running server was expected.
    #[error("no private Postgres runs in {}", .0.display())]
    NotRunning(PathBuf),
    /// A name that cannot be a database's here.
    #[error(
        "{0:?} is no database name: a lower-case letter, then lower-case letters, digits and _, at most 63"
    )]
    BadDatabaseName(String),
    /// A statement of ours failed on the private Postgres.
    #[error("the private Postgres refused a statement: {0}")]
    Sql(#[from] sqlx::Error),
    /// The operating system refused.
    #[error("cannot {operation} {}: {source}", .path.display())]
    Io {
        /// What was being done, as a verb.
        operation: &'static str,
        /// To which file or directory.
        path: PathBuf,
        source: io::Error,
    },
}

/// For `map_err`: an [`io::Error`] with the deed and the path in it.
pub(super) fn io_at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PostgresError {
    let path = path.to_path_buf();
    move |source| PostgresError::Io { operation: doing, path, source }
}
