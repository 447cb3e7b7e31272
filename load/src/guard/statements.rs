//! Statements, commits and WAL of the service's database, exact to the record.

use std::collections::BTreeMap;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::deployment::postgres::SERVICE_DATABASE;

/// Settings of the guard's own server that make its counts steady, from its next start.
const SETTINGS: [&str; 5] = [
    "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'",
    "ALTER SYSTEM SET autovacuum = off",
    "ALTER SYSTEM SET checkpoint_timeout = '1h'",
    "CREATE EXTENSION pg_stat_statements",
    "CREATE EXTENSION pg_walinspect",
];

/// Statements that the service has sent, without those in functions, by the id of their text.
const STATEMENTS_SQL: &str = "
    SELECT queryid::bigint, sum(calls)::bigint
      FROM pg_stat_statements
      JOIN pg_roles ON pg_roles.oid = userid
     WHERE rolname = $1
     GROUP BY queryid";

const POSITION_SQL: &str = "SELECT pg_current_wal_flush_lsn()::text";

/// WAL records between two positions, without the page images that depend on checkpoints.
const WAL_SQL: &str = r#"
    SELECT COALESCE(sum(record_size), 0)::bigint,
           COALESCE(sum(count) FILTER (WHERE "resource_manager/record_type" = 'Transaction/COMMIT'), 0)::bigint
      FROM pg_get_wal_stats($1::text::pg_lsn, $2::text::pg_lsn, true)"#;

/// Calls by statement.
pub(super) type Calls = BTreeMap<i64, i64>;

/// Counters of the database since the previous reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DatabaseCounters {
    pub calls: Calls,
    /// Commits that write WAL.
    pub commits: i64,
    pub wal_bytes: i64,
}

/// Prepares the server of a deployment. The next start uses the settings.
pub(super) async fn prepare_server(superuser: &PgConnectOptions) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect_with(superuser).await?;
    for statement in SETTINGS {
        connection.execute(statement).await?;
    }
    connection.close().await
}

/// Reads the counters on a connection of its own, which no counter contains.
pub(super) struct DatabaseReader {
    connection: PgConnection,
    calls: Calls,
    position: String,
}

impl DatabaseReader {
    pub(super) async fn connect(superuser: &PgConnectOptions) -> sqlx::Result<Self> {
        let mut reader = Self {
            connection: PgConnection::connect_with(superuser).await?,
            calls: Calls::new(),
            position: String::new(),
        };
        (reader.calls, reader.position) = reader.read_totals().await?;
        Ok(reader)
    }

    /// Counters since the previous reading.
    pub(super) async fn read(&mut self) -> sqlx::Result<DatabaseCounters> {
        let (calls, position) = self.read_totals().await?;
        let (wal_bytes, commits) = if position == self.position {
            (0, 0)
        } else {
            sqlx::query_as(WAL_SQL)
                .bind(&self.position)
                .bind(&position)
                .fetch_one(&mut self.connection)
                .await?
        };
        let earlier = std::mem::replace(&mut self.calls, calls.clone());
        self.position = position;
        let since = |(statement, calls): (i64, i64)| {
            let calls = calls - earlier.get(&statement).unwrap_or(&0);
            (calls > 0).then_some((statement, calls))
        };
        Ok(DatabaseCounters {
            calls: calls.into_iter().filter_map(since).collect(),
            commits,
            wal_bytes,
        })
    }

    async fn read_totals(&mut self) -> sqlx::Result<(Calls, String)> {
        let statements = sqlx::query_as(STATEMENTS_SQL).bind(SERVICE_DATABASE);
        let calls: Vec<(i64, i64)> = statements.fetch_all(&mut self.connection).await?;
        let position = sqlx::query_scalar(POSITION_SQL)
            .fetch_one(&mut self.connection)
            .await?;
        Ok((calls.into_iter().collect(), position))
    }
}
