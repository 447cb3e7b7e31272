//! A standby that serves long reads of operators: how far it is behind the primary, and whether it may be
//! read.
//!
//! The lag is measured without comparing clocks: positions of the primary's WAL are noted with the time at
//! which they were read, and the newest one that the standby has replayed says which commits it has.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::{PgConnection, PgExecutor};
use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;
use vouchsafe_database::boxed;
use vouchsafe_database::connection_class::ConnectionClass;
use vouchsafe_database::connection_pool::timeout_error;
use vouchsafe_database::database::Database;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::servers::Servers;

use super::store::PgStore;

/// A standby that is further behind is not read.
pub const MAX_REPLICA_LAG: Duration = Duration::from_secs(10);

/// For both servers to answer. A standby that hangs is not read any more afterwards.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// A standby of the database, and the primary to which it is compared.
#[derive(Debug)]
pub struct Replica {
    /// On the connections for requests of operators.
    store: PgStore,
    standby: Servers,
    /// To the standby, of the comparison. A pool would wait for a server that refuses connections.
    connection: Mutex<Option<PgConnection>>,
    /// On the connections of background jobs.
    primary: Database,
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// Positions of the primary that the standby has not replayed yet, oldest first.
    awaited: VecDeque<(Instant, i64)>,
    /// All that was committed before is in the standby. `None` until it is known, and while the standby does
    /// not answer.
    complete_until: Option<Instant>,
}

impl Progress {
    fn note(&mut self, read_at: Instant, position: i64, replayed: i64) {
        self.awaited.push_back((read_at, position));
        while let Some(&(read_at, position)) = self.awaited.front()
            && position <= replayed
        {
            self.complete_until = Some(read_at);
            self.awaited.pop_front();
        }
        // What is older makes no difference: the standby is not read.
        while self
            .awaited
            .front()
            .is_some_and(|(read_at, _)| read_at.elapsed() > 2 * MAX_REPLICA_LAG)
            && self.awaited.len() > 1
        {
            self.awaited.pop_front();
        }
    }
}

/// Where a server is in the history of the database.
struct Place {
    is_in_recovery: bool,
    /// In the WAL: bytes written by a primary, or replayed by a standby.
    position: i64,
    /// Replaced by each change of the server after which commits may be missing.
    history: Option<Uuid>,
}

impl Replica {
    /// `store` is that of the `standby`.
    #[must_use]
    pub fn new(standby: &Servers, store: &PgStore, primary: &PgStore) -> Self {
        Self {
            store: store.for_operators(),
            standby: standby.with_application_name("vouchsafe replica"),
            connection: Mutex::default(),
            primary: primary.database.on(ConnectionClass::Jobs),
            progress: watch::Sender::default(),
        }
    }

    #[must_use]
    pub const fn store(&self) -> &PgStore {
        &self.store
    }

    /// The lag of the standby, if it may be read.
    #[must_use]
    pub fn lag(&self) -> Option<Duration> {
        let lag = self.progress.borrow().complete_until?.elapsed();
        Some(lag).filter(|lag| *lag <= MAX_REPLICA_LAG)
    }

    /// The standby has failed a read: it is not read until the next comparison.
    pub fn give_up(&self) {
        self.progress.send_replace(Progress::default());
    }

    /// Waits until the standby must not be read any more because it does not answer.
    pub async fn given_up(&self) {
        let mut progress = self.progress.subscribe();
        // The sender lives as long as `self`.
        drop(
            progress
                .wait_for(|progress| progress.complete_until.is_none())
                .await,
        );
    }

    /// Compares the standby with the primary.
    ///
    /// # Errors
    /// [`StoreError`] if one of them does not answer; the standby is not read until the next comparison.
    #[boxed]
    pub async fn compare(&self) -> Result<(), StoreError> {
        let compared = match timeout(ANSWER_TIMEOUT, self.read_places()).await {
            Ok(compared) => compared,
            Err(_) => Err(timeout_error(ANSWER_TIMEOUT).into()),
        };
        match compared {
            Ok((read_at, position, Some(replayed))) => {
                self.progress
                    .send_modify(|progress| progress.note(read_at, position, replayed));
            }
            // Promoted, or of another history.
            Ok((.., None)) => self.give_up(),
            Err(error) => {
                self.give_up();
                return Err(error);
            }
        }
        Ok(())
    }

    /// When the position of the primary was read, that position, and the one that the standby has replayed;
    /// `None` if the server is no standby of this primary.
    async fn read_places(&self) -> Result<(Instant, i64, Option<i64>), StoreError> {
        let read_at = Instant::now();
        let primary = self
            .primary
            .run(|pool| async move { read_place(&pool).await })
            .await?;
        let mut connection = self.connect().await?;
        let standby = read_place(&mut connection).await?;
        // One that fails or takes too long is not used again.
        *self.connection.lock() = Some(connection);
        let is_standby = standby.is_in_recovery && standby.history == primary.history;
        Ok((read_at, primary.position, is_standby.then_some(standby.position)))
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let connected = self.connection.lock().take();
        match connected {
            Some(connection) => Ok(connection),
            None => Ok(self.standby.connect().await?.0),
        }
    }
}

async fn read_place(executor: impl PgExecutor<'_>) -> Result<Place, sqlx::Error> {
    let statement = sqlx::query_as!(
        Place,
        r#"SELECT pg_is_in_recovery() AS "is_in_recovery!",
                  (CASE
                      WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                      ELSE pg_current_wal_lsn()
                   END - '0/0'::pg_lsn)::bigint AS "position!",
                  (SELECT history FROM continuity) AS history"#
    );
    statement.fetch_one(executor).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standby_is_complete_until_the_newest_position_that_it_has_replayed() {
        let mut progress = Progress::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        progress.note(at(0), 100, 90);
        assert_eq!(progress.complete_until, None);
        progress.note(at(1), 200, 150);
        assert_eq!(progress.complete_until, Some(at(0)));
        progress.note(at(2), 300, 250);
        assert_eq!(progress.complete_until, Some(at(1)));
        progress.note(at(3), 300, 300);
        assert_eq!(progress.complete_until, Some(at(3)));
        assert!(progress.awaited.is_empty());
    }
}
