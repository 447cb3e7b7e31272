//! What is asked for at once goes together: one statement, and one wait for the disk where it writes, for all of it.
//!
//! Whoever asks stands in a line; each desk takes all that stand there, does it, and looks again. So one that comes alone
//! waits for nobody, and the more there are the less each costs. What costs is to wake the server and to set a statement up,
//! much more than one request more in it; so where cores are wanted by others, too, a desk rests for some milliseconds before
//! it looks again. A desk has a connection of its own.
//!
//! Rule: nobody waits for another's trouble. What would hold the others up, and whatever went together with one that failed,
//! goes on alone; and who has stood in the line for longer than one waits for a connection is told so, not served.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use sqlx::PgPool;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, sleep};
use vouchsafe_actors::store::Unavailable;

use super::connections::{ACQUIRE_TIMEOUT, Connections, DEADLINE};
use super::error::unavailable;
use super::{PgStore, on};

/// What takes so long waits for a core or for the disk: with both to itself the server is done in half of the time.
const LONG: Duration = Duration::from_millis(1);

/// How long a desk rests at first when that took long and others stand there already: longer each time, and less when it
/// did not, or nobody does.
const SHORTEST_REST: Duration = Duration::from_millis(1);

/// How long it rests at most: short beside what an answer takes where it comes to that.
const LONGEST_REST: Duration = Duration::from_millis(4);

/// How long a desk that looks rows up waits for its connection: longer than the server lets a statement run there.
const LOOK_UP_DEADLINE: Duration = Duration::from_secs(3);

/// What a connection that looks rows up asks besides. Who has to wait for others waits a second at most, and then goes on
/// alone. A statement is planned once: with arrays for parameters the server would
/// plan it anew each time, which takes longer than the look. And it stays index probes, whatever the tables' sizes were when
/// that was done.
const LOOK_UPS: [(&str, &str); 6] = [
    ("statement_timeout", "1s"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];

/// What came of each request: an answer, an error of its own, or `None`, and it goes on alone.
pub(super) type Outcomes<A> = Vec<Option<Result<A, sqlx::Error>>>;

/// What the errands of a line do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// They write, by functions that say how they want to be planned. Two desks: while one waits for the disk the other
    /// goes on.
    Write,
    /// They look rows up. One desk: the more go together the less each costs.
    LookUp,
}

/// What can be done for many at once.
pub(super) trait BatchOp: Clone + Send + Sync + 'static {
    /// What is asked for.
    type Request: Clone + Send + 'static;
    /// What comes of it.
    type Answer: Send + 'static;

    /// How many go together at most: bounds how long the first of them waits, and what is read at once.
    const MOST: usize;

    /// Does it for all of them, in their order. An error of the whole means that nothing was done, as far as is known.
    fn together(
        self,
        pool: PgPool,
        requests: Vec<Self::Request>,
    ) -> impl Future<Output = Result<Outcomes<Self::Answer>, sqlx::Error>> + Send;

    /// Does it for one, from the beginning.
    fn alone(
        self,
        pool: PgPool,
        request: Self::Request,
    ) -> impl Future<Output = Result<Self::Answer, sqlx::Error>> + Send;
}

/// Which request a number of the server's means, which counts from 1.
pub(super) fn place(number: i32) -> Result<usize, sqlx::Error> {
    let place = usize::try_from(number)
        .ok()
        .and_then(|number| number.checked_sub(1));
    place.ok_or_else(|| sqlx::Error::Decode(format!("{number} is no request").into()))
}

/// A request, and whoever waits for its answer.
struct Asked<E: BatchOp> {
    request: E::Request,
    since: Instant,
    answer: oneshot::Sender<Result<E::Answer, Unavailable>>,
}

/// Where requests come in. Clones share one line.
#[derive(Debug)]
pub(super) struct Line<E: BatchOp> {
    // Its length is bounded by those who ask: actors and requests, of which there are limits.
    line: mpsc::UnboundedSender<Asked<E>>,
}

impl<E: BatchOp> Clone for Line<E> {
    fn clone(&self) -> Self {
        Self {
            line: self.line.clone(),
        }
    }
}

