//! In-memory delivery outbox: events, delivery rows and a lease, on tokio's clock.
//!
//! It passes every case of [`super::outbox`], as the outbox over Postgres does.

mod page;
mod subject;
mod tables;

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

pub use self::page::bundle;
pub use self::tables::{Latency, Row, RowState, Tables};
use vouchsafe_actors::delivery::outbox::{
    DeliveryPage, FlushRequest, LEASE_DURATION, LeaseAction, LeasedEndpoint, Outbox,
};
use vouchsafe_actors::ports::store::{StoreFuture, Unavailable};
use vouchsafe_domain::delivery::{SealedSecret, WebhookTarget};
use vouchsafe_domain::ids::WebhookId;

use crate::build;

/// Outbox of one endpoint, as seen by one incarnation of a node.
#[derive(Debug, Clone)]
pub struct MemoryOutbox {
    pub webhook_id: WebhookId,
    pub tables: Arc<Mutex<Tables>>,
    incarnation: (String, u32),
}

impl Default for MemoryOutbox {
    fn default() -> Self {
        Self {
            webhook_id: WebhookId::generate(),
            tables: Arc::default(),
            incarnation: ("node".to_owned(), 0),
        }
    }
}

impl MemoryOutbox {
    /// The same outbox, for the next incarnation of a node.
    ///
    /// # Panics
    /// If the lock is poisoned by a failed test.
    #[must_use]
    pub fn for_node(&self, node: &str) -> Self {
        let incarnation = self.tables.lock().unwrap().next_incarnation(node);
        Self {
            incarnation: (node.to_owned(), incarnation),
            ..self.clone()
        }
    }

    /// Commits an event of this order; returns its number.
    ///
    /// # Panics
    /// If the lock is poisoned by a failed test.
    pub fn commit(&self, order: u32) -> i64 {
        self.tables.lock().unwrap().commit(order)
    }

    /// Replays these events.
    ///
    /// # Panics
    /// If the lock is poisoned by a failed test.
    pub fn replay(&self, numbers: RangeInclusive<i64>) {
        self.tables.lock().unwrap().replay(numbers);
    }

    /// Gives the lease to another process.
    ///
    /// # Panics
    /// If the lock is poisoned by a failed test.
    pub fn steal_lease(&self) {
        let mut tables = self.tables.lock().unwrap();
        tables.revoke_lease();
        tables.leased_until = Some(Instant::now() + LEASE_DURATION);
    }
}

impl Outbox for MemoryOutbox {
    fn lease(&self, webhook_id: WebhookId) -> StoreFuture<'_, Result<Option<LeasedEndpoint>, Unavailable>> {
        Box::pin(async move {
            let mut tables = self.tables.lock().unwrap();
            if tables.unavailable {
                return Err(Unavailable("down".to_owned()));
            }
            let sealed = |secret: u8| SealedSecret(Arc::from([secret]));
            Ok(tables
                .acquire_lease(&self.incarnation)
                .map(|lease| LeasedEndpoint {
                    lease,
                    target: Arc::new(WebhookTarget {
                        partner_id: build::partner(1),
                        webhook_id,
                        url: "http://127.0.0.1/".to_owned(),
                        secret: sealed(tables.secret),
                        previous_secret: tables
                            .previous
                            .map(|secret| (sealed(secret), build::NOW + LEASE_DURATION)),
                    }),
                    cursor: tables.cursor,
                    consecutive_failures: tables.failures,
                    backoff_step: tables.step,
                    retry_in: tables.due_at.map_or(Duration::ZERO, |due| due - Instant::now()),
                }))
        })
    }

    fn flush(
        &self,
        _: WebhookId,
        flush: FlushRequest,
    ) -> StoreFuture<'_, Result<Option<DeliveryPage>, Unavailable>> {
        Box::pin(async move {
            let latency = self.tables.lock().unwrap().latency;
            sleep(latency.before).await;
            let page = self.write_and_read(&flush);
            sleep(latency.after).await;
            page
        })
    }
}

impl MemoryOutbox {
    fn write_and_read(&self, flush: &FlushRequest) -> Result<Option<DeliveryPage>, Unavailable> {
        let mut tables = self.tables.lock().unwrap();
        if tables.unavailable {
            return Err(Unavailable("down".to_owned()));
        }
        if !tables.is_leased_under(flush.lease, &self.incarnation) {
            return Ok(None);
        }
        if flush.has_writes() {
            tables.apply(flush);
        }
        Ok(Some(match flush.lease_action {
            LeaseAction::Keep(Some(request)) => tables.page(request),
            LeaseAction::Keep(None) | LeaseAction::Release => DeliveryPage::default(),
        }))
    }
}
