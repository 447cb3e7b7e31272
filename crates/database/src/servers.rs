//! Failover between the servers of `DATABASE_URL`: which of them is the primary, and connections that follow
//! it.
//!
//! | Event | Effect |
//! |---|---|
//! | start | all servers are asked at once; of several primaries, the one with the highest timeline is taken |
//! | the primary closes the connection of the watch, or does not answer within a second | all servers are asked again; a successor is taken at once, else the known primary when it answers |
//! | the primary answers | the others are asked each second for its successor, which has a later timeline of the same cluster |
//! | another server is the primary | work on connections to the former one is aborted with an unknown outcome, and new connections lead to the new one |
//! | a server is in recovery | it counts as unreachable |
//! | a server is the primary of another cluster | it counts as unreachable; at the start, two clusters are an error |
//! | a commit waits for a standby for ten seconds | no further connection of its kind is opened, so that commits without a client stay as few as connections |
//! | a connection leads to another cluster or timeline than the one before, or another server is the primary | commits may be lost: a discontinuity is counted, and caches of the database are dropped |
//!
//! The watch exists only with several servers. Behind one address, that of a proxy, connections end when the
//! primary changes.

mod history;
mod search;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgConnection;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use self::history::History;
pub(crate) use self::history::{Continuity, is_refusal};
pub(crate) use self::search::address;
use self::search::{FoundPrimary, find_successor, search};
use super::boxed;
use super::error::describe;
use super::session::open;

/// Time limit for a server to accept a connection and to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval of questions to a primary that answers.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// Between two questions to the other servers while the primary answers.
const SUCCESSOR_INTERVAL: Duration = Duration::from_secs(1);

/// Between two searches that found no primary.
const SEARCH_INTERVAL: Duration = Duration::from_millis(200);

/// The servers of `DATABASE_URL`. Clones share the knowledge which of them is the primary.
#[derive(Debug, Clone)]
pub struct Servers {
    options: Arc<[PgConnectOptions]>,
    /// Whether a command asks a server whether it is the primary before it uses it.
    is_primary_required: bool,
    primary: Arc<watch::Sender<Primary>>,
    continuity: Arc<Continuity>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Primary {
    /// `None` until the first search has found one.
    index: Option<usize>,
    /// How many times a search has found another primary than before.
    moves: u64,
}

/// The server is no longer the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another server of DATABASE_URL has become the primary")]
struct PrimaryMoved;

impl From<PgConnectOptions> for Servers {
    fn from(options: PgConnectOptions) -> Self {
        Self::new(vec![options], false)
    }
}

impl Servers {
    /// `options` has at least one server.
    pub(crate) fn new(options: Vec<PgConnectOptions>, is_primary_required: bool) -> Self {
        assert!(!options.is_empty(), "a database has a server");
        let index = (options.len() == 1).then_some(0);
        Self {
            is_primary_required: is_primary_required || options.len() > 1,
            options: options.into(),
            primary: Arc::new(watch::Sender::new(Primary { index, moves: 0 })),
            continuity: Arc::default(),
        }
    }

    /// The server as a standby whose primary is another one. With several servers, `None`.
    #[must_use]
    pub fn into_standby(self) -> Option<Self> {
        (self.options.len() == 1).then(|| Self {
            is_primary_required: false,
            continuity: Arc::new(Continuity::of_standby()),
            ..self
        })
    }

    /// The same servers with other options of connections.
    #[must_use]
    pub(crate) fn map(&self, change: impl Fn(PgConnectOptions) -> PgConnectOptions) -> Self {
        Self {
            options: self.options.iter().cloned().map(change).collect(),
            ..self.clone()
        }
    }

    /// The same servers with further settings of the session.
    #[must_use]
    pub fn with_settings<'a>(&self, settings: impl IntoIterator<Item = (&'a str, &'a str)> + Clone) -> Self {
        self.map(|options| options.options(settings.clone()))
    }

    #[must_use]
    pub fn with_application_name(&self, name: &str) -> Self {
        self.map(|options| options.application_name(name))
    }

    /// Options of connections to the primary, for work that does not follow it to another server.
    ///
    /// # Errors
    /// [`sqlx::Error::Io`] if no server is the primary, or the error with which all servers refuse a
    /// connection.
    #[boxed]
    pub async fn find_primary(&self) -> Result<PgConnectOptions, sqlx::Error> {
        if !self.is_primary_required {
            return Ok(self.options[0].clone());
        }
        let found = search(&self.options, None).await?;
        Ok(self.options[found.index].clone())
    }

    /// Opens a connection to the primary. Waits for the first one, and tries a new one as soon as there is
    /// one.
    ///
    /// # Errors
    /// [`sqlx::Error`] if the primary accepts no connection, is in recovery, or cannot commit.
    #[boxed]
    pub async fn connect(&self) -> Result<(PgConnection, PrimaryWatch), sqlx::Error> {
        loop {
            let watch = self.watch().await;
            let connecting = async {
                let mut connection = open(watch.options(self)).await?;
                self.continuity.admit(&mut connection).await?;
                Ok(connection)
            };
            let mut moves = watch.clone();
            tokio::select! {
                biased;
                connected = connecting => return connected.map(|connection| (connection, watch)),
                () = moves.moved() => {}
            }
        }
    }

