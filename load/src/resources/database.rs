//! Version, durability settings and backends of the database under load, read from system views alone.

use std::fmt;

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

#[derive(Clone, Debug, PartialEq, Serialize, sqlx::FromRow)]
pub struct DatabaseSettings {
    /// For example `15.8`.
    pub version: String,
    pub fsync: String,
    pub synchronous_commit: String,
    pub full_page_writes: String,
    pub wal_sync_method: String,
}

impl DatabaseSettings {
    /// # Errors
    /// If the database cannot be read.
    pub async fn read(options: &PgConnectOptions) -> sqlx::Result<Self> {
        let mut connection = PgConnection::connect_with(options).await?;
        sqlx::query_as(
            "SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
                    current_setting('fsync') AS fsync,
                    current_setting('synchronous_commit') AS synchronous_commit,
                    current_setting('full_page_writes') AS full_page_writes,
                    current_setting('wal_sync_method') AS wal_sync_method",
        )
        .fetch_one(&mut connection)
        .await
    }

    /// Whether a commit survives a crash of the machine. Figures count only then.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        [&self.fsync, &self.synchronous_commit]
            .iter()
            .all(|setting| *setting == "on")
    }
}

impl fmt::Display for DatabaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, fsync {}, synchronous_commit {}, full_page_writes {}, wal_sync_method {}",
            self.version, self.fsync, self.synchronous_commit, self.full_page_writes, self.wal_sync_method
        )
    }
}

/// Lists the pids of the client backends of a database.
pub(crate) async fn list_backend_pids(
    connection: &mut PgConnection,
    database: &str,
) -> sqlx::Result<Vec<i32>> {
    sqlx::query_scalar(
        "SELECT pid
         FROM pg_stat_activity
         WHERE datname = $1
           AND backend_type = 'client backend'
           AND pid <> pg_backend_pid()",
    )
    .bind(database)
    .fetch_all(connection)
    .await
}
