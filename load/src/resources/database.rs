//! Durability settings and table sizes of the database under load, read from Postgres.
//!
//! The queries use only system views, no tables of the service.

use std::fmt;

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

/// A separate read-only connection.
pub struct DatabaseInspector(PgConnection);

/// Settings and sizes that make figures comparable.
#[derive(Clone, Debug, Serialize)]
pub struct DatabaseFacts {
    /// Figures count only with `on`.
    pub fsync: String,
    /// Figures count only with `on`.
    pub synchronous_commit: String,
    /// User tables, largest first.
    pub tables: Vec<TableSize>,
}

/// Size of one table with indexes and TOAST.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct TableSize {
    pub name: String,
    pub bytes: i64,
}

impl DatabaseInspector {
    /// Connects. Call it before a run, so that a wrong URL does not waste one.
    ///
    /// # Errors
    /// If the database cannot be reached.
    pub async fn connect(url: &str) -> sqlx::Result<Self> {
        PgConnection::connect(url).await.map(Self)
    }

    /// Connects to a server without a URL, such as that of a private deployment.
    ///
    /// # Errors
    /// If the database cannot be reached.
    pub async fn connect_with(options: &PgConnectOptions) -> sqlx::Result<Self> {
        PgConnection::connect_with(options).await.map(Self)
    }

    /// Lists the pids of the client backends of a database.
    ///
    /// # Errors
    /// If the query fails.
    pub async fn list_backend_pids(&mut self, database: &str) -> sqlx::Result<Vec<i32>> {
        sqlx::query_scalar(
            "SELECT pid
             FROM pg_stat_activity
             WHERE datname = $1
               AND backend_type = 'client backend'
               AND pid <> pg_backend_pid()",
        )
        .bind(database)
        .fetch_all(&mut self.0)
        .await
    }

    /// Reads settings and table sizes.
    ///
    /// # Errors
    /// If a query fails.
    pub async fn read_facts(&mut self) -> sqlx::Result<DatabaseFacts> {
        let fsync = sqlx::query_scalar("SHOW fsync").fetch_one(&mut self.0).await?;
        let synchronous_commit = sqlx::query_scalar("SHOW synchronous_commit")
            .fetch_one(&mut self.0)
            .await?;
        let tables = sqlx::query_as(
            "SELECT schemaname || '.' || relname AS name,
                    pg_total_relation_size(relid) AS bytes
             FROM pg_stat_user_tables
             ORDER BY bytes DESC, name",
        )
        .fetch_all(&mut self.0)
        .await?;
        Ok(DatabaseFacts {
            fsync,
            synchronous_commit,
            tables,
        })
    }
}

impl fmt::Display for DatabaseFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  fsync {}, synchronous_commit {}",
            self.fsync, self.synchronous_commit
        )?;
        for table in &self.tables {
            writeln!(f, "  {:>12} kB  {}", table.bytes / 1024, table.name)?;
        }
        Ok(())
    }
}
