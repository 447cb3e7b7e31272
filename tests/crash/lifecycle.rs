//! The life of orders and payouts under the same kills: partners who cancel, read codes and send money out, operators who
//! decide, vendors who sell; and everybody writes down what they were told.
//!
//! | what was acknowledged | what must be so for ever after |
//! |---|---|
//! | an order, a payout, under its key | it is there, once; asked for again, the answer is the same to the byte |
//! | a cancellation | REFUNDED, all of its money back once, nothing held, and read back to the byte |
//! | a reading of codes | in the trail, and never cancelled; no code was handed to two orders |
//! | an operator's decision | the order went that way, and the trail has it once |
//! | the end of a payout | it stands, and its money came back once or not at all |
//!
//! And whatever a vendor can fill has an end once the faults are over.

mod request_log;
mod checker;
mod client;
mod simulator;

use std::sync::Arc;

use sqlx::PgConnection;
use tokio::task::JoinSet;

pub(crate) use self::request_log::Counts;
use self::request_log::{LifecycleRequest, RequestLog};
use self::client::LifecycleClient;
use self::simulator::Simulator;
use crate::rng::Rng;
use crate::load_session::LoadSession;
use crate::operator::Operator;
use crate::program::Program;
use crate::fixtures::{Buyer, LIFECYCLE_PRODUCTS};

/// Partners who live through all of it.
const PARTNERS: usize = 2;

/// What each of them begins with, in USD: more than they spend.
const OPENING_BALANCE: u32 = 10_000_000;

/// How many of them act at a time; each is a partner, and an operator as well.
const CLIENTS: u32 = 6;

/// Number of the first of those who close what is open; they act alone, one by one.
const RESOLVER: u32 = 500;

/// Everybody whose orders live on, and what they were told.
pub(crate) struct LifecycleLoad {
    log: Arc<RequestLog>,
    /// It sells as long as this is held.
    _simulator: Simulator,
}

impl LifecycleLoad {
    /// Puts on sale what they want, and gives them money.
    pub(crate) async fn start(program: &Program) -> Self {
        let simulator = Simulator::start(program);
        let mut operator = Operator::of(program);
        operator.put_vendor(simulator::VENDOR_ID, &simulator.url).await;
        for goods in &LIFECYCLE_PRODUCTS {
            operator.put_product(goods).await;
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

    /// They act until the doors close.
    pub(crate) fn start_clients(
        &self,
        front: &Arc<LoadSession>,
        program: &Program,
        chance: &mut Rng,
    ) -> JoinSet<()> {
        let mut movers = JoinSet::new();
        for proc in 0..CLIENTS {
            let mover = LifecycleClient::new(&self.log, proc, program, chance.fork());
            movers.spawn(mover.run(Arc::clone(front)));
        }
        movers
    }

    /// Asks again whatever nobody knows the outcome of, until it is known.
    pub(crate) async fn resolve_open_requests(&self, program: &Program) {
        let mut closer = LifecycleClient::new(&self.log, RESOLVER, program, Rng::new(0));
        for ask in self.log.take_unresolved() {
            closer.send_until_definite(&ask).await;
        }
        drop(self.log.take_unresolved());
    }

    /// Holds what was acknowledged against the rows, and reads back what was cancelled since it was last looked at.
    pub(crate) async fn check(&self, program: &Program, database: &mut PgConnection) {
        checker::check_acknowledged(&self.log, database).await;
        let mut closer = LifecycleClient::new(&self.log, RESOLVER, program, Rng::new(0));
        for (order_id, body) in self.log.take_newly_cancelled() {
            let answer = closer.send_until_definite(&LifecycleRequest::GetOrder(order_id.clone())).await;
            assert_eq!(answer.body, body, "{order_id} was cancelled, and is read back");
        }
    }

    /// Waits until nothing that a vendor can fill waits for it any more.
    pub(crate) async fn wait_until_vendor_orders_end(&self, database: &mut PgConnection) {
        checker::wait_until_vendor_orders_end(database).await;
    }

    /// How often what was asked, and what came of it.
    pub(crate) fn counts(&self) -> Counts {
        self.log.counts()
    }
}
