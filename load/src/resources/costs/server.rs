//! WAL, commits and processes of the Postgres server.
//!
//! Rule: a separate superuser connection reads them, with an `application_name`, so that its own cost is visible.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use super::proc::{read_ended_children, read_process};
use super::{Component, ThreadSample};

/// `application_name` of the reader.
const APPLICATION_NAME: &str = "load";

/// Server counters that grow with orders.
const COUNTERS_SQL: &str = "
    SELECT (pg_current_wal_lsn() - '0/0')::bigint AS wal_end,
           w.wal_records,
           w.wal_fpi AS wal_images,
           (SELECT xact_commit FROM pg_stat_database WHERE datname = $1) AS commits
      FROM pg_stat_wal AS w";

/// Names of all server processes.
const PROCESSES_SQL: &str = "
    SELECT pid,
           CASE
               WHEN backend_type <> 'client backend' THEN backend_type
               ELSE concat_ws(' ', usename || '@' || datname, NULLIF(application_name, ''))
           END
      FROM pg_stat_activity";

/// Splits a WAL range into record bytes and full-page image bytes.
const WAL_SPLIT_SQL: &str = "
    SELECT sum(record_size)::bigint, sum(fpi_size)::bigint
      FROM pg_get_wal_stats('0/0'::pg_lsn + $1::numeric, '0/0'::pg_lsn + $2::numeric, false)";

/// Connection data of a server to monitor.
#[derive(Clone, Debug)]
pub struct MonitoredServer {
    /// Superuser, in a database that always exists.
    pub superuser: PgConnectOptions,
    /// `postmaster.pid`.
    pub pid_file: PathBuf,
    /// Counts the commits of this database.
    pub database: String,
}

/// Cumulative counters of a server.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct ServerCounters {
    /// WAL position, in bytes.
    pub wal_end: i64,
    pub wal_records: i64,
    /// Full-page images: the first change of a page after a checkpoint writes one.
    pub wal_images: i64,
    pub commits: i64,
}

/// WAL and commits per order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WalCost {
    pub bytes: f64,
    /// Without full-page images; `None` if the server has no `pg_walinspect`.
    pub record_bytes: Option<f64>,
    /// Full-page images: the cost of checkpoints.
    pub image_bytes: Option<f64>,
    pub records: f64,
    pub images: f64,
    pub commits: f64,
}

impl ServerCounters {
    /// Counts since an earlier reading, per order.
    #[must_use]
    pub fn since(&self, earlier: &Self, orders: u64) -> WalCost {
        let each = |now: i64, earlier: i64| (now - earlier) as f64 / orders as f64;
        WalCost {
            bytes: each(self.wal_end, earlier.wal_end),
            record_bytes: None,
            image_bytes: None,
            records: each(self.wal_records, earlier.wal_records),
            images: each(self.wal_images, earlier.wal_images),
            commits: each(self.commits, earlier.commits),
        }
    }
}

/// Connection that reads the counters of a server.
pub struct ServerStatsReader {
    connection: PgConnection,
    database: String,
    pid_file: PathBuf,
}

impl ServerStatsReader {
    /// # Errors
    /// If the server cannot be reached.
    pub async fn connect(server: &MonitoredServer) -> sqlx::Result<Self> {
        let options = server.superuser.clone().application_name(APPLICATION_NAME);
        Ok(Self {
            connection: PgConnection::connect_with(&options).await?,
            database: server.database.clone(),
            pid_file: server.pid_file.clone(),
        })
    }

    /// Reads the counters. Server processes report records, images and commits with up to a second of delay, at both
    /// ends of an interval alike; the WAL position is current.
    ///
    /// # Errors
    /// If the query fails.
    pub async fn statistics(&mut self) -> sqlx::Result<ServerCounters> {
        sqlx::query_as(COUNTERS_SQL)
            .bind(&self.database)
            .fetch_one(&mut self.connection)
            .await
    }

    /// Reads the server processes by pid, with their names.
    ///
    /// # Errors
    /// If the query fails.
    pub async fn processes(&mut self) -> anyhow::Result<BTreeMap<u32, String>> {
        let rows: Vec<(i32, String)> = sqlx::query_as(PROCESSES_SQL)
            .fetch_all(&mut self.connection)
            .await?;
        let mut processes = BTreeMap::new();
        for (pid, name) in rows {
            processes.insert(u32::try_from(pid)?, name);
        }
        if let Some(first) = read_postmaster_pid(&self.pid_file) {
            processes.insert(first, "postmaster".to_owned());
        }
        Ok(processes)
    }

    /// Splits the WAL between two readings into record bytes and image bytes. Decoding takes seconds per gigabyte.
    /// `None` if the server has no `pg_walinspect` or has removed the WAL.
    pub async fn split_wal(&mut self, before: &ServerCounters, after: &ServerCounters) -> Option<(i64, i64)> {
        sqlx::query("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
            .execute(&mut self.connection)
            .await
            .ok()?;
        sqlx::query_as(WAL_SPLIT_SQL)
            .bind(before.wal_end)
            .bind(after.wal_end)
            .fetch_one(&mut self.connection)
            .await
            .ok()
    }
}

/// Reads the usage of all server processes and the CPU time of ended backends.
///
/// # Errors
/// If there is no `/proc`.
pub fn read_server_usage(
    processes: &BTreeMap<u32, String>,
) -> std::io::Result<(BTreeMap<u32, ThreadSample>, Duration)> {
    let (mut tasks, mut ended_backends) = (BTreeMap::new(), Duration::ZERO);
    for (&pid, name) in processes {
        // A backend that ended since the query is included in the postmaster's count.
        if let Ok(used) = read_process(pid) {
            let (component, name) = (Component::Postgres, name.clone());
            tasks.insert(
                pid,
                ThreadSample {
                    component,
                    name,
                    usage: used,
                },
            );
        }
        if name == "postmaster" {
            ended_backends = read_ended_children(pid)?;
        }
    }
    Ok((tasks, ended_backends))
}

/// Reads the pid from the first line of `postmaster.pid`.
fn read_postmaster_pid(pid_file: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(pid_file).ok()?;
    text.lines().next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wal_cost_is_per_order() {
        let counters = |end, records, images, commits| ServerCounters {
            wal_end: end,
            wal_records: records,
            wal_images: images,
            commits,
        };
        let wal = counters(50_000, 210, 4, 12).since(&counters(10_000, 10, 0, 2), 20);
        assert_eq!(
            (wal.bytes, wal.records, wal.images, wal.commits),
            (2_000.0, 10.0, 0.2, 0.5)
        );
    }

    #[test]
    fn postmaster_pid_is_read_from_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("postmaster.pid");
        assert_eq!(read_postmaster_pid(&file), None);
        std::fs::write(&file, "4711\n/data\n").unwrap();
        assert_eq!(read_postmaster_pid(&file), Some(4_711));
    }
}
