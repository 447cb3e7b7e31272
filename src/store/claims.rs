//! Claims of stock that come at once are made together: one transaction, and one wait for the disk, for all of them.
//!
//! After a start the first order of each SKU claims its stock. A catalogue of ten thousand would wait for as many commits.
//!
//! Rule: a claim waits for no other but those that are under way; what comes meanwhile goes together next.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc, oneshot};
use vouchsafe_actors::domain::stock::{ClaimedStock, StockRequest};
use vouchsafe_actors::store::Unavailable;

use super::error::unavailable;
use super::nodes::NodeIdentity;
use super::{PgStore, inventory, on};

/// How many are made together at most: bounds what a failure takes with it, and how long the first of them waits.
const MAX_TOGETHER: usize = 32;

/// How many such transactions are under way at most: while one waits for the disk the other reads.
const AT_ONCE: usize = 2;

/// A claim, and whoever waits for it.
struct Asked {
    request: StockRequest,
    answer: oneshot::Sender<Result<ClaimedStock, Unavailable>>,
}

/// Claims of one node. Clones share one line.
#[derive(Debug, Clone)]
pub(super) struct Claims {
    // Never longer than there are inventory actors: each has one claim under way.
    asked: mpsc::UnboundedSender<Asked>,
}

impl Claims {
    /// Claims for this node; its work ends with the last clone.
    pub(super) fn of(store: &PgStore, node: &NodeIdentity) -> Self {
        let (asked, line) = mpsc::unbounded_channel();
        let line = Arc::new(Mutex::new(line));
        for _ in 0..AT_ONCE {
            let (store, node, line) = (store.clone(), node.clone(), Arc::clone(&line));
            // Nobody waits for its end.
            drop(on(&store.runtime.clone(), async move {
                work(&store, &node, &line).await;
                Ok(())
            }));
        }
        Self { asked }
    }

    /// Claims stock; goes on to its end if nobody waits for it any more.
    pub(super) async fn claim(&self, request: StockRequest) -> Result<ClaimedStock, Unavailable> {
        let (answer, claimed) = oneshot::channel();
        let gone = || Err(unavailable(&sqlx::Error::WorkerCrashed));
        if self.asked.send(Asked { request, answer }).is_err() {
            return gone();
        }
        claimed.await.unwrap_or_else(|_| gone())
    }
}

async fn work(store: &PgStore, node: &NodeIdentity, line: &Mutex<mpsc::UnboundedReceiver<Asked>>) {
    let mut together = Vec::new();
    while line.lock().await.recv_many(&mut together, MAX_TOGETHER).await > 0 {
        let (requests, answers): (Vec<_>, Vec<_>) = together
            .drain(..)
            .map(|asked| (asked.request, asked.answer))
            .unzip();
        let node = node.clone();
        let claimed = store
            .run(move |pool| async move { inventory::claim(&pool, &node, &requests).await })
            .await;
        match claimed {
            Ok(claimed) => {
                for (answer, claimed) in answers.into_iter().zip(claimed) {
                    // Its shelf is gone: what was claimed for it is this node's, and is claimed again by the next.
                    drop(answer.send(Ok(claimed)));
                }
            }
            Err(error) => {
                for answer in answers {
                    drop(answer.send(Err(unavailable(&error))));
                }
            }
        }
    }
}