impl<E: BatchOp> Line<E> {
    /// A line with its desks; their work ends with its last clone.
    pub(super) fn of(store: &PgStore, errand: &E, kind: Kind) -> Self {
        let (line, asked) = mpsc::unbounded_channel();
        let asked = Arc::new(Mutex::new(asked));
        let (desks, settings, deadline) = match kind {
            Kind::Write => (2, [].as_slice(), DEADLINE),
            Kind::LookUp => (1, LOOK_UPS.as_slice(), LOOK_UP_DEADLINE),
        };
        for _ in 0..desks {
            let desk = Desk {
                store: store.clone(),
                connection: Connections::new(store.session().options(settings.iter().copied()), 1, deadline),
                errand: errand.clone(),
            };
            let asked = Arc::clone(&asked);
            // Nobody waits for its end.
            drop(on(&store.runtime, async move {
                desk.serve(&asked).await;
                Ok(())
            }));
        }
        Self { line }
    }

    /// Asks; what was asked for is done to its end if nobody waits for it any more.
    pub(super) async fn ask(&self, request: E::Request) -> Result<E::Answer, Unavailable> {
        let (answer, answered) = oneshot::channel();
        let gone = || Err(unavailable(&sqlx::Error::WorkerCrashed));
        let since = Instant::now();
        if self
            .line
            .send(Asked {
                request,
                since,
                answer,
            })
            .is_err()
        {
            return gone();
        }
        answered.await.unwrap_or_else(|_| gone())
    }
}

/// Serves the line.
struct Desk<E> {
    /// For those that go on alone.
    store: PgStore,
    connection: Connections,
    errand: E,
}

impl<E: BatchOp> Desk<E> {
    async fn serve(&self, line: &Mutex<mpsc::UnboundedReceiver<Asked<E>>>) {
        let mut together = Vec::new();
        let mut rest = Duration::ZERO;
        while line.lock().await.recv_many(&mut together, E::MOST).await > 0 {
            // Who has gone away wants nothing any more, and who has waited for too long is told so.
            let (late, together): (Vec<_>, Vec<_>) = together
                .drain(..)
                .filter(|asked| !asked.answer.is_closed())
                .partition(|asked| asked.since.elapsed() > ACQUIRE_TIMEOUT);
            for asked in late {
                asked.answered(Err(sqlx::Error::PoolTimedOut));
            }
            let since = Instant::now();
            if !together.is_empty() {
                self.serve_together(together).await;
            }
            // Where another desk holds the line it waits there itself: nobody else does.
            let waiting = line.try_lock().map_or(0, |line| line.len());
            rest = rest_after(rest, since.elapsed(), waiting, E::MOST);
            if waiting > 0 {
                sleep(rest).await;
            }
        }
    }

    async fn serve_together(&self, together: Vec<Asked<E>>) {
        let requests = together.iter().map(|asked| asked.request.clone()).collect();
        let errand = self.errand.clone();
        let work = self.connection.run(move |pool| errand.together(pool, requests));
        let done = AssertUnwindSafe(work)
            .catch_unwind()
            .await
            .unwrap_or(Err(sqlx::Error::WorkerCrashed));
        match done {
            Ok(answers) => {
                for (asked, answer) in together.into_iter().zip(answers) {
                    match answer {
                        Some(answer) => asked.answered(answer),
                        None => self.go_on_alone(asked),
                    }
                }
            }
            // The database takes no connection: whoever went on alone would wait as long again.
            Err(sqlx::Error::PoolTimedOut) => {
                for asked in together {
                    asked.answered(Err(sqlx::Error::PoolTimedOut));
                }
            }
            Err(_) => together.into_iter().for_each(|asked| self.go_on_alone(asked)),
        }
    }

    fn go_on_alone(&self, asked: Asked<E>) {
        let (errand, request) = (self.errand.clone(), asked.request.clone());
        let done = self.store.run(move |pool| errand.alone(pool, request));
        drop(on(&self.store.runtime, async move {
            asked.answered(done.await);
            Ok(())
        }));
    }
}

/// How long a desk rests that rested so long before, then took so long, and finds so many in the line. For as many as go
/// together at most it does not wait.
fn rest_after(before: Duration, took: Duration, waiting: usize, most: usize) -> Duration {
    if waiting >= most {
        Duration::ZERO
    } else if waiting > 0 && took >= LONG {
        (before * 2).clamp(SHORTEST_REST, LONGEST_REST)
    } else if before > SHORTEST_REST {
        before / 2
    } else {
        Duration::ZERO
    }
}

impl<E: BatchOp> Asked<E> {
    /// Nobody need be there any more.
    fn answered(self, answer: Result<E::Answer, sqlx::Error>) {
        drop(self.answer.send(answer.map_err(|error| unavailable(&error))));
    }
}

#[cfg(test)]
mod tests;
