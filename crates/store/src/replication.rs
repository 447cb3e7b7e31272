//! Check that commits wait for a standby, and the evidence that a failover has lost none of them.
//!
//! A promoted standby has all commits that this node knows of if all of this holds:
//!
//! | Evidence | Excludes |
//! |---|---|
//! | the last check of the former primary found commits waiting for a standby | asynchronous replication |
//! | only the timeline differs, and it is a later one | another cluster, a restored dump |
//! | no lane of this node misses a batch that was acknowledged | point-in-time recovery to an earlier moment, a standby that lagged |
//!
//! The check reads settings and a view from time to time. A change between two checks, and commits of a node
//! that ended with the former primary, leave no trace here: that the standby had them is the guarantee of the
//! tool that promotes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use sqlx::PgConnection;
use vouchsafe_domain::replication::Replication;

use super::node_identity::NodeIdentity;
use super::server_identity::{self, ServerIdentity};

/// What this process knows of replication and of its own commits. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplicationEvidence(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    checks: Mutex<Checks>,
    lanes: Mutex<Vec<Arc<LanePosition>>>,
}

/// Results with the server that was asked.
#[derive(Debug, Default)]
struct Checks {
    last: Option<(Replication, ServerIdentity)>,
    /// The last one of the server before.
    former: Option<(Replication, ServerIdentity)>,
}

impl Checks {
    fn add(&mut self, found: Replication, server: ServerIdentity) {
        self.end(|last| last != server);
        self.last = Some((found, server));
    }

    /// Keeps the last result as the former one if it is that of such a server.
    fn end(&mut self, is_former: impl Fn(ServerIdentity) -> bool) {
        if self.last.is_some_and(|(_, server)| is_former(server)) {
            self.former = self.last.take();
        }
    }
}

/// The last batch of a lane that the database has acknowledged.
#[derive(Debug)]
pub(super) struct LanePosition {
    lane: i16,
    generation: AtomicI64,
    batch: AtomicI64,
}

impl LanePosition {
    pub(super) fn batch(&self) -> i64 {
        self.batch.load(Ordering::Acquire)
    }

    pub(super) fn acknowledge(&self, batch: i64) {
        self.batch.store(batch, Ordering::Release);
    }

    /// After the lane was recovered with this generation.
    pub(super) fn recover(&self, generation: i64, batch: i64) {
        self.generation.store(generation, Ordering::Release);
        self.acknowledge(batch);
    }
}

impl ReplicationEvidence {
    /// Adds a lane that was opened with this generation.
    pub(super) fn add_lane(&self, lane: i16, generation: i64) -> Arc<LanePosition> {
        let position = Arc::new(LanePosition {
            lane,
            generation: AtomicI64::new(generation),
            batch: AtomicI64::new(0),
        });
        self.0.lanes.lock().push(Arc::clone(&position));
        position
    }

    pub(super) fn last(&self) -> Replication {
        self.0
            .checks
            .lock()
            .last
            .map_or(Replication::Unknown, |(found, _)| found)
    }

    /// Asks the primary whether commits wait for a standby.
    pub(super) async fn check(&self, connection: &mut PgConnection) -> Result<Replication, sqlx::Error> {
        let server = server_identity::load_current(connection).await?;
        let found = find(connection).await?;
        self.0.checks.lock().add(found, server);
        Ok(found)
    }

    /// Whether the promoted server behind this connection has every commit of the former primary that this node knows of.
    pub(super) async fn has_all_commits(
        &self,
        connection: &mut PgConnection,
        node: &NodeIdentity,
        former: ServerIdentity,
        promoted: ServerIdentity,
    ) -> Result<bool, sqlx::Error> {
        let was_synchronous = {
            let mut checks = self.0.checks.lock();
            checks.end(|server| server == former);
            checks.former == Some((Replication::Synchronous, former))
        };
        if !was_synchronous || !promoted.is_later_timeline_of(former) {
            return Ok(false);
        }
        let rows = sqlx::query!(
            "SELECT lane, generation, batch FROM lanes WHERE node = $1",
            node.name,
        );
        let rows = rows.fetch_all(connection).await?;
        let lanes = self.0.lanes.lock();
        Ok(lanes.iter().all(|known| {
            rows.iter().any(|row| {
                row.lane == known.lane
                    && row.generation >= known.generation.load(Ordering::Acquire)
                    && row.batch >= known.batch()
            })
        }))
    }
}

async fn find(connection: &mut PgConnection) -> Result<Replication, sqlx::Error> {
    // Columns of other roles' connections are null without the rights of `pg_monitor`.
    let found = sqlx::query!(
        r#"SELECT current_setting('synchronous_standby_names') <> '' AS "has_names!",
                  current_setting('synchronous_commit') IN ('on', 'remote_apply') AS "is_awaited!",
                  COALESCE(bool_or(r.state = 'streaming' AND r.sync_state IN ('sync', 'quorum')), FALSE) AS "has_standby!",
                  COALESCE(bool_or(r.sync_state IS NULL), FALSE) AS "is_hidden!"
             FROM pg_stat_replication AS r"#,
    );
    let found = found.fetch_one(connection).await?;
    Ok(if !found.has_names {
        Replication::NoNames
    } else if !found.is_awaited {
        Replication::NotAwaited
    } else if found.has_standby {
        Replication::Synchronous
    } else if found.is_hidden {
        Replication::Unreadable
    } else {
        Replication::NoStandby
    })
}
