//! What is asked for at once goes together: one transaction, and one wait for the disk, for all of it.
//!
//! Whoever asks stands in a line; each desk takes all that stand there, does it, and looks again. So one that comes alone
//! waits for nobody, and the more there are the less each costs.
//!
//! Rule: nobody waits for another's trouble. What takes more than the others have time for, and whatever went together with
//! one that failed, goes on alone.

use std::future::Future;
use std::sync::Arc;

use sqlx::PgPool;
use tokio::sync::{Mutex, mpsc, oneshot};
use vouchsafe_actors::store::Unavailable;

use super::error::{may_pass, unavailable};
use super::{PgStore, on};

/// How many go together at most: bounds how long the first of them waits.
const MAX_TOGETHER: usize = 32;

/// How many desks there are: while one waits for the disk the other reads.
const DESKS: usize = 2;

/// What can be done for many at once.
pub(super) trait Errand: Clone + Send + Sync + 'static {
    /// What is asked for.
    type Request: Clone + Send + 'static;
    /// What comes of it.
    type Answer: Send + 'static;

    /// Does it for all of them, an answer each; `None` for one that goes on alone.
    fn together(
        self,
        pool: PgPool,
        requests: Vec<Self::Request>,
    ) -> impl Future<Output = Result<Vec<Option<Self::Answer>>, sqlx::Error>> + Send;

    /// Does it for one, from the beginning.
    fn alone(
        self,
        pool: PgPool,
        request: Self::Request,
    ) -> impl Future<Output = Result<Self::Answer, sqlx::Error>> + Send;
}

/// A request, and whoever waits for its answer.
struct Asked<E: Errand> {
    request: E::Request,
    answer: oneshot::Sender<Result<E::Answer, Unavailable>>,
}

/// Where requests come in. Clones share one line.
#[derive(Debug)]
pub(super) struct Line<E: Errand> {
    // Its length is bounded by those who ask: actors and requests, of which there are limits.
    line: mpsc::UnboundedSender<Asked<E>>,
}

impl<E: Errand> Clone for Line<E> {
    fn clone(&self) -> Self {
        Self {
            line: self.line.clone(),
        }
    }
}

impl<E: Errand> Line<E> {
    /// A line with its desks; their work ends with its last clone.
    pub(super) fn of(store: &PgStore, errand: &E) -> Self {
        let (line, asked) = mpsc::unbounded_channel();
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..DESKS {
            let desk = Desk {
                store: store.clone(),
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
        if self.line.send(Asked { request, answer }).is_err() {
            return gone();
        }
        answered.await.unwrap_or_else(|_| gone())
    }
}

/// Serves the line.
struct Desk<E> {
    store: PgStore,
    errand: E,
}

impl<E: Errand> Desk<E> {
    async fn serve(&self, asked: &Mutex<mpsc::UnboundedReceiver<Asked<E>>>) {
        let mut together = Vec::new();
        while asked.lock().await.recv_many(&mut together, MAX_TOGETHER).await > 0 {
            together.retain(|asked| !asked.answer.is_closed());
            if together.is_empty() {
                continue;
            }
            let Some(error) = self.serve_together(std::mem::take(&mut together)).await else {
                continue;
            };
            // Who stands in the line fares no better, and is not to wait for the same again. Where the other desk looks at the
            // line, nobody stands in it.
            if let Ok(mut asked) = asked.try_lock() {
                while let Ok(asked) = asked.try_recv() {
                    drop(asked.answer.send(Err(error.clone())));
                }
            }
        }
    }

    /// Says what is wrong if the database cannot be reached.
    async fn serve_together(&self, together: Vec<Asked<E>>) -> Option<Unavailable> {
        let requests = together.iter().map(|asked| asked.request.clone()).collect();
        let errand = self.errand.clone();
        let done = self.store.run(move |pool| errand.together(pool, requests)).await;
        match done {
            Ok(answers) => {
                for (asked, answer) in together.into_iter().zip(answers) {
                    match answer {
                        // Nobody need be there any more.
                        Some(answer) => drop(asked.answer.send(Ok(answer))),
                        None => self.go_on_alone(asked),
                    }
                }
                None
            }
            Err(error) if may_pass(&error) => {
                let error = unavailable(&error);
                for asked in together {
                    drop(asked.answer.send(Err(error.clone())));
                }
                Some(error)
            }
            Err(_) => {
                together.into_iter().for_each(|asked| self.go_on_alone(asked));
                None
            }
        }
    }

    fn go_on_alone(&self, Asked { request, answer }: Asked<E>) {
        let errand = self.errand.clone();
        let done = self.store.run(move |pool| errand.alone(pool, request));
        drop(on(&self.store.runtime, async move {
            let done = done.await.map_err(|error| unavailable(&error));
            drop(answer.send(done));
            Ok(())
        }));
    }
}
