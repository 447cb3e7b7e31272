//! Lifecycle load during the crash test: partners cancel orders, read codes and request payouts, operators
//! decide, vendors sell. Every response is recorded and later compared with the database.
//!
//! | acknowledged | must hold afterwards |
//! |---|---|
//! | an order or payout under its key | it exists once; a repeated request returns the same bytes |
//! | a cancellation | status REFUNDED, the full amount refunded once, no hold, and the same bytes when read back |
//! | a code read | it is audited and the order is never cancelled; no code belongs to two orders |
//! | an operator's decision | the order has that status, and the audit log has the decision once |
//! | a payout decision | it is retained, and the amount was refunded once or not at all |
//!
//! Orders that a vendor can fill end once the faults are over.

mod checker;
mod client;
mod request_log;

use std::sync::Arc;

use sqlx::PgConnection;
use tokio::task::JoinSet;

use self::client::LifecycleClient;
pub(crate) use self::request_log::Counts;
use self::request_log::{LifecycleRequest, RequestLog};
use crate::fixtures::{Buyer, LIFECYCLE_PRODUCTS};
use crate::load_session::LoadSession;
use crate::operator::Operator;
use crate::rng::Rng;
use vouchsafe_test_harness::{Instance, VendorSimulator};

const PARTNERS: usize = 2;

/// More than a partner spends. USD.
const OPENING_BALANCE: u32 = 10_000_000;

/// Each client acts as partner and as operator.
const CLIENTS: u32 = 6;

/// Process number of the client that resolves open requests.
const RESOLVER: u32 = 500;

pub(crate) struct LifecycleLoad {
    log: Arc<RequestLog>,
    /// Stops when dropped.
    _simulator: VendorSimulator,
}

impl LifecycleLoad {
    /// Creates products, partners and balances.
    pub(crate) async fn start(program: &Instance) -> Self {
        let simulator = VendorSimulator::start(&[]);
        let mut operator = Operator::of(program);
        operator.put_vendor("simulator", &simulator.url).await;
        for product in &LIFECYCLE_PRODUCTS {
            operator.put_product(product).await;
        }
        let mut buyers: Vec<Buyer> = Vec::new();
        for number in 0..PARTNERS {
            let buyer = operator.create_partner(&format!("life {number}")).await;
            operator.top_up(&buyer, OPENING_BALANCE, "opening").await;
            buyers.push(buyer);
        }
        Self {
            log: Arc::new(RequestLog::new(buyers)),
            _simulator: simulator,
        }
    }

    /// The clients run until the session stops.
    pub(crate) fn start_clients(
        &self,
        session: &Arc<LoadSession>,
        program: &Instance,
        rng: &mut Rng,
    ) -> JoinSet<()> {
        let mut clients = JoinSet::new();
        for proc in 0..CLIENTS {
            let client = LifecycleClient::new(&self.log, proc, program, rng.fork());
            clients.spawn(client.run(Arc::clone(session)));
        }
        clients
    }

    /// Repeats each request with unknown outcome until its response is definite.
    pub(crate) async fn resolve_open_requests(&self, program: &Instance) {
        let mut resolver = LifecycleClient::new(&self.log, RESOLVER, program, Rng::new(0));
        for request in self.log.take_unresolved() {
            resolver.send_until_definite(&request).await;
        }
        drop(self.log.take_unresolved());
    }

    /// Compares acknowledgements with the database and reads back the orders cancelled since the last check.
    pub(crate) async fn check(&self, program: &Instance, database: &mut PgConnection) {
        checker::check_acknowledged(&self.log, database).await;
        let mut resolver = LifecycleClient::new(&self.log, RESOLVER, program, Rng::new(0));
        for (order_id, body) in self.log.take_newly_cancelled() {
            let response = resolver
                .send_until_definite(&LifecycleRequest::GetOrder(order_id.clone()))
                .await;
            assert_eq!(
                response.body, body,
                "{order_id} differs from the cancellation response"
            );
        }
    }

    pub(crate) async fn wait_until_vendor_orders_end(&self, database: &mut PgConnection) {
        checker::wait_until_vendor_orders_end(database).await;
    }

    pub(crate) fn counts(&self) -> Counts {
        self.log.counts()
    }
}
