//! WAL, commits and processes of the Postgres server.
//!
//! Rule: a separate superuser connection reads them, with an `application_name`, so that its own cost is
//! visible.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use super::proc::{Component, ThreadSample, read_cpu_time, read_ended_children, read_parent};

/// `application_name` of the reader.
const APPLICATION_NAME: &str = "load";

/// Process name of the postmaster.
const POSTMASTER: &str = "postmaster";

/// Server counters that grow with orders, and the position of the latest checkpoint.
const COUNTERS_SQL: &str = "
    SELECT (pg_current_wal_lsn() - '0/0')::bigint AS wal_end,
           (SELECT (checkpoint_lsn - '0/0')::bigint FROM pg_control_checkpoint()) AS checkpoint,
           (SELECT xact_commit FROM pg_stat_database WHERE datname = $1) AS commits";

/// Names of all server processes.
const PROCESSES_SQL: &str = "
    SELECT pid,
           CASE
               WHEN backend_type <> 'client backend' THEN backend_type
               ELSE concat_ws(' ', usename || '@' || datname, NULLIF(application_name, ''))
           END
      FROM pg_stat_activity";

/// Connection data of a server to monitor.
#[derive(Clone, Debug)]
pub struct MonitoredServer {
    /// A role that sees all backends, in a database that always exists.
    pub superuser: PgConnectOptions,
    /// Counts the commits of this database.
    pub database: String,
}

/// Cumulative counters of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct ServerCounters {
    /// WAL position, in bytes.
    pub wal_end: i64,
    /// Position of the latest checkpoint that has ended, in bytes.
    pub checkpoint: i64,
    pub commits: i64,
}

/// WAL and commits per order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WalCost {
    pub bytes: f64,
    pub commits: f64,
}

impl ServerCounters {
    /// Counts since an earlier reading, per order.
    pub(crate) fn since(self, earlier: Self, orders: u64) -> WalCost {
        WalCost {
            bytes: (self.wal_end - earlier.wal_end) as f64 / orders as f64,
            commits: (self.commits - earlier.commits) as f64 / orders as f64,
        }
    }
}

/// Connection that reads the counters of a server.
pub(crate) struct ServerStatsReader {
    connection: PgConnection,
    database: String,
    /// The parent of all backends; `None` without `/proc`.
    postmaster: Option<u32>,
}

impl ServerStatsReader {
    pub(crate) async fn connect(server: MonitoredServer) -> sqlx::Result<Self> {
        let options = server.superuser.clone().application_name(APPLICATION_NAME);
        let mut connection = PgConnection::connect_with(&options).await?;
        let backend: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
            .fetch_one(&mut connection)
            .await?;
        Ok(Self {
            connection,
            database: server.database,
            postmaster: read_parent(backend.cast_unsigned()).ok(),
        })
    }

    /// Reads the counters. Server processes report commits with up to a second of delay, at both ends of an
    /// interval alike; the WAL position is current.
    pub(crate) async fn statistics(&mut self) -> sqlx::Result<ServerCounters> {
        sqlx::query_as(COUNTERS_SQL)
            .bind(&self.database)
            .fetch_one(&mut self.connection)
            .await
    }

    /// Reads the server processes by pid, with their names.
    pub(crate) async fn processes(&mut self) -> sqlx::Result<BTreeMap<u32, String>> {
        let rows: Vec<(i32, String)> = sqlx::query_as(PROCESSES_SQL)
            .fetch_all(&mut self.connection)
            .await?;
        let backends = rows.into_iter().map(|(pid, name)| (pid.cast_unsigned(), name));
        let postmaster = self.postmaster.map(|pid| (pid, POSTMASTER.to_owned()));
        Ok(backends.chain(postmaster).collect())
    }
}

/// Reads the usage of all server processes and the CPU time of ended backends.
pub(crate) fn read_server_usage(
    processes: BTreeMap<u32, String>,
) -> procfs::ProcResult<(BTreeMap<u32, ThreadSample>, Duration)> {
    let (mut samples, mut ended_backends) = (BTreeMap::new(), Duration::ZERO);
    for (pid, name) in processes {
        if name == POSTMASTER {
            ended_backends = read_ended_children(pid)?;
        }
        // A backend that ended since the query is included in the postmaster's count.
        if let Ok(cpu) = read_cpu_time(pid) {
            let component = Component::Postgres;
            samples.insert(pid, ThreadSample { component, name, cpu });
        }
    }
    Ok((samples, ended_backends))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wal_cost_is_per_order() {
        let counters = |wal_end, commits| ServerCounters {
            wal_end,
            checkpoint: 0,
            commits,
        };
        let wal = counters(50_000, 12).since(counters(10_000, 2), 20);
        assert_eq!((wal.bytes, wal.commits), (2_000.0, 0.5));
    }
}
