//! Check that commits wait for a standby. It reports and decides nothing: a change between two checks leaves
//! no trace.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::PgConnection;
use tokio::time::Instant;
use vouchsafe_domain::replication::Replication;

/// An older result says nothing about the primary now.
const MAX_AGE: Duration = Duration::from_secs(10);

/// The last result of the check. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplicationCheck(Arc<Mutex<Option<(Replication, Instant)>>>);

impl ReplicationCheck {
    pub(super) fn last(&self) -> Replication {
        let last = *self.0.lock();
        last.filter(|(_, at)| at.elapsed() < MAX_AGE)
            .map_or(Replication::Unknown, |(found, _)| found)
    }

    /// Asks the primary whether commits wait for a standby.
    pub(super) async fn check(&self, connection: &mut PgConnection) -> Result<Replication, sqlx::Error> {
        let found = find(connection).await?;
        *self.0.lock() = Some((found, Instant::now()));
        Ok(found)
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
