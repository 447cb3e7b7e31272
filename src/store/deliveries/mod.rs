//! Deliveries in Postgres: the outbox of the delivery actors, and what partners and operators see of it.
//!
//! | part | question |
//! |---|---|
//! | `take` | who delivers to an endpoint, and which endpoints have something to do? |
//! | `turn` | what does an actor write, and in which order? |
//! | `sequence` | which delivery of an order is due? |
//! | `page` | what does it read? |
//! | `walk` | which events past what was read are next? |
//! | `list` | what is shown? |
//! | `replay` | what is sent again? |
//!
//! Rule: a lease is a number and whose it is. Every write is made under it, in the transaction that finds it unchanged.

pub(super) mod list;
mod page;
mod replay;
mod sequence;
mod take;
mod turn;
mod walk;

use std::sync::Arc;

use sqlx::postgres::types::PgInterval;
use tokio::sync::Semaphore;
use vouchsafe_actors::delivery::outbox::{Opened, Outbox, Page, Turn};
use vouchsafe_actors::domain::ids::WebhookId;
use vouchsafe_actors::store::{StoreFuture, Unavailable};

use self::turn::Holder;
use super::error::unavailable;
use super::nodes::NodeIdentity;
use super::{PgNode, PgStore};

pub use list::{DeliveryFilter, DeliveryState, ShownDelivery};
pub use replay::{MAX_REPLAYED, ReplayWish, Replayed};
pub use take::Look;

/// How many connections read for endpoints that take what they get. With the two below, all that deliveries use: the rest of
/// the pool is for requests.
const READING_CONNECTIONS: usize = 3;

/// How many take endpoints. Apart from the next, so that one that was idle begins while a thousand others give up.
const TAKING_CONNECTIONS: usize = 1;

/// How many write rows, of what failed or is tried again: a thousand endpoints that hang give up at the same moments, and
/// those that take what they get do not wait for them.
const WRITING_CONNECTIONS: usize = 1;

/// The outbox of one node.
#[derive(Debug, Clone)]
pub struct PgOutbox {
    store: PgStore,
    node: NodeIdentity,
    reading: Arc<Semaphore>,
    taking: Arc<Semaphore>,
    writing: Arc<Semaphore>,
}

impl PgOutbox {
    /// Under the identity of this node.
    #[must_use]
    pub fn new(node: &PgNode) -> Self {
        Self {
            store: PgStore::clone(node),
            node: node.identity().clone(),
            reading: Arc::new(Semaphore::new(READING_CONNECTIONS)),
            taking: Arc::new(Semaphore::new(TAKING_CONNECTIONS)),
            writing: Arc::new(Semaphore::new(WRITING_CONNECTIONS)),
        }
    }
}

impl Outbox for PgOutbox {
    fn take(&self, webhook_id: WebhookId) -> StoreFuture<'_, Result<Option<Opened>, Unavailable>> {
        Box::pin(async move {
            let _connection = self.taking.acquire().await.ok();
            let node = self.node.clone();
            let taken = self
                .store
                .run(move |pool| async move { take::take(&pool, webhook_id, &node).await });
            taken.await.map_err(|error| unavailable(&error))
        })
    }

    fn turn(&self, webhook_id: WebhookId, turn: Turn) -> StoreFuture<'_, Result<Option<Page>, Unavailable>> {
        Box::pin(async move {
            let connections = if turn.has_rows() {
                &self.writing
            } else {
                &self.reading
            };
            let _connection = connections.acquire().await.ok();
            let holder = Holder {
                webhook_id,
                lease: turn.lease,
                node: self.node.clone(),
            };
            let turned = self
                .store
                .run(move |pool| async move { turn::turn(&pool, &holder, turn).await });
            turned.await.map_err(|error| unavailable(&error))
        })
    }
}

/// A span of time, as SQL takes it.
fn interval(span: std::time::Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(span.as_micros()).unwrap_or(i64::MAX),
    }
}
