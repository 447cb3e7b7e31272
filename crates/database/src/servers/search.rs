//! Search for the primary among several servers.

use std::io;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection};
use tokio::time::{Instant, sleep_until, timeout};

use super::ANSWER_TIMEOUT;
use super::history::read_history;
use crate::error::{describe, is_transient};

/// How long other servers have to show a higher timeline after the first primary has answered.
const RIVAL_TIMEOUT: Duration = Duration::from_millis(200);

/// Asks all servers at once. The `known` primary is taken as soon as it answers, another one if none of the others shows a
/// higher timeline: a former primary that was not shut down has a lower one.
pub(super) async fn search(
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
        let timeline = read_history(&mut connection).await?.timeline;
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
pub(super) fn address(options: &PgConnectOptions) -> String {
    let host = options.get_host();
    match options.get_socket() {
        Some(directory) => format!("{}:{}", directory.display(), options.get_port()),
        None if host.contains(':') => format!("[{host}]:{}", options.get_port()),
        None => format!("{host}:{}", options.get_port()),
    }
}
