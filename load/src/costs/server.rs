//! What does the database's server count? Its log, its commits, and which of its processes is what.
//!
//! Rule: read as the superuser of a stand, beside the service's own connections, and named so that its own share shows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use super::proc::{read_ended_children, read_process};
use super::{ThreadSample, Component};

/// As this reader names itself.
const READER: &str = "load";

/// What is taken from a server: everything in it that grows with orders.
const COUNTERS: &str = "
    SELECT (pg_current_wal_lsn() - '0/0')::bigint AS wal_end,
           w.wal_records,
           w.wal_fpi AS wal_images,
           (SELECT xact_commit FROM pg_stat_database WHERE datname = $1) AS commits
      FROM pg_stat_wal AS w";

/// Who serves whom.
const PROCESSES: &str = "
    SELECT pid,
           CASE
               WHEN backend_type <> 'client backend' THEN backend_type
               ELSE concat_ws(' ', usename || '@' || datname, NULLIF(application_name, ''))
           END
      FROM pg_stat_activity";

/// What of a span of the log is records, and what images of whole pages.
const SPLIT: &str = "
    SELECT sum(record_size)::bigint, sum(fpi_size)::bigint
      FROM pg_get_wal_stats('0/0'::pg_lsn + $1::numeric, '0/0'::pg_lsn + $2::numeric, false)";

/// A server whose costs are read.
#[derive(Clone, Debug)]
pub struct MonitoredServer {
    /// Its superuser, in a database that is always there.
    pub superuser: PgConnectOptions,
    /// The file that names its first process.
    pub pid_file: PathBuf,
    /// The database whose commits count.
    pub database: String,
}

/// What a server has counted so far.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct ServerCounters {
    /// Where its log ends, in bytes.
    pub wal_end: i64,
    pub wal_records: i64,
    /// Images of whole pages, as the first change of each after a checkpoint leaves.
    pub wal_images: i64,
    /// Commits of the database.
    pub commits: i64,
}

/// What the log of a server took for an order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WalCost {
    /// Bytes of the log.
    pub bytes: f64,
    /// Of those, what is no image of a page; `None` if the server cannot say.
    pub record_bytes: Option<f64>,
    /// Of those, images of whole pages: what checkpoints cost.
    pub image_bytes: Option<f64>,
    pub records: f64,
    /// Images of whole pages.
    pub images: f64,
    pub commits: f64,
}

impl ServerCounters {
    /// What came after an earlier look, by order.
    #[must_use]
    pub fn since(&self, then: &Self, orders: u64) -> WalCost {
        let each = |now: i64, then: i64| (now - then) as f64 / orders as f64;
        WalCost {
            bytes: each(self.wal_end, then.wal_end),
            record_bytes: None,
            image_bytes: None,
            records: each(self.wal_records, then.wal_records),
            images: each(self.wal_images, then.wal_images),
            commits: each(self.commits, then.commits),
        }
    }
}

/// A connection that reads what a server counts.
pub struct ServerStatsReader {
    connection: PgConnection,
    database: String,
    pid_file: PathBuf,
}

impl ServerStatsReader {
    /// Connects.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn connect(server: &MonitoredServer) -> sqlx::Result<Self> {
        let options = server.superuser.clone().application_name(READER);
        Ok(Self {
            connection: PgConnection::connect_with(&options).await?,
            database: server.database.clone(),
            pid_file: server.pid_file.clone(),
        })
    }

    /// What it has counted so far. Its processes tell of records, images and commits a second late at most, at both ends of
    /// a measurement alike; where the log ends is of now.
    ///
    /// # Errors
    /// When the query fails.
    pub async fn statistics(&mut self) -> sqlx::Result<ServerCounters> {
        sqlx::query_as(COUNTERS)
            .bind(&self.database)
            .fetch_one(&mut self.connection)
            .await
    }

    /// Its processes by their ids, each with its name.
    ///
    /// # Errors
    /// When the query fails.
    pub async fn processes(&mut self) -> anyhow::Result<BTreeMap<u32, String>> {
        let rows: Vec<(i32, String)> = sqlx::query_as(PROCESSES).fetch_all(&mut self.connection).await?;
        let mut processes = BTreeMap::new();
        for (pid, name) in rows {
            processes.insert(u32::try_from(pid)?, name);
        }
        if let Some(first) = first_process(&self.pid_file) {
            processes.insert(first, "postmaster".to_owned());
        }
        Ok(processes)
    }

    /// How much of the log between two looks was records, and how much images: decoded, which takes seconds for gigabytes.
    /// `None` if this server has no decoder, or the log is gone.
    pub async fn split_wal(&mut self, before: &ServerCounters, after: &ServerCounters) -> Option<(i64, i64)> {
        sqlx::query("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
            .execute(&mut self.connection)
            .await
            .ok()?;
        sqlx::query_as(SPLIT)
            .bind(before.wal_end)
            .bind(after.wal_end)
            .fetch_one(&mut self.connection)
            .await
            .ok()
    }
}

/// What the processes of a server used, and what those that have ended.
///
/// # Errors
/// When there is no `/proc`.
pub fn read_server_usage(processes: &BTreeMap<u32, String>) -> std::io::Result<(BTreeMap<u32, ThreadSample>, Duration)> {
    let (mut tasks, mut ended) = (BTreeMap::new(), Duration::ZERO);
    for (&pid, name) in processes {
        // One that has ended since it was asked for is among those that have.
        if let Ok(used) = read_process(pid) {
            let (who, name) = (Component::Postgres, name.clone());
            tasks.insert(pid, ThreadSample { component: who, name, usage: used });
        }
        if name == "postmaster" {
            ended = read_ended_children(pid)?;
        }
    }
    Ok((tasks, ended))
}

/// The first line of the file by which a server says that it is there.
fn first_process(pid_file: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(pid_file).ok()?;
    text.lines().next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_told_by_order() {
        let look = |end, records, images, commits| ServerCounters {
            wal_end: end,
            wal_records: records,
            wal_images: images,
            commits,
        };
        let log = look(50_000, 210, 4, 12).since(&look(10_000, 10, 0, 2), 20);
        assert_eq!(
            (log.bytes, log.records, log.images, log.commits),
            (2_000.0, 10.0, 0.2, 0.5)
        );
    }

    #[test]
    fn a_server_says_which_process_is_its_first() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("postmaster.pid");
        assert_eq!(first_process(&file), None);
        std::fs::write(&file, "4711\n/data\n").unwrap();
        assert_eq!(first_process(&file), Some(4_711));
    }
}
