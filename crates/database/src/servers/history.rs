//! Cluster and timeline behind each connection: a change of them means that commits may be missing.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sqlx::{Executor as _, PgConnection, Row as _};

/// The timeline comes from the WAL position: the control file has a new one only after a checkpoint.
const STATUS: &str = "SELECT pg_is_in_recovery() AS is_in_recovery,
                             system_identifier,
                             CASE WHEN pg_is_in_recovery() THEN 0
                                  ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint
                              END AS timeline
                        FROM pg_control_system()";

/// The server accepts no writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server is in recovery: a standby, or a former primary")]
struct InRecovery;

/// What connections have shown of the history of the database.
#[derive(Debug, Default)]
pub(crate) struct Continuity {
    last: Mutex<Option<History>>,
    discontinuities: AtomicU64,
}

/// A cluster and its timeline: a promoted standby and a restored backup have another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct History {
    system_identifier: i64,
    pub(super) timeline: i64,
}

impl Continuity {
    pub(super) fn observe(&self, history: History) {
        // The lock orders the count before the next use of a connection to this server.
        let mut last = self.last.lock();
        if last.replace(history).is_some_and(|last| last != history) {
            self.record_discontinuity();
        }
    }

    pub(super) fn discontinuities(&self) -> u64 {
        self.discontinuities.load(Ordering::Acquire)
    }

    pub(super) fn record_discontinuity(&self) {
        self.discontinuities.fetch_add(1, Ordering::Release);
    }

    /// Checks that the server of a new connection is no standby, and notes its history.
    pub(crate) async fn check(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        self.observe(read_history(connection).await?);
        Ok(())
    }
}

impl History {
    /// Whether the server was promoted after the other one was the primary: that one must not be used any more.
    pub(super) const fn succeeds(self, other: Self) -> bool {
        self.system_identifier == other.system_identifier && self.timeline > other.timeline
    }
}

/// Fails as a closed port does if the server is a standby: nothing was done, and the server may become the primary.
pub(super) async fn read_history(connection: &mut PgConnection) -> Result<History, sqlx::Error> {
    // Not prepared: one round trip.
    let status = connection.fetch_one(STATUS).await?;
    if status.try_get("is_in_recovery")? {
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, InRecovery).into());
    }
    Ok(History {
        system_identifier: status.try_get("system_identifier")?,
        timeline: status.try_get("timeline")?,
    })
}
