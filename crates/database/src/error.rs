//! Classification of Postgres errors: whether a write may have happened, and whether a retry can succeed.
//!
//! An ERROR from the server is definite: the transaction was rolled back. After FATAL, PANIC, a lost connection or a protocol
//! error the outcome is unknown.

use sqlx::postgres::{PgDatabaseError, PgSeverity};
use vouchsafe_actors::ports::store::{CommitError, Unavailable};

/// Raised by `commit_batch` when the lane's generation is no longer the one it was called with.
const FENCED: &str = "VS001";

/// SQLSTATEs of a conflict with another transaction: serialization failure, deadlock, lock timeout, statement timeout.
const CONTENDED: &[&str] = &["40001", "40P01", "55P03", "57014"];

/// SQLSTATE classes of a temporary condition: connection exception, invalid transaction state (a standby is read-only),
/// transaction rollback, insufficient resources, object not in prerequisite state, operator intervention, system error.
const BUSY_CLASSES: &[&str] = &["08", "25", "40", "53", "55", "57", "58"];

/// Classifies the failure of a batch by what is known about its effect.
pub fn commit_error(error: &sqlx::Error) -> CommitError {
    let Some(database_error) = statement_error(error) else {
        return CommitError::Unknown(describe(error));
    };
    match database_error.code() {
        FENCED => CommitError::Fenced,
        code if CONTENDED.contains(&code) => CommitError::Contended(describe(error)),
        code if BUSY_CLASSES.iter().any(|class| code.starts_with(class)) => {
            CommitError::Busy(describe(error))
        }
        _ => CommitError::Poisoned(describe(error)),
    }
}

/// Converts the failure of a read, or of an idempotent write.
pub fn unavailable(error: &sqlx::Error) -> Unavailable {
    Unavailable(describe(error))
}

/// The error response of the server, if the statement and its transaction have definitely failed.
fn statement_error(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    let database_error = error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?;
    (database_error.severity() == PgSeverity::Error).then_some(database_error)
}

/// Whether the database may become reachable soon: the port is closed, the server is starting or out of connections.
pub fn is_transient(error: &sqlx::Error) -> bool {
    match error.as_database_error() {
        Some(database_error) => database_error
            .code()
            .is_some_and(|code| code.starts_with("57P") || code == "53300"),
        None => matches!(error, sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut),
    }
}

/// SQLSTATE and message. Leaves out the detail, which may quote a row.
pub fn describe(error: &sqlx::Error) -> String {
    match error
        .as_database_error()
        .and_then(|e| e.try_downcast_ref::<PgDatabaseError>())
    {
        Some(database_error) => format!("{} {}", database_error.code(), database_error.message()),
        None => error.to_string(),
    }
}
