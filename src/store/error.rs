//! What a failure of Postgres means: whether a write may have happened, and whether it is worth trying again.
//!
//! Rule: an ERROR from the server is certain, the transaction is undone. FATAL, PANIC, a lost connection, a protocol that
//! went wrong: nobody can say.

use sqlx::postgres::{PgDatabaseError, PgSeverity};
use vouchsafe_actors::store::{CommitError, Unavailable};

/// Raised by `commit_batch` when the lane's generation is no longer the one it was called with.
const FENCED: &str = "VS001";

/// Classes of SQLSTATE that say "not now": connection, state of the transaction (a server that is read-only since it
/// stands by), rolled back (deadlock, serialisation), no resources, an object in use or locked, an operator intervened (a
/// timeout is one), a failure of the system.
const BUSY_CLASSES: &[&str] = &["08", "25", "40", "53", "55", "57", "58"];

/// What a failed batch is known to have done.
pub(super) fn commit_error(error: &sqlx::Error) -> CommitError {
    let Some(answer) = certain(error) else {
        return CommitError::Unknown(describe(error));
    };
    match answer.code() {
        FENCED => CommitError::Fenced,
        code if BUSY_CLASSES.iter().any(|class| code.starts_with(class)) => {
            CommitError::Busy(describe(error))
        }
        _ => CommitError::Poisoned(describe(error)),
    }
}

/// A read, or a write that may be repeated, that got no answer.
pub(crate) fn unavailable(error: &sqlx::Error) -> Unavailable {
    Unavailable(describe(error))
}

/// The server's own word that the statement failed and the transaction with it.
fn certain(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    let answer = error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?;
    (answer.severity() == PgSeverity::Error).then_some(answer)
}

/// Whether a database that could not be reached may be there in a moment: nobody listens yet, or it is starting.
pub(super) fn may_pass(error: &sqlx::Error) -> bool {
    match error.as_database_error() {
        Some(answer) => answer
            .code()
            .is_some_and(|code| code.starts_with("57P") || code == "53300"),
        None => matches!(error, sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut),
    }
}

/// Code and message; never the detail, which may quote a row.
pub(crate) fn describe(error: &sqlx::Error) -> String {
    match error
        .as_database_error()
        .and_then(|e| e.try_downcast_ref::<PgDatabaseError>())
    {
        Some(answer) => format!("{} {}", answer.code(), answer.message()),
        None => error.to_string(),
    }
}
