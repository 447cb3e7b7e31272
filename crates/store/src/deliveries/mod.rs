//! Webhook outbox in Postgres: leases, progress and retries of the delivery actors, and delivery lists and
//! replays.
//!
//! | module | purpose |
//! |---|---|
//! | `lease` | endpoint leases, and polling for due endpoints |
//! | `flush` | writes of a delivery actor |
//! | `sequence` | which delivery of an order is due |
//! | `endpoint` | keys and state of an endpoint |
//! | `page` | reads of a delivery actor |
//! | `due_rows` | rows of deliveries that are due |
//! | `scan` | events after the read position |
//! | `list` | delivery lists for partners and operators |
//! | `attempts` | log of attempts: batches of inserts, lists |
//! | `partitions` | partitions per day of the log of attempts |
//! | `replay` | repeated delivery on request |
//!
//! A lease consists of a number and its holder. Each write verifies the lease in its own transaction.

mod attempts;
mod due_rows;
mod endpoint;
mod flush;
mod lease;
pub(super) mod list;
mod page;
mod partitions;
mod replay;
mod scan;
mod sequence;

use std::sync::Arc;

use sqlx::postgres::types::PgInterval;
use tokio::sync::Semaphore;
use vouchsafe_actors::delivery::outbox::{DeliveryPage, FlushRequest, LeasedEndpoint, Outbox};
use vouchsafe_actors::ports::store::StoreFuture;
use vouchsafe_domain::ids::WebhookId;
use vouchsafe_domain::store_error::Unavailable;

use self::endpoint::LeaseHolder;
use super::node::PgNode;
use super::node_identity::NodeIdentity;
use vouchsafe_database::database::Database;

pub(super) use flush::make_waiting_due;
pub use lease::{DueEndpoint, EndpointRoster};
pub use partitions::{PartitionChanges, list_attempt_days};
pub use replay::{MAX_REPLAYED, ReplayOutcome};

/// Connections for reads of healthy endpoints. With the two below, one of the poller and one of the log of
/// attempts these are the connections of deliveries.
const READ_CONNECTIONS: usize = 3;

/// Separate from the write connection: an idle endpoint starts to deliver while a thousand others time out.
const LEASE_CONNECTIONS: usize = 1;

/// Writes rows of failed deliveries and retries: a thousand hanging endpoints time out simultaneously, and
/// healthy ones must not wait for them.
const WRITE_CONNECTIONS: usize = 1;

/// Webhook deliveries with a row of their own: failed, blocked or replayed ones; and the log of all attempts.
#[derive(Debug, Clone)]
pub struct DeliveryLog(pub(super) Database);

impl DeliveryLog {
    /// The same on the connections of this node's deliveries.
    #[must_use]
    pub fn of_node(node: &PgNode) -> Self {
        Self(node.delivery_database())
    }
}

/// The outbox of one node.
#[derive(Debug, Clone)]
pub struct PgOutbox {
    database: Database,
    node: NodeIdentity,
    read_permits: Arc<Semaphore>,
    lease_permits: Arc<Semaphore>,
    write_permits: Arc<Semaphore>,
}

impl PgOutbox {
    /// Creates the outbox of this node.
    #[must_use]
    pub fn new(node: &PgNode) -> Self {
        Self {
            database: node.delivery_database(),
            node: node.identity().clone(),
            read_permits: Arc::new(Semaphore::new(READ_CONNECTIONS)),
            lease_permits: Arc::new(Semaphore::new(LEASE_CONNECTIONS)),
            write_permits: Arc::new(Semaphore::new(WRITE_CONNECTIONS)),
        }
    }
}

impl Outbox for PgOutbox {
    fn lease(&self, webhook_id: WebhookId) -> StoreFuture<'_, Result<Option<LeasedEndpoint>, Unavailable>> {
        Box::pin(async move {
            let _permit = self.lease_permits.acquire().await.ok();
            let node = self.node.clone();
            let leased = self
                .database
                .run(move |pool| async move { lease::acquire_lease(&pool, webhook_id, &node).await });
            leased.await.map_err(Unavailable::from)
        })
    }

    fn flush(
        &self,
        webhook_id: WebhookId,
        request: FlushRequest,
    ) -> StoreFuture<'_, Result<Option<DeliveryPage>, Unavailable>> {
        Box::pin(async move {
            let permits = if request.has_row_writes() {
                &self.write_permits
            } else {
                &self.read_permits
            };
            let _permit = permits.acquire().await.ok();
            let holder = LeaseHolder {
                webhook_id,
                lease: request.lease,
                node: self.node.clone(),
            };
            let page = self
                .database
                .run(move |pool| async move { flush::flush(&pool, &holder, request).await });
            page.await.map_err(Unavailable::from)
        })
    }
}

fn interval(duration: std::time::Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}
