//! Claims of stock that come at once go together: one transaction, and one wait for the disk, for all of them.
//!
//! After a start the first order of each SKU claims its stock. A catalogue of ten thousand would wait for as many commits.
//!
//! Rule: nobody waits for another's trouble. What takes more than a round, and whatever went together with one that failed,
//! goes on alone.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc, oneshot};
use vouchsafe_actors::domain::stock::{ClaimedStock, StockRequest};
use vouchsafe_actors::store::Unavailable;

use super::error::{may_pass, unavailable};
use super::nodes::NodeIdentity;
use super::{PgStore, inventory, on};

/// How many go together at most: bounds how long the first of them waits.
const MAX_TOGETHER: usize = 32;

/// How many such transactions are under way at most: while one waits for the disk the other reads.
const AT_ONCE: usize = 2;

/// A claim, and whoever waits for it.
struct Asked {
    request: StockRequest,
    answer: oneshot::Sender<Result<ClaimedStock, Unavailable>>,
}

/// Where the claims of a node come in. Clones share one line.
#[derive(Debug, Clone)]
pub(super) struct Claims {
    // One for each inventory actor, of which there is a limit, and those of actors that are gone, which are passed over.
    line: mpsc::UnboundedSender<Asked>,
}

impl Claims {
    /// Claims for this node; its work ends with the last clone.
    pub(super) fn of(store: &PgStore, node: &NodeIdentity) -> Self {
        let (line, asked) = mpsc::unbounded_channel();
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..AT_ONCE {
            let desk = Desk {
                store: store.clone(),
                node: node.clone(),
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

    /// Claims stock; goes on to its end if nobody waits for it any more.
    pub(super) async fn claim(&self, request: StockRequest) -> Result<ClaimedStock, Unavailable> {
        let (answer, claimed) = oneshot::channel();
        let gone = || Err(unavailable(&sqlx::Error::WorkerCrashed));
        if self.line.send(Asked { request, answer }).is_err() {
            return gone();
        }
        claimed.await.unwrap_or_else(|_| gone())
    }
}

/// Serves the line.
struct Desk {
    store: PgStore,
    node: NodeIdentity,
}

impl Desk {
    async fn serve(&self, asked: &Mutex<mpsc::UnboundedReceiver<Asked>>) {
        let mut together = Vec::new();
        while asked.lock().await.recv_many(&mut together, MAX_TOGETHER).await > 0 {
            together.retain(|asked| !asked.answer.is_closed());
            if !together.is_empty() {
                self.claim_together(std::mem::take(&mut together)).await;
            }
        }
    }

    async fn claim_together(&self, together: Vec<Asked>) {
        let requests: Vec<_> = together.iter().map(|asked| asked.request.clone()).collect();
        let node = self.node.clone();
        let claimed = self
            .store
            .run(move |pool| async move { inventory::claim_in_one_round(&pool, &node, requests).await })
            .await;
        match claimed {
            Ok(claimed) => {
                for (asked, claimed) in together.into_iter().zip(claimed) {
                    match claimed {
                        // If its shelf is gone, the chunks are this node's, and come with the next claim.
                        Some(claimed) => drop(asked.answer.send(Ok(claimed))),
                        None => self.go_on_alone(asked),
                    }
                }
            }
            // Nobody fares better alone.
            Err(error) if may_pass(&error) => {
                for asked in together {
                    drop(asked.answer.send(Err(unavailable(&error))));
                }
            }
            Err(_) => together.into_iter().for_each(|asked| self.go_on_alone(asked)),
        }
    }

    /// From the beginning: what was taken for it is this node's, and comes again.
    fn go_on_alone(&self, Asked { request, answer }: Asked) {
        let node = self.node.clone();
        let claim = self
            .store
            .run(move |pool| async move { inventory::claim(&pool, &node, request).await });
        drop(on(&self.store.runtime, async move {
            let claimed = claim.await.map_err(|error| unavailable(&error));
            drop(answer.send(claimed));
            Ok(())
        }));
    }
}
