//! Version, durability settings and backends of the database under load, read from system views alone.

use std::collections::BTreeMap;
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
    /// All other settings that differ from the defaults and change what an order costs.
    #[sqlx(skip)]
    pub settings: BTreeMap<String, String>,
}

/// Settings that name files, sockets, languages and logs, and those with a field of their own, are left out.
const SETTINGS_SQL: &str = "
    SELECT name, current_setting(name)
      FROM pg_settings
     WHERE source NOT IN ('default', 'override', 'client', 'session')
       AND category !~ '^(File Locations|Reporting and Logging|Client Connection Defaults / Locale)'
       AND name NOT IN ('listen_addresses', 'port', 'unix_socket_directories', 'unix_socket_permissions', 'external_pid_file',
                        'cluster_name', 'fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method')";

impl DatabaseSettings {
    /// # Errors
    /// If the database cannot be read.
    pub async fn read(options: &PgConnectOptions) -> sqlx::Result<Self> {
        let mut connection = PgConnection::connect_with(options).await?;
        let settings: Vec<(String, String)> = sqlx::query_as(SETTINGS_SQL).fetch_all(&mut connection).await?;
        let fixed: Self = sqlx::query_as(
            "SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
                    current_setting('fsync') AS fsync,
                    current_setting('synchronous_commit') AS synchronous_commit,
                    current_setting('full_page_writes') AS full_page_writes,
                    current_setting('wal_sync_method') AS wal_sync_method",
        )
        .fetch_one(&mut connection)
        .await?;
        Ok(Self {
            settings: settings.into_iter().collect(),
            ..fixed
        })
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
