//! SQL connections for setting up the private Postgres.
//!
//! Each operation uses its own connection on its own thread and runtime, so that callers may be inside or
//! outside a runtime. The superuser creates databases; the service's role owns them and has no further
//! rights.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{io, panic, thread};

use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

use super::error::{PostgresError, io_at};
use super::guard_supervisor::GuardStatus;
use super::password::Password;
use super::socket::PORT;

/// The role that `initdb` creates.
pub(super) const SUPERUSER: &str = "vouchsafe_admin";

/// The role of the service, which owns its databases.
const SERVICE_ROLE: &str = "vouchsafe";

const SERVICE_DATABASE: &str = "vouchsafe";

/// The database that exists in every cluster.
const MAINTENANCE_DATABASE: &str = "postgres";

/// Longest name that Postgres does not truncate.
const MAX_NAME_BYTES: usize = 63;

/// A starting server refuses or accepts connections at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval between connection attempts to a starting server.
const CONNECT_POLL: Duration = Duration::from_millis(20);

/// SQLSTATE of a wrong password. Waiting does not help.
const WRONG_PASSWORD: &str = "28P01";

#[derive(Clone)]
pub(super) struct ConnectionInfo {
    pub(super) socket_directory: PathBuf,
    pub(super) password: Password,
}

impl ConnectionInfo {
    /// Options of the service for its own database.
    pub(super) fn service_options(&self) -> PgConnectOptions {
        self.options(SERVICE_ROLE, SERVICE_DATABASE)
    }

    /// Options of the superuser for the maintenance database.
    pub(super) fn superuser_options(&self) -> PgConnectOptions {
        self.options(SUPERUSER, MAINTENANCE_DATABASE)
    }

    /// Waits until the server accepts connections. Connects only while `probe` reports it guarded: before
    /// that, the responding server may be about to stop.
    ///
    /// # Errors
    /// Those of `probe`, a refused password, or the last connection failure as text after `deadline`.
    pub(super) fn wait_until_ready(
        &self,
        deadline: Instant,
        mut probe: impl FnMut() -> Result<GuardStatus, PostgresError> + Send,
    ) -> Result<(), WaitError> {
        let options = self.superuser_options();
        block_on_thread(async move {
            loop {
                let last = match probe()? {
                    GuardStatus::Changing | GuardStatus::Started => {
                        "the guard or the server is starting or stopping".to_owned()
                    }
                    GuardStatus::Serving => match connect(&options).await {
                        Ok(connection) => return Ok(connection.close().await?),
                        Err(error) if is_wrong_password(&error) => return Err(error.into()),
                        Err(error) => error.to_string(),
                    },
                };
                if Instant::now() >= deadline {
                    return Err(WaitError::TimedOut { last });
                }
                tokio::time::sleep(CONNECT_POLL).await;
            }
        })?
    }

    /// Creates the service's role and database if they are missing.
    ///
    /// # Errors
    /// [`PostgresError::Sql`].
    pub(super) fn ensure_database(&self) -> Result<(), PostgresError> {
        // The password consists of hex digits and needs no quoting.
        let role = format!(
            "CREATE ROLE {SERVICE_ROLE} LOGIN PASSWORD '{}'",
            self.password.reveal()
        );
        block_on_thread(async {
            let mut connection = PgConnection::connect_with(&self.superuser_options()).await?;
            let has_role: bool =
                sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)")
                    .bind(SERVICE_ROLE)
                    .fetch_one(&mut connection)
                    .await?;
            if !has_role {
                connection.execute(AssertSqlSafe(role)).await?;
            }
            let has_database: bool =
                sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
                    .bind(SERVICE_DATABASE)
                    .fetch_one(&mut connection)
                    .await?;
            if !has_database {
                connection
                    .execute(AssertSqlSafe(create_database_sql(SERVICE_DATABASE, "")))
                    .await?;
            }
            Ok(connection.close().await?)
        })?
    }

    /// Creates another database, empty or as a copy of `template`, which must not have connections.
    ///
    /// # Errors
    /// [`PostgresError::BadDatabaseName`]; [`PostgresError::Sql`], for example if it exists.
    pub(super) fn create_database(&self, name: &str, template: Option<&str>) -> Result<(), PostgresError> {
        for name in [Some(name), template].into_iter().flatten() {
            if !is_database_name(name) {
                return Err(PostgresError::BadDatabaseName(name.to_owned()));
            }
        }
        block_on_thread(async {
            let mut connection = PgConnection::connect_with(&self.superuser_options()).await?;
            // Templates serve tests, on servers without fsync: a file copy, which is all that 14 knows, is
            // ten times as fast as WAL logging.
            let strategy = match connection.server_version_num() {
                Some(150_000..) => " STRATEGY file_copy",
                _ => "",
            };
            let template = template.map(|template| format!(" TEMPLATE {template}{strategy}"));
            let sql = create_database_sql(name, &template.unwrap_or_default());
            connection.execute(AssertSqlSafe(sql)).await?;
            Ok(connection.close().await?)
        })?
    }

    /// Sets every option, so that the environment has no influence.
    fn options(&self, role: &str, database: &str) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(&self.socket_directory)
            .port(PORT)
            .ssl_mode(PgSslMode::Disable)
            .username(role)
            .password(self.password.reveal())
            .database(database)
            .disable_statement_logging()
    }
}

/// Why a server did not become ready.
pub(super) enum WaitError {
    /// An error that waiting does not fix.
    Failed(PostgresError),
    TimedOut {
        /// The error of the last attempt.
        last: String,
    },
}

impl<E: Into<PostgresError>> From<E> for WaitError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

async fn connect(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options));
    connecting
        .await
        .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
}

fn create_database_sql(name: &str, options: &str) -> String {
    format!("CREATE DATABASE {name} OWNER {SERVICE_ROLE}{options}")
}

/// Such a name needs no quoting and cannot inject SQL.
fn is_database_name(name: &str) -> bool {
    let is_tail = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.len() <= MAX_NAME_BYTES
        && name
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_lowercase())
        && name.bytes().all(is_tail)
}

fn is_wrong_password(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|code| code == WRONG_PASSWORD)
}

fn block_on_thread<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, PostgresError> {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(work))
        });
        worker
            .join()
            .unwrap_or_else(|payload| panic::resume_unwind(payload))
    })
    .map_err(io_at(
        "start a runtime for",
        &PathBuf::from("the private Postgres"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_need_quoting_is_none() {
        let longest = "a".repeat(MAX_NAME_BYTES);
        for name in ["a", "test_1", longest.as_str()] {
            assert!(is_database_name(name), "{name}");
        }
        for name in [
            "",
            "1a",
            "_a",
            "A",
            "a b",
            "a\"b",
            "a;b",
            "ä",
            &format!("{longest}a"),
        ] {
            assert!(!is_database_name(name), "{name}");
        }
    }
}
