//! Search for the primary among several servers.

use std::io;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use sqlx::PgConnection;
use sqlx::postgres::PgConnectOptions;
use tokio::time::{Instant, sleep_until, timeout};

use super::ANSWER_TIMEOUT;
use super::history::{History, read_history};
use crate::error::{describe, is_transient};
use crate::session::open;

/// How long a standby that was promoted has to answer after the known primary has answered again.
const RIVAL_TIMEOUT: Duration = Duration::from_millis(200);

/// A server that accepts writes.
pub(super) struct FoundPrimary {
    pub(super) index: usize,
    pub(super) history: History,
    pub(super) connection: PgConnection,
}

/// Asks all servers at once. A successor of the `known` primary is taken as soon as it answers, else the
/// known one itself. Without one, the server with the highest timeline is taken once all have answered: a
/// former primary that was not shut down has a lower one. Another cluster has nothing of what this one has
/// committed: its primary is not taken for the known one, and two clusters are an error.
pub(super) async fn search(
    options: &[PgConnectOptions],
    known: Option<(usize, History)>,
) -> Result<FoundPrimary, sqlx::Error> {
    let mut answers = ask_all(options, None);
    let mut found: Option<FoundPrimary> = None;
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
        let (index, answer) = match answer {
            None => break,
            Some(answer) => answer,
        };
        let candidate = match answer {
            Ok((history, connection)) => FoundPrimary {
                index,
                history,
                connection,
            },
            Err(error) => {
                failures.push((index, error));
                continue;
            }
        };
        match known {
            Some((_, last)) if candidate.history.succeeds(last) => return Ok(candidate),
            Some((last_index, last)) if index != last_index && !candidate.history.is_of_cluster(last) => {
                failures.push((index, other_cluster()));
            }
            Some((last_index, _)) if index == last_index => {
                end = Some(Instant::now() + RIVAL_TIMEOUT);
                found = Some(candidate);
            }
            _ => {
                if let Some(found) = &found
                    && !candidate.history.is_of_cluster(found.history)
                {
                    failures.extend([found.index, index].map(|index| (index, other_cluster())));
                    return Err(no_primary(options, failures));
                }
                let is_known = found
                    .as_ref()
                    .is_some_and(|found| known.is_some_and(|(last, _)| last == found.index));
                let is_newer = found
                    .as_ref()
                    .is_none_or(|found| candidate.history.timeline > found.history.timeline);
                if !is_known && is_newer {
                    found = Some(candidate);
                }
            }
        }
    }
    found.ok_or_else(|| no_primary(options, failures))
}

/// Asks the servers other than the known primary, which still answers, for its successor: a primary that was
/// cut off from the tool that promotes does not know that it has one.
pub(super) async fn find_successor(
    options: &[PgConnectOptions],
    (known, history): (usize, History),
) -> Option<FoundPrimary> {
    let mut answers = ask_all(options, Some(known));
    while let Some((index, answer)) = answers.next().await {
        if let Ok((found, connection)) = answer
            && found.succeeds(history)
        {
            return Some(FoundPrimary {
                index,
                history: found,
                connection,
            });
        }
    }
    None
}

type Answer = (usize, Result<(History, PgConnection), sqlx::Error>);

fn ask_all(
    options: &[PgConnectOptions],
    except: Option<usize>,
) -> FuturesUnordered<impl Future<Output = Answer>> {
    let asked = options
        .iter()
        .enumerate()
        .filter(|(index, _)| Some(*index) != except);
    asked
        .map(|(index, options)| Box::pin(async move { (index, ask(options).await) }))
        .collect()
}

async fn ask(options: &PgConnectOptions) -> Result<(History, PgConnection), sqlx::Error> {
    let answer = timeout(ANSWER_TIMEOUT, async {
        let mut connection = open(options).await?;
        let history = read_history(&mut connection).await?;
        Ok((history, connection))
    });
    answer.await.unwrap_or_else(|_| {
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()),
        )
        .into())
    })
}

fn other_cluster() -> sqlx::Error {
    let text = "the primary of another cluster; name one primary and its standbys";
    io::Error::new(io::ErrorKind::ConnectionRefused, text).into()
}

/// If no repetition can help, as with a wrong password, the error of a server is that of the search.
/// Otherwise it says what each server answered.
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
pub(crate) fn address(options: &PgConnectOptions) -> String {
    let host = options.get_host();
    match options.get_socket() {
        Some(directory) => format!("{}:{}", directory.display(), options.get_port()),
        None if host.contains(':') => format!("[{host}]:{}", options.get_port()),
        None => format!("{host}:{}", options.get_port()),
    }
}