    /// Waits for the first primary.
    pub(crate) async fn watch(&self) -> PrimaryWatch {
        let mut receiver = self.primary.subscribe();
        loop {
            let primary = *receiver.borrow_and_update();
            if let Some(index) = primary.index {
                return PrimaryWatch {
                    receiver: (self.options.len() > 1).then_some(receiver),
                    index,
                    moves: primary.moves,
                };
            }
            // The sender lives as long as `self`.
            drop(receiver.changed().await);
        }
    }

    #[cfg(test)]
    pub(crate) fn options(&self) -> &[PgConnectOptions] {
        &self.options
    }

    /// How often the database may have lost commits since the start.
    pub fn discontinuities(&self) -> u64 {
        self.continuity.discontinuities()
    }

    /// Counts a discontinuity that history does not show, such as a restored dump.
    pub fn record_discontinuity(&self) {
        self.continuity.record_discontinuity();
    }

    pub(crate) fn continuity(&self) -> Arc<Continuity> {
        Arc::clone(&self.continuity)
    }

    pub(crate) fn are_several(&self) -> bool {
        self.options.len() > 1
    }

    /// Follows the primary; never returns.
    pub(crate) async fn run_watch(self) {
        let mut primary: Option<FoundPrimary> = None;
        let mut known: Option<(usize, History)> = None;
        let mut is_reported = false;
        let mut asked_at = Instant::now();
        loop {
            if let Some(open) = &mut primary
                && is_answering(&self.continuity, &mut open.connection).await
            {
                if asked_at.elapsed() >= SUCCESSOR_INTERVAL {
                    asked_at = Instant::now();
                    let successor = find_successor(&self.options, (open.index, open.history)).await;
                    if let Some(successor) = successor {
                        warn!("a standby was promoted while the former primary still answers");
                        known = Some(self.adopt(&successor));
                        primary = Some(successor);
                    }
                }
                sleep(WATCH_INTERVAL).await;
                continue;
            }
            primary = None;
            match search(&self.options, known).await {
                Ok(found) => {
                    known = Some(self.adopt(&found));
                    primary = Some(found);
                    is_reported = false;
                    sleep(WATCH_INTERVAL).await;
                }
                Err(error) => {
                    if !is_reported {
                        warn!(error.message = %describe(&error), "no database server is the primary; asking all of them again");
                    }
                    is_reported = true;
                    sleep(SEARCH_INTERVAL).await;
                }
            }
        }
    }

    fn adopt(&self, found: &FoundPrimary) -> (usize, History) {
        self.move_to(found.index, found.history);
        (found.index, found.history)
    }

    /// Caches are dropped before the first connection to another server, also if its timeline has the same
    /// number: two standbys that were promoted without each other's knowledge give it to different histories.
    fn move_to(&self, index: usize, history: History) {
        self.continuity.observe(history);
        if self.primary.borrow().index.is_some_and(|known| known != index) {
            self.continuity.record_discontinuity();
        }
        let is_moved = self.primary.send_if_modified(|primary| {
            let is_moved = primary.index != Some(index);
            if is_moved {
                primary.moves += 1;
                primary.index = Some(index);
            }
            is_moved
        });
        if is_moved {
            let options = &self.options[index];
            info!(server.address = %address(options), "connecting to this database server: it is the primary");
        }
    }
}

async fn is_answering(continuity: &Continuity, connection: &mut PgConnection) -> bool {
    let checked = timeout(ANSWER_TIMEOUT, continuity.check(connection)).await;
    matches!(checked, Ok(Ok(())))
}

/// A primary, until another server becomes it.
#[derive(Debug, Clone)]
pub struct PrimaryWatch {
    /// `None` for a single server.
    receiver: Option<watch::Receiver<Primary>>,
    index: usize,
    moves: u64,
}

impl PrimaryWatch {
    pub(crate) fn options<'a>(&self, servers: &'a Servers) -> &'a PgConnectOptions {
        &servers.options[self.index]
    }

    /// Number of the primary among those of this process.
    pub(crate) const fn moves(&self) -> u64 {
        self.moves
    }

    /// Waits until another server is the primary.
    pub async fn moved(&mut self) {
        let moves = self.moves;
        let moved = match &mut self.receiver {
            Some(receiver) => receiver.wait_for(|primary| primary.moves != moves).await.is_ok(),
            None => false,
        };
        if !moved {
            // A single server, or all handles to the servers are gone: nothing moves.
            std::future::pending::<()>().await;
        }
    }
}

/// The error of work on a connection to a former primary: its outcome is unknown.
pub fn moved_error() -> sqlx::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, PrimaryMoved).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_primary_is_a_discontinuity_whatever_its_timeline() {
        let servers = Servers::new(vec![PgConnectOptions::new(), PgConnectOptions::new()], true);
        let history = History {
            system_identifier: 1,
            timeline: 3,
        };
        for (index, expected) in [(0, 0), (0, 0), (1, 1), (1, 1), (0, 2)] {
            servers.move_to(index, history);
            assert_eq!(servers.discontinuities(), expected);
        }
    }
}
