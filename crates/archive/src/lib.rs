//! Archives of logs that grow: a month as gzip-compressed NDJSON with a manifest of SHA-256 hashes, and the
//! removal of what is archived.
//!
//! | step | what a kill after it leaves |
//! |---|---|
//! | files and manifest are written to `LOG-MONTH.partial`, and synced | a directory that the next run replaces |
//! | the directory is renamed to `LOG-MONTH` | an archive that the next run compares with the rows, and records |
//! | the manifest's hash is recorded in `log_archives` | an archive without removal |
//! | its files are read back and compared with the recorded hash, then the removal is recorded | the next run continues the removal |
//! | rows are removed, as many as the files have | the next run continues |
//!
//! From the moment that a removal is recorded the files are the only copy of the rows: nothing writes them
//! again.

mod audit_log;
mod check;
mod delivery_attempts;
mod events;
mod file;
mod manifest;
mod month;
mod reconciliation;
mod run;

pub use self::check::{CheckedArchive, check_archive, list_archives};
pub use self::manifest::{ArchivedFile, Manifest};
pub use self::month::Month;
pub use self::run::{ArchivedMonth, Policy, RecordedArchive, Removal, archive, list_recorded};

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use vouchsafe_database::error::StoreError;

/// A log that can be archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Log {
    DeliveryAttempts,
    Events,
    AuditLog,
    Reconciliation,
}

impl Log {
    pub const ALL: [Self; 4] = [
        Self::DeliveryAttempts,
        Self::Events,
        Self::AuditLog,
        Self::Reconciliation,
    ];

    /// The name in directories, manifests and `log_archives`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeliveryAttempts => "delivery_attempts",
            Self::Events => "events",
            Self::AuditLog => "audit_log",
            Self::Reconciliation => "reconciliation",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Database(#[from] StoreError),
    #[error("cannot write or read {}", .0.display())]
    File(PathBuf, #[source] io::Error),
    #[error("{}: {reason}", .path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error(
        "the removal from the audit log needs the master key: set VOUCHSAFE_MASTER_KEY_FILE, as for the service"
    )]
    NoKey,
    #[error("another `vouchsafe archive` of this database runs")]
    Locked,
    #[error(
        "{} exists, and this database has not recorded it: move it away, or name another directory",
        .0.display()
    )]
    Unrecorded(PathBuf),
    #[error(
        "{} is not the archive that this database has recorded: bring it back. Rows of the month may be \
         removed, so it may be the only copy",
        .0.display()
    )]
    Replaced(PathBuf),
    #[error(
        "{log} of {month} has {found} rows for {file}, and the archive has {archived}: nothing more was \
         removed. If rows came late, move the archive away and repeat the command"
    )]
    RowsDiffer {
        log: &'static str,
        month: Month,
        file: String,
        found: i64,
        archived: i64,
    },
    #[error("{log} of {month}: {reason}. The rest stays until the command is repeated")]
    Busy {
        log: &'static str,
        month: Month,
        reason: &'static str,
    },
}

impl From<sqlx::Error> for ArchiveError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

/// The JSON of a row, without line feeds.
fn to_line(directory: &Path, row: &impl Serialize) -> Result<String, ArchiveError> {
    serde_json::to_string(row).map_err(|error| at(directory)(error.into()))
}

fn damaged(path: &Path, reason: String) -> ArchiveError {
    ArchiveError::Damaged {
        path: path.to_owned(),
        reason,
    }
}

/// Completes an I/O error with its path.
fn at(path: &Path) -> impl FnOnce(io::Error) -> ArchiveError {
    let path = path.to_owned();
    move |error| ArchiveError::File(path, error)
}
