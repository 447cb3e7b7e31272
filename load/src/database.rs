//! Under which database did a run take place? Durability settings and sizes, read from Postgres itself.
//!
//! Its SQL asks Postgres about itself, and knows no table of the service.

use std::fmt;

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

/// A connection beside the service's own, for reading alone.
pub struct DatabaseInspector(PgConnection);

/// What makes a figure comparable.
#[derive(Clone, Debug, Serialize)]
pub struct DatabaseFacts {
    /// `fsync`: `on`, or the figures do not count.
    pub fsync: String,
    /// `synchronous_commit`: `on`, or the figures do not count.
    pub synchronous_commit: String,
    /// The user tables, largest first.
    pub tables: Vec<TableSize>,
}

/// One table with its indexes and overflow storage.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct TableSize {
    pub name: String,
    pub bytes: i64,
}

impl DatabaseInspector {
    /// Connects, before a run, so that a wrong URL does not cost one.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn connect(url: &str) -> sqlx::Result<Self> {
        PgConnection::connect(url).await.map(Self)
    }

    /// The same, for a server of which no URL tells: a stand's.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn connect_with(options: &PgConnectOptions) -> sqlx::Result<Self> {
        PgConnection::connect_with(options).await.map(Self)
    }

    /// The pids of those who serve clients of this database.
    ///
    /// # Errors
    /// When the query fails.
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

    /// Reads settings and sizes.
    ///
    /// # Errors
    /// When a query fails.
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
