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

/// Whether a commit on a connection of this kind, which may have been given up since, waits for a standby.
/// The client's end does not end the wait.
const HAS_WAITING_COMMIT: &str = "SELECT EXISTS (
        SELECT
          FROM pg_stat_activity AS a
         WHERE a.usename = current_user
           AND a.application_name = current_setting('application_name')
           AND a.wait_event = 'SyncRep'
           AND a.state_change < clock_timestamp() - interval '10 s') AS has_waiting_commit";

/// Why a server gets no connection that it would accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("the server is in recovery: a standby, or a former primary")]
    InRecovery,
    #[error("the server is no standby: it was promoted, or never followed a primary")]
    NoStandby,
    /// Another connection would end as one more backend that waits.
    #[error("commits wait for a synchronous standby, and no further connections are opened meanwhile")]
    WaitingCommits,
}

impl From<Refusal> for sqlx::Error {
    /// The error of a closed port: nothing was done, and the server may be usable soon.
    fn from(refusal: Refusal) -> Self {
        io::Error::new(io::ErrorKind::ConnectionRefused, refusal).into()
    }
}

/// Whether the server was asked and answered, and is not used.
pub(crate) fn is_refusal(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.get_ref().is_some_and(|inner| inner.is::<Refusal>()),
        _ => false,
    }
}

/// What connections have shown of the history of the database.
#[derive(Debug, Default)]
pub(crate) struct Continuity {
    /// Whether connections are to lead to a standby: only then does a server in recovery get one.
    is_of_standby: bool,
    last: Mutex<Option<History>>,
    discontinuities: AtomicU64,
}

/// A cluster and its timeline: a promoted standby and a restored backup have another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct History {
    pub(super) system_identifier: i64,
    pub(super) timeline: i64,
}

impl Continuity {
    pub(super) fn of_standby() -> Self {
        Self {
            is_of_standby: true,
            ..Self::default()
        }
    }

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

    /// Checks that the server of a connection is no standby, and notes its history.
    pub(super) async fn check(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        self.observe(read_history(connection).await?);
        Ok(())
    }

    /// Checks a new connection, also that no commit on one of its kind waits for a standby that is gone.
    pub(crate) async fn admit(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        if self.is_of_standby {
            return match read_history(connection).await {
                Err(refusal) if is_refusal(&refusal) => Ok(()),
                Err(error) => Err(error),
                Ok(_) => Err(Refusal::NoStandby.into()),
            };
        }
        self.check(connection).await?;
        let waiting = connection.fetch_one(HAS_WAITING_COMMIT).await?;
        if waiting.try_get("has_waiting_commit")? {
            return Err(Refusal::WaitingCommits.into());
        }
        Ok(())
    }
}

impl History {
    /// Whether the server was promoted after the other one was the primary: that one must not be used any
    /// more.
    pub(super) const fn succeeds(self, other: Self) -> bool {
        self.is_of_cluster(other) && self.timeline > other.timeline
    }

    pub(super) const fn is_of_cluster(self, other: Self) -> bool {
        self.system_identifier == other.system_identifier
    }
}

/// Fails if the server is a standby.
pub(super) async fn read_history(connection: &mut PgConnection) -> Result<History, sqlx::Error> {
    // Not prepared: one round trip.
    let status = connection.fetch_one(STATUS).await?;
    if status.try_get("is_in_recovery")? {
        return Err(Refusal::InRecovery.into());
    }
    Ok(History {
        system_identifier: status.try_get("system_identifier")?,
        timeline: status.try_get("timeline")?,
    })
}
