//! Durability settings and backends of the database under load, read from system views alone.

use std::fmt;

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

/// Figures count only if both are `on`.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct DurabilitySettings {
    pub fsync: String,
    pub synchronous_commit: String,
}

impl DurabilitySettings {
    /// # Errors
    /// If the database cannot be read.
    pub async fn read(options: &PgConnectOptions) -> sqlx::Result<Self> {
        let mut connection = PgConnection::connect_with(options).await?;
        sqlx::query_as(
            "SELECT current_setting('fsync') AS fsync,
                    current_setting('synchronous_commit') AS synchronous_commit",
        )
        .fetch_one(&mut connection)
        .await
    }
}

impl fmt::Display for DurabilitySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "fsync {}, synchronous_commit {}",
            self.fsync, self.synchronous_commit
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
