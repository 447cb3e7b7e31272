//! Open consoles: each follows the live feed, and loads the overview and the page of actors every few
//! seconds.

use std::fmt;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::idle_actors::count_actors;
use crate::audit::Check;
use crate::deployment::TestDeployment;
use crate::deployment::operator::Operator;
use crate::stoppable_thread::{StopSignal, StoppableThread};
use crate::traffic::scenario::OpenConsoles;

/// Pages that a console loads in turn.
const PAGES: [&str; 2] = ["/", "/actors"];

/// Time between two loads of a page.
const PAGE_INTERVAL: Duration = Duration::from_secs(2);

/// How often the thread of the consoles looks whether it has to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// An event of the feed begins with it.
const EVENT: &[u8] = b"event: sample";

/// What all consoles received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ConsoleTally {
    /// Events of the live feeds.
    pub events: u64,
    /// Loaded pages.
    pub pages: u64,
    /// Seconds for which the consoles were open.
    pub seconds: f64,
}

impl ConsoleTally {
    /// Reason for a run in which the consoles did not get what they show: an event per second and half of the
    /// pages.
    fn rejection_reason(&self, consoles: u32) -> Option<String> {
        let seconds = self.seconds * f64::from(consoles);
        let is_complete = self.events as f64 >= 0.8 * seconds - f64::from(consoles)
            && self.pages as f64 >= 0.5 * seconds / PAGE_INTERVAL.as_secs_f64();
        (!is_complete).then(|| format!("{consoles} {self}"))
    }
}

impl fmt::Display for ConsoleTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            events,
            pages,
            seconds,
        } = self;
        write!(f, "consoles: {events} events and {pages} pages in {seconds:.0} s")
    }
}

/// Checks that the consoles received what they show, and that all actors were live: an absent console costs
/// nothing.
pub(crate) async fn check_consoles(
    operator: &mut Operator,
    expected: OpenConsoles,
    tally: &ConsoleTally,
) -> Check {
    let result = match count_actors(operator).await {
        Err(error) => Err(error.to_string()),
        Ok(actors) if actors < u64::from(expected.idle_actors) => {
            Err(format!("{actors} of {} actors live", expected.idle_actors))
        }
        Ok(actors) => match tally.rejection_reason(expected.count) {
            Some(reason) => Err(reason),
            None => Ok(format!("{actors} live actors, {tally}")),
        },
    };
    Check::new("consoles served", result)
}

impl AddAssign for ConsoleTally {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.pages += other.pages;
    }
}

/// Consoles on a thread of their own, apart from the load.
pub(crate) struct Consoles(StoppableThread<anyhow::Result<ConsoleTally>>);

impl Consoles {
    pub(crate) fn open(deployment: &TestDeployment, count: u32) -> anyhow::Result<Self> {
        let (url, token) = (deployment.admin_url(), deployment.operator_token()?);
        let run = move |stop: StopSignal| {
            let runtime = crate::runtime::new_runtime()?;
            runtime.block_on(run_consoles(&url, &token, count, &stop))
        };
        Ok(Self(StoppableThread::start("consoles", run)?))
    }

    /// Closes the consoles.
    ///
    /// # Errors
    /// If a console was refused.
    pub(crate) fn close(self) -> anyhow::Result<ConsoleTally> {
        self.0.stop()
    }
}

async fn run_consoles(url: &str, token: &str, count: u32, stop: &StopSignal) -> anyhow::Result<ConsoleTally> {
    let started = Instant::now();
    let until_stopped = async {
        // Looks without waiting: the consoles share the thread.
        while !stop.is_stopped_within(Duration::ZERO) {
            sleep(STOP_INTERVAL).await;
        }
    };
    let tallies = (0..count)
        .map(|_| std::cell::Cell::new(ConsoleTally::default()))
        .collect::<Vec<_>>();
    let consoles = tallies.iter().map(|tally| async move {
        tokio::try_join!(follow_feed(url, token, tally), load_pages(url, token, tally))
    });
    tokio::select! {
        ended = futures_util::future::try_join_all(consoles) => drop(ended?),
        () = until_stopped => {}
    }
    let mut sum = ConsoleTally::default();
    for tally in &tallies {
        sum += tally.get();
    }
    sum.seconds = started.elapsed().as_secs_f64();
    Ok(sum)
}

type Tally = std::cell::Cell<ConsoleTally>;

/// Follows the feed, and connects again when it ends, as a browser does.
async fn follow_feed(url: &str, token: &str, tally: &Tally) -> anyhow::Result<()> {
    let address = url
        .strip_prefix("http://")
        .context("the admin URL has another form")?;
    let request = format!(
        "GET /admin/v1/live HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\naccept: text/event-stream\r\n\r\n"
    );
    loop {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut received = Vec::new();
        let mut is_first = true;
        while stream.read_buf(&mut received).await? > 0 {
            if std::mem::take(&mut is_first) {
                let head = String::from_utf8_lossy(&received);
                ensure!(
                    head.starts_with("HTTP/1.1 200 "),
                    "the live feed was refused: {head}"
                );
            }
            let events = received
                .windows(EVENT.len())
                .filter(|window| *window == EVENT)
                .count();
            let mut counted = tally.get();
            counted.events += events as u64;
            tally.set(counted);
            // The beginning of an event that is not complete stays.
            let rest = received.len().saturating_sub(EVENT.len() - 1);
            received.drain(..rest);
        }
    }
}

async fn load_pages(url: &str, token: &str, tally: &Tally) -> anyhow::Result<()> {
    let mut operator = Operator::new(url, token)?;
    loop {
        for page in PAGES {
            let loaded = timeout(Duration::from_secs(30), operator.get(page)).await;
            let response = loaded.with_context(|| format!("{page} was not loaded"))??;
            ensure!(!response.body.is_empty(), "{page} is empty");
            let mut counted = tally.get();
            counted.pages += 1;
            tally.set(counted);
            sleep(PAGE_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_counts_only_if_the_consoles_received_what_they_show() {
        let received = |events, pages| ConsoleTally {
            events,
            pages,
            seconds: 10.0,
        };
        assert_eq!(received(95, 50).rejection_reason(10), None);
        for (events, pages) in [(60, 50), (95, 20)] {
            assert!(
                received(events, pages).rejection_reason(10).is_some(),
                "{events} {pages}"
            );
        }
    }
}
