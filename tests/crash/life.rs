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

mod book;
mod judge;
mod mover;
mod vendor;

use std::sync::Arc;

use sqlx::PgConnection;
use tokio::task::JoinSet;

pub(crate) use self::book::Counts;
use self::book::{Ask, Book};
use self::mover::Mover;
use self::vendor::Simulator;
use crate::chance::Chance;
use crate::front::Front;
use crate::operator::Operator;
use crate::program::Program;
use crate::world::{Buyer, LIFE_GOODS};

/// Partners who live through all of it.
const PARTNERS: usize = 2;

/// What each of them begins with, in USD: more than they spend.
const MONEY: u32 = 10_000_000;

/// How many of them act at a time; each is a partner, and an operator as well.
const MOVERS: u32 = 6;

/// Number of the first of those who close what is open; they act alone, one by one.
const CLOSER: u32 = 500;

/// Everybody whose orders live on, and what they were told.
pub(crate) struct Life {
    book: Arc<Book>,
    /// It sells as long as this is held.
    _simulator: Simulator,
}

impl Life {
    /// Puts on sale what they want, and gives them money.
    pub(crate) async fn begin(program: &Program) -> Self {
        let simulator = Simulator::start(program);
        let mut operator = Operator::of(program);
        operator.vendor(vendor::ID, &simulator.url).await;
        for goods in &LIFE_GOODS {
            operator.product(goods).await;
        }
        let mut buyers: Vec<Buyer> = Vec::new();
        for number in 0..PARTNERS {
            let buyer = operator.partner(&format!("life {number}")).await;
            operator.top_up(&buyer, MONEY, "opening").await;
            buyers.push(buyer);
        }
        Self {
            book: Arc::new(Book::new(buyers)),
            _simulator: simulator,
        }
    }

    /// They act until the doors close.
    pub(crate) fn open_doors(
        &self,
        front: &Arc<Front>,
        program: &Program,
        chance: &mut Chance,
    ) -> JoinSet<()> {
        let mut movers = JoinSet::new();
        for proc in 0..MOVERS {
            let mover = Mover::new(&self.book, proc, program, chance.fork());
            movers.spawn(mover.run(Arc::clone(front)));
        }
        movers
    }

    /// Asks again whatever nobody knows the outcome of, until it is known.
    pub(crate) async fn settle(&self, program: &Program) {
        let mut closer = Mover::new(&self.book, CLOSER, program, Chance::new(0));
        for ask in self.book.take_open() {
            closer.until_definite(&ask).await;
        }
        drop(self.book.take_open());
    }

    /// Holds what was acknowledged against the rows, and reads back what was cancelled since it was last looked at.
    pub(crate) async fn judge(&self, program: &Program, database: &mut PgConnection) {
        judge::pronounce(&self.book, database).await;
        let mut closer = Mover::new(&self.book, CLOSER, program, Chance::new(0));
        for (order_id, body) in self.book.newly_cancelled() {
            let answer = closer.until_definite(&Ask::Read(order_id.clone())).await;
            assert_eq!(answer.body, body, "{order_id} was cancelled, and is read back");
        }
    }

    /// Waits until nothing that a vendor can fill waits for it any more.
    pub(crate) async fn everything_ends(&self, database: &mut PgConnection) {
        judge::everything_ends(database).await;
    }

    /// How often what was asked, and what came of it.
    pub(crate) fn counts(&self) -> Counts {
        self.book.counts()
    }
}
