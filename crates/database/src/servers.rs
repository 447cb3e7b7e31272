//! Failover between the servers of `DATABASE_URL`: which of them is the primary, and connections that follow it.
//!
//! | Event | Effect |
//! |---|---|
//! | start | all servers are asked at once; of several primaries, the one with the highest timeline is taken |
//! | the primary closes the connection of the watch, or does not answer within a second | all servers are asked again; the known primary is kept as soon as it answers |
//! | another server is the primary | work on connections to the former one is aborted with an unknown outcome, and new connections lead to the new one |
//! | a server is in recovery | it counts as unreachable |
//!
//! The watch exists only with several servers. Behind one address, that of a proxy, connections end when the primary changes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Executor as _, PgConnection, Row as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use super::boxed;
use super::error::{describe, is_transient};

/// For a server to accept a connection and to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Between two questions to a primary that answers.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// Between two searches that found no primary.
const SEARCH_INTERVAL: Duration = Duration::from_millis(200);

/// How long other servers have to show a higher timeline after the first primary has answered.
const RIVAL_TIMEOUT: Duration = Duration::from_millis(200);

/// The timeline comes from the WAL position: the control file has a new one only after a checkpoint.
const STATUS: &str = "SELECT pg_is_in_recovery() AS is_in_recovery,
                             CASE WHEN pg_is_in_recovery() THEN 0
                                  ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint
                              END AS timeline";

/// The servers of `DATABASE_URL`. Clones share the knowledge which of them is the primary.
#[derive(Debug, Clone)]
pub struct Servers {
    options: Arc<[PgConnectOptions]>,
    /// Whether a command asks a server whether it is the primary before it uses it.
    is_primary_required: bool,
    primary: Arc<watch::Sender<Primary>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Primary {
    /// `None` until the first search has found one.
    index: Option<usize>,
    /// How many times a search has found another primary than before.
    moves: u64,
}

/// The server accepts no writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server is in recovery: a standby, or a former primary")]
struct InRecovery;

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
        }
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
    /// [`sqlx::Error::Io`] if no server is the primary, or the error with which all servers refuse a connection.
    #[boxed]
    pub async fn find_primary(&self) -> Result<PgConnectOptions, sqlx::Error> {
        if !self.is_primary_required {
            return Ok(self.options[0].clone());
        }
        let (index, connection) = search(&self.options, None).await?;
        drop(connection);
        Ok(self.options[index].clone())
    }

    /// Opens a connection to the primary. Waits for the first one, and tries a new one as soon as there is one.
    ///
    /// # Errors
    /// [`sqlx::Error`] if the primary accepts no connection, or is in recovery.
    #[boxed]
    pub async fn connect(&self) -> Result<(PgConnection, PrimaryWatch), sqlx::Error> {
        loop {
            let watch = self.watch().await;
            let connecting = async {
                let mut connection = watch.options(self).connect().await?;
                check_primary(&mut connection).await?;
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

    pub(crate) fn are_several(&self) -> bool {
        self.options.len() > 1
    }

    /// Follows the primary; never returns.
    pub(crate) async fn run_watch(self) {
        let mut connection: Option<PgConnection> = None;
        let mut is_reported = false;
        loop {
            if let Some(open) = &mut connection
                && matches!(timeout(ANSWER_TIMEOUT, check_primary(open)).await, Ok(Ok(())))
            {
                sleep(WATCH_INTERVAL).await;
                continue;
            }
            connection = None;
            let known = self.primary.borrow().index;
            match search(&self.options, known).await {
                Ok((index, found)) => {
                    self.adopt(index);
                    connection = Some(found);
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

    fn adopt(&self, index: usize) {
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

/// Checks that the server of a new connection is no standby.
///
/// # Errors
/// [`sqlx::Error::Io`] if it is one, another error if it does not answer.
pub(crate) async fn check_primary(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    read_timeline(connection).await.map(drop)
}

async fn read_timeline(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    // Not prepared: one round trip.
    let status = connection.fetch_one(STATUS).await?;
    if status.try_get("is_in_recovery")? {
        // As a closed port: nothing was done, and the server may become the primary.
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, InRecovery).into());
    }
    status.try_get("timeline")
}

/// Asks all servers at once. The `known` primary is taken as soon as it answers, another one if none of the others shows a
/// higher timeline: a former primary that was not shut down has a lower one.
async fn search(
    options: &[PgConnectOptions],
    known: Option<usize>,
) -> Result<(usize, PgConnection), sqlx::Error> {
    let mut answers: FuturesUnordered<_> = options
        .iter()
        .enumerate()
        .map(|(index, options)| Box::pin(async move { (index, ask(options).await) }))
        .collect();
    let mut found: Option<(i64, usize, PgConnection)> = None;
    let mut failures = Vec::new();
    let mut end = None;
    loop {
        let answer = match end {
            None => answers.next().await,
            Some(end) => tokio::select! {
                biased;
                answer = answers.next() => answer,
                () = sleep_until(end) => None,
            },
        };
        match answer {
            None => break,
            Some((index, Ok((_, connection)))) if known == Some(index) => return Ok((index, connection)),
            Some((index, Ok((timeline, connection)))) => {
                if found.as_ref().is_none_or(|(highest, ..)| *highest < timeline) {
                    found = Some((timeline, index, connection));
                }
                end.get_or_insert_with(|| Instant::now() + RIVAL_TIMEOUT);
            }
            Some((index, Err(error))) => failures.push((index, error)),
        }
    }
    match found {
        Some((_, index, connection)) => Ok((index, connection)),
        None => Err(no_primary(options, failures)),
    }
}

async fn ask(options: &PgConnectOptions) -> Result<(i64, PgConnection), sqlx::Error> {
    let answer = timeout(ANSWER_TIMEOUT, async {
        let mut connection = options.connect().await?;
        let timeline = read_timeline(&mut connection).await?;
        Ok((timeline, connection))
    });
    answer.await.unwrap_or_else(|_| {
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()),
        )
        .into())
    })
}

/// If no repetition can help, as with a wrong password, the error of a server is that of the search. Otherwise it says what each server
/// answered.
fn no_primary(options: &[PgConnectOptions], failures: Vec<(usize, sqlx::Error)>) -> sqlx::Error {
    let answers: Vec<String> = failures
        .iter()
        .map(|(index, error)| format!("{}: {}", address(&options[*index]), describe(error)))
        .collect();
    if !failures.iter().any(|(_, error)| is_transient(error))
        && let Some((_, error)) = failures.into_iter().next()
    {
        return error;
    }
    let text = format!(
        "no server of DATABASE_URL is the primary ({})",
        answers.join("; ")
    );
    io::Error::new(io::ErrorKind::ConnectionRefused, text).into()
}

/// As in `DATABASE_URL`, without secrets.
fn address(options: &PgConnectOptions) -> String {
    let host = options.get_host();
    match options.get_socket() {
        Some(directory) => format!("{}:{}", directory.display(), options.get_port()),
        None if host.contains(':') => format!("[{host}]:{}", options.get_port()),
        None => format!("{host}:{}", options.get_port()),
    }
}
