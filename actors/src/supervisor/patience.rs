//! How long a flow waits for an actor's decision, and what it does when the actor dies meanwhile.

use std::future::Future;
use std::time::Duration;

use actix::MailboxError;
use tokio::time::Instant;

use super::Reply;

/// How long a flow waits for decisions, all of an order's together: for holds of others to settle, for an actor to be
/// rebuilt, for stock to be claimed (contract §5, design: 2 s at most, then 503).
pub const DECISION_PATIENCE: Duration = Duration::from_secs(2);

/// How soon a dead actor is asked again, so that a key whose actor keeps dying does not spin.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// No decision came in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no decision within {} ms", DECISION_PATIENCE.as_millis())]
pub struct TooLong;

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

    /// Waits for `future`, but no longer than patience lasts.
    ///
    /// # Errors
    /// [`TooLong`].
    pub async fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, TooLong> {
        tokio::time::timeout_at(self.ends, future)
            .await
            .map_err(|_| TooLong)
    }

    /// Asks an actor until it answers; `ask` finds it anew each time, since it may have died.
    ///
    /// # Errors
    /// [`TooLong`].
    pub async fn ask<A, F>(&self, mut ask: impl FnMut() -> F) -> Result<A, TooLong>
    where
        F: Future<Output = Result<Reply<A>, MailboxError>>,
    {
        loop {
            match ask().await {
                Ok(Reply::Now(answer)) => return Ok(answer),
                Ok(Reply::Later(answer)) => {
                    if let Ok(answer) = self.wait(answer).await? {
                        return Ok(answer);
                    }
                }
                Err(MailboxError::Closed | MailboxError::Timeout) => {}
            }
            self.wait(tokio::time::sleep(ASK_AGAIN_AFTER)).await?;
        }
    }
}
