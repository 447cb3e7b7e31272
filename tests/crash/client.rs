//! What does one client ask for? Mostly something new; and again what was asked before, by itself or by others.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use vouchsafe_load::partner::PartnerClient;

use crate::chance::Chance;
use crate::front::{Front, Question, Wish};
use crate::world::{BESIDE, DEAR, HOT, MADE, SCARCE, SCARCE_STOCK, order_of};

/// How long a client waits for an answer: longer than the service keeps it waiting for a commit (10 s).
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// How long a client rests when nobody is there to answer: a start needs the processor more than who knocks.
const REST: Duration = Duration::from_millis(50);

/// Most milliseconds after which an impatient client goes away: a few commits.
const IMPATIENCE_MS: u64 = 25;

/// What a client orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Menu {
    /// Everything there is, and what there is not.
    Everything,
    /// One product by itself: what the node has, or none of it.
    Plain,
}

/// One client of one partner, on one connection.
pub(crate) struct Client {
    front: Arc<Front>,
    proc: u32,
    buyer: usize,
    menu: Menu,
    connection: PartnerClient,
    chance: Chance,
    asked: u32,
}

impl Client {
    pub(crate) fn new(front: &Arc<Front>, proc: u32, base_url: &str, menu: Menu, mut chance: Chance) -> Self {
        let buyer = proc as usize % front.buyers.len();
        let connection = front.buyers[buyer].at(base_url).with_timeout(ANSWER_WITHIN);
        let asked = u32::try_from(chance.between(0, u64::from(u32::MAX / 2))).unwrap();
        Self {
            front: Arc::clone(front),
            proc,
            buyer,
            menu,
            connection,
            chance,
            asked,
        }
    }

    /// Asks until the doors close.
    pub(crate) async fn run(mut self) {
        while !self.front.is_closed() {
            let question = self.question();
            let impatient = self.chance.percent(3);
            let gives_up = impatient.then(|| Duration::from_millis(self.chance.between(0, IMPATIENCE_MS)));
            let came = self
                .front
                .ask(self.proc, &mut self.connection, &question, gives_up)
                .await;
            if !came.is_ok_and(|answer| !answer.status.is_server_error()) {
                tokio::time::sleep(REST).await;
            }
        }
    }

    fn question(&mut self) -> Question {
        let lately = self.front.taken_by(self.buyer, &mut self.chance);
        match (self.chance.between(0, 99), lately) {
            (0..=2, Some(taken)) if taken.delivered => Question::Codes(taken),
            (3..=5, Some(taken)) => Question::Read(taken),
            _ => Question::Order(self.wish()),
        }
    }

    /// The next order.
    fn wish(&mut self) -> Wish {
        match self.chance.between(0, 99) {
            0..=9 => self.again().unwrap_or_else(|| self.afresh()),
            10..=11 => self.reused().unwrap_or_else(|| self.afresh()),
            _ => self.afresh(),
        }
    }

    /// Something new, under a new key that everybody may use from now on.
    fn afresh(&mut self) -> Wish {
        self.asked += 1;
        let wish = Wish {
            buyer: self.buyer,
            key: format!("key-{}-{}", self.proc, self.asked),
            body: self.body(),
        };
        self.front.remember(&wish);
        wish
    }

    /// What was ordered before: lately by anybody of this partner, so perhaps at this moment; or long ago.
    fn again(&mut self) -> Option<Wish> {
        let lately = self.chance.percent(70);
        self.front.wishes(|wishes| {
            let recent = if lately {
                wishes.len().saturating_sub(20)
            } else {
                0
            };
            let wish = self.chance.pick(&wishes[recent..])?;
            (wish.buyer == self.buyer).then(|| wish.clone())
        })
    }

    /// A key that was used before, with another order.
    fn reused(&mut self) -> Option<Wish> {
        let body = self.body();
        self.again().map(|wish| Wish { body, ..wish })
    }

    fn body(&mut self) -> Bytes {
        let quantity = self.chance.between(1, 3);
        if self.menu == Menu::Plain {
            // Each partner has its product: money runs out at one, stock at the other.
            return order_of(&[([HOT, BESIDE[0]][self.buyer % 2], quantity)]);
        }
        match self.chance.between(0, 99) {
            0..=19 => {
                let [wide, calm] = BESIDE;
                order_of(&[(calm, 1), (HOT, quantity), (wide, self.chance.between(1, 4))])
            }
            20..=27 => order_of(&[(MADE, quantity)]),
            28..=31 => order_of(&[(MADE, 1), (HOT, quantity)]),
            32..=36 => order_of(&[(SCARCE, SCARCE_STOCK + quantity), (HOT, 1)]),
            37..=40 => order_of(&[(DEAR, 1)]),
            41..=43 => order_of(&[(HOT, self.chance.between(20, 60))]),
            44 => order_of(&[(SCARCE, 1)]),
            _ => order_of(&[(HOT, quantity)]),
        }
    }
}
