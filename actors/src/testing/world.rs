//! A world round the engine: one database, nodes that start and die, partners that ask, and what they heard.
//!
//! Rule: everything runs on one thread and on paused time, and nothing is left to chance, so that what happened once
//! happens again. A node owns its tasks: dropping it is `kill -9`, and nothing of it runs on.

mod ask;
mod audit;
mod clock;
mod goods;
mod history;
mod node;
pub mod vendors;
pub mod walk;
mod wording;

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

pub use ask::{Ask, Heard};
pub use clock::TestClock;
pub use goods::{catalogue, discontinued};
pub use history::History;
pub use node::Node;
use tokio::task::LocalSet;
pub use vendors::Market;
pub use wording::Plain;

use super::{MemoryDatabase, build};
use crate::domain::catalogue::Catalogue;
use crate::domain::clock::Clock as _;
use crate::domain::ids::PartnerId;
use crate::domain::product::Sku;
use crate::domain::voucher::{Expiry, Shelved};

/// Runs a test in which nodes live. Needs a runtime of one thread, with paused time.
pub async fn live<T>(test: impl Future<Output = T>) -> T {
    LocalSet::new().run_until(test).await
}

/// A world; its clones are handles of the same one.
#[derive(Clone)]
pub struct World {
    pub db: MemoryDatabase,
    /// The clock of all nodes.
    pub clock: Arc<TestClock>,
    pub market: Market,
    catalogue: Rc<RefCell<Arc<Catalogue>>>,
}

impl World {
    /// A world with [`catalogue`], no stock and no money.
    #[must_use]
    pub fn new() -> Self {
        let (db, clock) = (MemoryDatabase::new(), Arc::new(TestClock::new()));
        Self {
            market: Market::new(&db, &clock),
            db,
            clock,
            catalogue: Rc::new(RefCell::new(Arc::new(catalogue()))),
        }
    }

    /// Starts a node, or the next start of one.
    pub async fn start(&self, name: &'static str) -> Node {
        Node::start(self, name).await
    }

    /// Adds money to a partner's USD wallet past every engine; in minor units.
    pub async fn give(&self, partner_id: PartnerId, amount: i64) {
        self.db
            .top_up(build::usd_of(partner_id), build::minor(amount))
            .await;
    }

    /// What a partner's USD wallet holds, in minor units.
    #[must_use]
    pub fn balance(&self, partner_id: PartnerId) -> i64 {
        let receipt = self.db.wallet(build::usd_of(partner_id));
        receipt.map_or(0, |receipt| receipt.balance.minor())
    }

    /// Imports a chunk of vouchers that expire so many days after the first of 2031. No node is told.
    pub fn import(&self, sku: &Sku, days: &[i64]) -> Vec<Shelved> {
        let expiries: Vec<Expiry> = days.iter().map(|day| build::day(*day)).collect();
        self.db.add_stock(sku, &expiries, expiries.len().max(1))
    }

    /// What is still valid today.
    #[must_use]
    pub fn today(&self) -> Expiry {
        Expiry::leaving(self.clock.now().date(), 0)
    }

    /// The catalogue of the moment.
    #[must_use]
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.borrow())
    }

    /// Changes the catalogue, as an operator does.
    pub fn set_catalogue(&self, catalogue: Catalogue) {
        self.catalogue.replace(Arc::new(catalogue));
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}
