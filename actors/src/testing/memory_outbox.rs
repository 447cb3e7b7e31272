//! An outbox in memory: events, rows and a lease, with tokio's time for the database's.
//!
//! Rule: it passes every case of [`super::outbox`], so that what is shown over it is true over Postgres as well.

mod page;
mod subject;
mod tables;

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

pub use self::page::bundle;
pub use self::tables::{Pace, Row, RowState, Tables};
use crate::delivery::outbox::{LEASE, Opened, Outbox, Page, Then, Turn};
use crate::domain::delivery::{SealedSecret, Target};
use crate::domain::ids::{OrderId, WebhookId};
use crate::store::{StoreFuture, Unavailable};
use crate::testing::build;

/// The outbox of one endpoint, as one process reaches it, and what it has.
#[derive(Debug, Clone)]
pub struct MemoryOutbox {
    pub webhook_id: WebhookId,
    pub tables: Arc<Mutex<Tables>>,
    life: (String, u32),
}

impl Default for MemoryOutbox {
    fn default() -> Self {
        Self {
            webhook_id: WebhookId::generate(),
            tables: Arc::default(),
            life: ("node".to_owned(), 0),
        }
    }
}

impl MemoryOutbox {
    /// The same, reached by the next start of this node.
    ///
    /// # Panics
    /// When a test has failed before.
    #[must_use]
    pub fn of(&self, node: &str) -> Self {
        let life = self.tables.lock().unwrap().start(node);
        Self {
            life: (node.to_owned(), life),
            ..self.clone()
        }
    }

    /// An event of this order is committed; says its number.
    ///
    /// # Panics
    /// When a test has failed before.
    pub fn commit(&self, order: u32) -> i64 {
        self.tables.lock().unwrap().commit(order)
    }

    /// The partner asks for these events again.
    ///
    /// # Panics
    /// When a test has failed before.
    pub fn replay(&self, numbers: RangeInclusive<i64>) {
        self.tables.lock().unwrap().replay(numbers);
    }

    /// Somebody else takes the endpoint.
    ///
    /// # Panics
    /// When a test has failed before.
    pub fn steal(&self) {
        let mut tables = self.tables.lock().unwrap();
        tables.recall();
        tables.leased_until = Some(Instant::now() + LEASE);
    }
}

/// The order of this number.
#[must_use]
pub fn order_id(order: u32) -> OrderId {
    OrderId::from_uuid(uuid::Uuid::from_u128(order.into()))
}

impl Outbox for MemoryOutbox {
    fn take(&self, webhook_id: WebhookId) -> StoreFuture<'_, Result<Option<Opened>, Unavailable>> {
        Box::pin(async move {
            let mut tables = self.tables.lock().unwrap();
            if tables.down {
                return Err(Unavailable("down".to_owned()));
            }
            let sealed = |secret: u8| SealedSecret(Arc::from([secret]));
            Ok(tables.take(&self.life).map(|lease| Opened {
                lease,
                target: Arc::new(Target {
                    partner_id: build::partner(1),
                    webhook_id,
                    url: "http://127.0.0.1/".to_owned(),
                    secret: sealed(tables.secret),
                    previous: tables.previous.map(|secret| (sealed(secret), build::NOW + LEASE)),
                }),
                cursor: tables.cursor,
                failures: tables.failures,
                step: tables.step,
                wait: tables.due_at.map_or(Duration::ZERO, |due| due - Instant::now()),
            }))
        })
    }

    fn turn(&self, _: WebhookId, turn: Turn) -> StoreFuture<'_, Result<Option<Page>, Unavailable>> {
        Box::pin(async move {
            let pace = self.tables.lock().unwrap().pace;
            sleep(pace.before).await;
            let page = self.write_and_read(&turn);
            sleep(pace.after).await;
            page
        })
    }
}

impl MemoryOutbox {
    fn write_and_read(&self, turn: &Turn) -> Result<Option<Page>, Unavailable> {
        let mut tables = self.tables.lock().unwrap();
        if tables.down {
            return Err(Unavailable("down".to_owned()));
        }
        if !tables.is_leased_under(turn.lease, &self.life) {
            return Ok(None);
        }
        if turn.writes() {
            tables.write(turn);
        }
        Ok(Some(match turn.then {
            Then::Keep(Some(want)) => tables.page(want),
            Then::Keep(None) | Then::Release => Page::default(),
        }))
    }
}
