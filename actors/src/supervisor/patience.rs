//! How long a flow waits for an actor's decision, and what it does when the actor dies meanwhile.

use std::future::Future;
use std::time::Duration;

use actix::{Actor, Context, Handler, Message};
use tokio::time::Instant;

use super::{Found, Queued, Reply};

/// How long a flow waits for decisions, all of an order's together: for holds of others to settle, for an actor to be
/// rebuilt, for stock to be claimed (contract §5, design: 2 s at most, then 503).
pub const DECISION_PATIENCE: Duration = Duration::from_secs(2);

/// How soon an actor is asked again that died, or could not say it yet, so that nobody spins.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Why an actor has decided nothing. It may be asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    /// No decision came in time.
    #[error("no decision within {} ms", DECISION_PATIENCE.as_millis())]
    TooLong,
    /// As many wait for the actor as may.
    #[error("too many wait for this decision")]
    Crowded,
}

/// A point in time up to which a flow waits.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    ends: Instant,
}

impl Patience {
    /// Begins to wait now.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            ends: Instant::now() + DECISION_PATIENCE,
        }
    }

    /// Asks an actor until it answers, but no longer than patience lasts; `find` finds it anew each time, since it may
    /// have died. Nobody makes room of an actor that is found here until it has answered.
    ///
    /// # Errors
    /// [`Undecided`].
    pub async fn ask<A, M, R>(
        &self,
        find: impl Fn() -> Option<Found<A>>,
        message: impl Fn(Queued) -> M,
    ) -> Result<R, Undecided>
    where
        A: Actor<Context = Context<A>> + Handler<M>,
        M: Message<Result = Reply<R>> + Send + 'static,
        R: Send + 'static,
    {
        loop {
            if let Some(found) = find() {
                let message = message(found.lineage.meter.queue());
                match self.wait(found.addr.send(message)).await? {
                    Ok(Reply::Now(answer)) => return Ok(answer),
                    Ok(Reply::Later(answer)) => {
                        if let Ok(answer) = self.wait(answer).await? {
                            return Ok(answer);
                        }
                    }
                    Ok(Reply::Crowded) => return Err(Undecided::Crowded),
                    // It died, and is another one when it is found again.
                    Err(_) => {}
                }
            }
            self.rest().await?;
        }
    }

    /// Waits before an actor is asked again.
    ///
    /// # Errors
    /// [`Undecided::TooLong`], where patience ends meanwhile.
    pub async fn rest(&self) -> Result<(), Undecided> {
        self.wait(tokio::time::sleep(ASK_AGAIN_AFTER)).await
    }

    async fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, Undecided> {
        tokio::time::timeout_at(self.ends, future)
            .await
            .map_err(|_| Undecided::TooLong)
    }
}

#[cfg(test)]
mod tests {
    use actix::{MessageResult, ResponseFuture};
    use tokio::sync::oneshot;
    use tokio::task::LocalSet;

    use super::*;
    use crate::supervisor::{Directory, Lineage, Spawner};

    /// Never done with a message, or never with an answer.
    struct Slow {
        _lineage: Lineage,
        owed: Vec<oneshot::Sender<()>>,
    }

    impl Actor for Slow {
        type Context = Context<Self>;
    }

    struct TakeForEver(#[allow(dead_code)] Queued);

    impl Message for TakeForEver {
        type Result = Reply<()>;
    }

    impl Handler<TakeForEver> for Slow {
        type Result = ResponseFuture<Reply<()>>;

        fn handle(&mut self, _: TakeForEver, _: &mut Self::Context) -> Self::Result {
            Box::pin(std::future::pending())
        }
    }

    struct AnswerLater(#[allow(dead_code)] Queued);

    impl Message for AnswerLater {
        type Result = Reply<()>;
    }

    impl Handler<AnswerLater> for Slow {
        type Result = MessageResult<AnswerLater>;

        fn handle(&mut self, _: AnswerLater, _: &mut Self::Context) -> Self::Result {
            let (owed, answer) = oneshot::channel();
            self.owed.push(owed);
            MessageResult(Reply::Later(answer))
        }
    }

    fn slow() -> Directory<u32, Slow> {
        let make = |_, lineage| Slow {
            _lineage: lineage,
            owed: Vec::new(),
        };
        Directory::new(Spawner::Here, make).with_room_for(1)
    }

    #[tokio::test(start_paused = true)]
    async fn patience_bounds_the_question_as_well_as_the_answer() {
        let test = async {
            let (directory, began) = (slow(), Instant::now());
            let asked = Patience::begin().ask(|| directory.get(&1), TakeForEver).await;
            assert_eq!(
                (asked, began.elapsed()),
                (Err(Undecided::TooLong), DECISION_PATIENCE)
            );
            let asked = Patience::begin().ask(|| directory.get(&1), AnswerLater).await;
            assert_eq!(
                (asked, began.elapsed()),
                (Err(Undecided::TooLong), 2 * DECISION_PATIENCE)
            );
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_makes_room_of_an_actor_that_owes_an_answer() {
        let test = async {
            let directory = slow();
            let patience = Patience::begin();
            let asked = patience.ask(|| directory.get(&1), AnswerLater);
            let another = async {
                tokio::time::sleep(DECISION_PATIENCE / 2).await;
                directory.get(&2).is_some()
            };
            let (_, room) = tokio::join!(asked, another);
            assert!(!room, "the only place is one's that owes an answer");
            assert!(directory.get(&2).is_some(), "nobody waits for it any more");
        };
        LocalSet::new().run_until(test).await;
    }
}
