//! Deterministic simulation of the engine: one database, nodes that start and crash, requests and their
//! replies.
//!
//! Everything runs on one thread and on paused time, so a run is reproducible. A node owns its tasks:
//! dropping it is a `kill -9`.

mod clock;
mod history;
mod leaks;
mod node;
mod order;
mod products;
pub mod random;
mod receivers;
mod responses;
pub mod vendors;

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

pub use clock::TestClock;
pub use history::ResponseHistory;
pub use node::Node;
pub use order::{OrderReply, OrderRequest};
pub use products::{catalogue, discontinued};
pub use receivers::SimulatedReceivers;
pub use responses::PlainTextResponses;
use tokio::task::LocalSet;
pub use vendors::SimulatedVendors;

use vouchsafe_domain::catalogue::Catalogue;
use vouchsafe_domain::clock::Clock as _;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Expiry, StockVoucher};

use super::{MemoryDatabase, build};

/// Runs a test with nodes. Requires a current-thread runtime with paused time.
pub async fn run_local<T>(test: impl Future<Output = T>) -> T {
    LocalSet::new().run_until(test).await
}

/// A simulation; clones are handles to the same one.
#[derive(Clone)]
pub struct Simulation {
    pub db: MemoryDatabase,
    pub clock: Arc<TestClock>,
    pub vendors: SimulatedVendors,
    pub receivers: SimulatedReceivers,
    catalogue: Rc<RefCell<Arc<Catalogue>>>,
}

impl Simulation {
    /// A simulation with [`catalogue`], without stock and money.
    #[must_use]
    pub fn new() -> Self {
        let (db, clock) = (MemoryDatabase::new(), Arc::new(TestClock::new()));
        Self {
            vendors: SimulatedVendors::new(&db, &clock),
            receivers: SimulatedReceivers::default(),
            db,
            clock,
            catalogue: Rc::new(RefCell::new(Arc::new(catalogue()))),
        }
    }

    /// Starts a node, or its next incarnation.
    pub async fn start(&self, name: &'static str) -> Node {
        Node::start(self, name).await
    }

    /// Credits a partner's USD wallet directly in the database; in minor units.
    pub async fn top_up(&self, partner_id: PartnerId, amount: i64) {
        self.db
            .top_up(build::usd_wallet(partner_id), build::minor(amount))
            .await;
    }

    /// Balance of a partner's USD wallet, in minor units.
    #[must_use]
    pub fn balance(&self, partner_id: PartnerId) -> i64 {
        let wallet = self.db.wallet(build::usd_wallet(partner_id));
        wallet.map_or(0, |wallet| wallet.newest.balance.minor())
    }

    /// Imports a chunk of vouchers with expiries in days after 2031-01-01. No node is notified.
    pub fn import(&self, sku: &Sku, days: &[i64]) -> Vec<StockVoucher> {
        let expiries: Vec<Expiry> = days.iter().map(|day| build::day(*day)).collect();
        self.db.add_stock(sku, &expiries, expiries.len().max(1))
    }

    /// Expiry of a voucher that is valid through today.
    #[must_use]
    pub fn today(&self) -> Expiry {
        Expiry::with_remaining_days(self.clock.now().date(), 0)
    }

    #[must_use]
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.borrow())
    }

    pub fn set_catalogue(&self, catalogue: Catalogue) {
        self.catalogue.replace(Arc::new(catalogue));
    }
}

impl Default for Simulation {
    fn default() -> Self {
        Self::new()
    }
}
