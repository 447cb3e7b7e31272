//! Decision timeout: bounds how long a flow waits for actors, and retries when an actor dies meanwhile.

use std::future::Future;
use std::time::Duration;

use actix::{Actor, Context, Handler, Message};
use tokio::time::Instant;

use super::{ActorRef, MailboxSlot, Reply};

/// How long a flow waits for all decisions of an order together: for other holds to settle, for an actor to
/// restart, for stock to be claimed, for earlier orders to be counted (contract §5, design: at most 2 s, then
/// 503).
pub const DECISION_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause before an actor that died or could not decide is asked again; avoids a busy loop.
const RETRY_DELAY: Duration = Duration::from_millis(10);

/// Why an actor made no decision. The request may be retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecisionError {
    #[error("no decision within {} ms; try again", DECISION_TIMEOUT.as_millis())]
    Timeout,
    #[error("too many requests wait for this decision; try again")]
    WaitQueueFull,
}

/// The time until which a flow waits for decisions.
#[derive(Debug, Clone, Copy)]
pub struct DecisionDeadline {
    at: Instant,
}

impl DecisionDeadline {
    #[must_use]
    pub fn start() -> Self {
        Self {
            at: Instant::now() + DECISION_TIMEOUT,
        }
    }

    /// Asks an actor until it replies or the deadline passes. `find` looks the actor up for each attempt,
    /// since it may have died. The reference that `find` returns keeps the actor from being evicted until it
    /// has replied.
    ///
    /// # Errors
    /// [`DecisionError`].
    pub async fn ask<A, M, R>(
        &self,
        find: impl Fn() -> Option<ActorRef<A>>,
        message: impl Fn(MailboxSlot) -> M,
    ) -> Result<R, DecisionError>
    where
        A: Actor<Context = Context<A>> + Handler<M>,
        M: Message<Result = Reply<R>> + Send + 'static,
        R: Send + 'static,
    {
        loop {
            if let Some(actor) = find() {
                let message = message(actor.lineage.metrics.enqueue());
                match self.with_timeout(actor.addr.send(message)).await? {
                    Ok(Reply::Now(reply)) => return Ok(reply),
                    Ok(Reply::Later(reply)) => {
                        if let Ok(reply) = self.with_timeout(reply).await? {
                            return Ok(reply);
                        }
                    }
                    Ok(Reply::WaitQueueFull) => return Err(DecisionError::WaitQueueFull),
                    // The actor died; `find` returns its successor.
                    Err(_) => {}
                }
            }
            self.wait_before_retry().await?;
        }
    }

    /// Pauses before an actor is asked again.
    ///
    /// # Errors
    /// [`DecisionError::Timeout`] if the deadline passes meanwhile.
    pub async fn wait_before_retry(&self) -> Result<(), DecisionError> {
        self.with_timeout(tokio::time::sleep(RETRY_DELAY)).await
    }

    /// Waits for a future until the deadline.
    ///
    /// # Errors
    /// [`DecisionError::Timeout`] if the deadline passes first; the future is then dropped.
    pub(crate) async fn with_timeout<T>(&self, future: impl Future<Output = T>) -> Result<T, DecisionError> {
        tokio::time::timeout_at(self.at, future)
            .await
            .map_err(|_| DecisionError::Timeout)
    }
}

#[cfg(test)]
mod tests {
    use actix::{MessageResult, ResponseFuture};
    use tokio::sync::oneshot;
    use tokio::task::LocalSet;

    use super::*;
    use crate::supervisor::{Directory, Lineage, Spawner};

    /// An actor that never finishes a message, or never replies.
    struct Slow {
        _lineage: Lineage,
        pending_replies: Vec<oneshot::Sender<()>>,
    }

    impl Actor for Slow {
        type Context = Context<Self>;
    }

    struct HandleForever(#[allow(dead_code)] MailboxSlot);

    impl Message for HandleForever {
        type Result = Reply<()>;
    }

    impl Handler<HandleForever> for Slow {
        type Result = ResponseFuture<Reply<()>>;

        fn handle(&mut self, _: HandleForever, _: &mut Self::Context) -> Self::Result {
            Box::pin(std::future::pending())
        }
    }

    struct ReplyNever(#[allow(dead_code)] MailboxSlot);

    impl Message for ReplyNever {
        type Result = Reply<()>;
    }

    impl Handler<ReplyNever> for Slow {
        type Result = MessageResult<ReplyNever>;

        fn handle(&mut self, _: ReplyNever, _: &mut Self::Context) -> Self::Result {
            let (pending_replies, reply) = oneshot::channel();
            self.pending_replies.push(pending_replies);
            MessageResult(Reply::Later(reply))
        }
    }

    fn slow_actors() -> Directory<u32, Slow> {
        let make = |_, lineage| Slow {
            _lineage: lineage,
            pending_replies: Vec::new(),
        };
        Directory::new(Spawner::CurrentThread, make).with_capacity(1)
    }

    #[tokio::test(start_paused = true)]
    async fn deadline_bounds_handling_and_deferred_reply() {
        let test = async {
            let (directory, started_at) = (slow_actors(), Instant::now());
            let result = DecisionDeadline::start()
                .ask(|| directory.get(&1), HandleForever)
                .await;
            assert_eq!(
                (result, started_at.elapsed()),
                (Err(DecisionError::Timeout), DECISION_TIMEOUT)
            );
            let result = DecisionDeadline::start()
                .ask(|| directory.get(&1), ReplyNever)
                .await;
            assert_eq!(
                (result, started_at.elapsed()),
                (Err(DecisionError::Timeout), 2 * DECISION_TIMEOUT)
            );
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn actor_with_pending_reply_is_not_evicted() {
        let test = async {
            let directory = slow_actors();
            let deadline = DecisionDeadline::start();
            let result = deadline.ask(|| directory.get(&1), ReplyNever);
            let another = async {
                tokio::time::sleep(DECISION_TIMEOUT / 2).await;
                directory.get(&2).is_some()
            };
            let (_, room) = tokio::join!(result, another);
            assert!(!room, "the only actor has a pending reply");
            assert!(directory.get(&2).is_some(), "the first request has timed out");
        };
        LocalSet::new().run_until(test).await;
    }
}
