//! Classification of Postgres errors: whether a write may have happened, and whether a retry can succeed.
//!
//! An ERROR from the server is definite: the transaction was rolled back. After FATAL, PANIC, a lost
//! connection or a protocol error the outcome is unknown.

use std::io::{self, ErrorKind};

use sqlx::postgres::{PgDatabaseError, PgSeverity};
use vouchsafe_domain::store_error::{CommitError, Unavailable};

/// Failure of an operation on the database, by what is known about its effect.
///
/// Every operation of the store returns it when the database does not answer. The documentation of an
/// operation names other errors, and what may be written in spite of one.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The last transaction of the operation was certainly not committed. Operations of several transactions
    /// say so.
    #[error(transparent)]
    NotWritten(sqlx::Error),
    /// The connection ended before the server had confirmed: what the operation writes may be committed.
    #[error(transparent)]
    Unknown(sqlx::Error),
}

impl StoreError {
    /// The cause.
    pub const fn cause(&self) -> &sqlx::Error {
        match self {
            Self::NotWritten(error) | Self::Unknown(error) => error,
        }
    }

    /// The SQLSTATE, if the server responded with an error.
    pub fn sqlstate(&self) -> Option<&str> {
        let error = self.cause().as_database_error()?;
        Some(error.try_downcast_ref::<PgDatabaseError>()?.code())
    }

    /// Whether no server listens: nothing was sent.
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::NotWritten(sqlx::Error::Io(_)))
    }

    /// Whether the server is not reachable, or accepts no connection.
    pub fn is_unreachable(&self) -> bool {
        match self.cause() {
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut => true,
            _ => self
                .sqlstate()
                .is_some_and(|code| CONNECTION_SQLSTATES.iter().any(|prefix| code.starts_with(prefix))),
        }
    }

    /// Whether the server refuses or has ended the connection. One that takes long is another matter.
    pub fn is_disconnected(&self) -> bool {
        match self.cause() {
            sqlx::Error::PoolTimedOut => false,
            sqlx::Error::Io(error) => error.kind() != ErrorKind::TimedOut,
            _ => self.is_unreachable(),
        }
    }

    /// Whether the server has cancelled the statement in favour of something else, as a standby does for rows
    /// that its primary removes.
    pub fn is_conflict(&self) -> bool {
        self.sqlstate() == Some(SERIALIZATION_FAILURE)
    }

    /// Whether a row does not decode. The panic of a decoder is one, too: a time beyond those of its type.
    pub const fn is_unreadable_row(&self) -> bool {
        matches!(
            self.cause(),
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::WorkerCrashed
        )
    }

    /// The row without a valid HMAC that the operation would have changed.
    pub fn invalid_mac(&self) -> Option<&InvalidMac> {
        match self.cause() {
            sqlx::Error::Configuration(error) => error.downcast_ref(),
            _ => None,
        }
    }

    /// Whether no connection became free.
    pub const fn is_overload(&self) -> bool {
        matches!(self.cause(), sqlx::Error::PoolTimedOut)
    }
}

/// A row that grants access has no valid HMAC: it was written without the service, and is neither changed nor
/// used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("row {id} of {table} has no valid HMAC")]
pub struct InvalidMac {
    pub table: &'static str,
    /// Subject of its audit entries.
    pub id: String,
}

impl From<InvalidMac> for sqlx::Error {
    fn from(error: InvalidMac) -> Self {
        // Nothing was written, as for every other error of this kind.
        Self::Configuration(Box::new(error))
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        sqlx::Error::Io(error).into()
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let is_certain = match &error {
            sqlx::Error::Database(database_error) => {
                let code = database_error.code().unwrap_or_default();
                match statement_error(&error) {
                    // A connection pooler reports so that it lost its connection to the server.
                    Some(_) => !code.starts_with(CONNECTION_EXCEPTION),
                    None => REFUSED.iter().any(|prefix| code.starts_with(prefix)),
                }
            }
            // Nothing was sent.
            sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::Configuration(_)
            | sqlx::Error::Encode(_)
            | sqlx::Error::Tls(_) => true,
            // Both are errors of connecting only; the second one of a socket in the file system.
            sqlx::Error::Io(error) => {
                matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound)
            }
            _ => false,
        };
        if is_certain {
            Self::NotWritten(error)
        } else {
            Self::Unknown(error)
        }
    }
}

/// Raised by `commit_batch` when the lane's generation is no longer the one it was called with.
const FENCED: &str = "VS001";

const SERIALIZATION_FAILURE: &str = "40001";

/// SQLSTATEs of a conflict with another transaction: serialization failure, deadlock, lock timeout, statement
/// timeout.
const CONTENDED: &[&str] = &[SERIALIZATION_FAILURE, "40P01", "55P03", "57014"];

/// SQLSTATE classes of a temporary condition: connection exception, invalid transaction state (a standby is
/// read-only), transaction rollback, insufficient resources, object not in prerequisite state, operator
/// intervention, system error.
const BUSY_CLASSES: &[&str] = &["08", "25", "40", "53", "55", "57", "58"];

/// Suits reads and repeatable writes.
impl From<StoreError> for Unavailable {
    fn from(error: StoreError) -> Self {
        unavailable(error.cause())
    }
}

/// An operation that is part of another one is classified by the same cause as the whole.
impl From<StoreError> for sqlx::Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotWritten(error) | StoreError::Unknown(error) => error,
        }
    }
}

/// Prefixes of SQLSTATEs that mean "cannot connect": connection failure, invalid login, no such database, too
/// many connections, starting up or shutting down.
const CONNECTION_SQLSTATES: [&str; 5] = ["08", "28", "3D", "53300", "57P"];

/// Prefixes of SQLSTATEs with which a server refuses a connection, before any statement: invalid login, no
/// such database, too many connections, starting up.
const REFUSED: [&str; 4] = ["28", "3D", "53300", "57P03"];

/// Class of SQLSTATEs about a connection.
const CONNECTION_EXCEPTION: &str = "08";

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

/// SQLSTATE of a write on a server that is in recovery, such as a standby, or a restored server before its
/// promotion.
const READ_ONLY_TRANSACTION: &str = "25006";

/// Whether the server of the connection accepts no writes: the connection is as good as lost.
pub fn is_read_only(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.as_deref() == Some(READ_ONLY_TRANSACTION)
}

/// Whether the database may become usable soon: the port is closed, the server is starting, in recovery or
/// out of connections.
pub fn is_transient(error: &sqlx::Error) -> bool {
    match error.as_database_error() {
        Some(database_error) => database_error
            .code()
            .is_some_and(|code| code.starts_with("57P") || code == "53300" || code == READ_ONLY_TRANSACTION),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_is_refused_only_before_anything_is_sent() {
        for (kind, is_refused) in [
            (ErrorKind::ConnectionRefused, true),
            (ErrorKind::NotFound, true),
            (ErrorKind::ConnectionReset, false),
            (ErrorKind::BrokenPipe, false),
            (ErrorKind::UnexpectedEof, false),
            (ErrorKind::TimedOut, false),
        ] {
            let error = StoreError::from(io::Error::from(kind));
            assert_eq!(error.is_refused(), is_refused, "{error:?}");
        }
    }
}
