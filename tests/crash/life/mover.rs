//! What does one of them do? Whatever comes to its mind: as a partner with its own orders, as an operator with anybody's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::json;
use vouchsafe_load::client::{Answer, Failure};
use vouchsafe_load::partner::{IDEMPOTENCY_KEY, PartnerClient};

use super::book::{Ask, Book};
use crate::chance::Chance;
use crate::closing::is_not_now;
use crate::front::Front;
use crate::operator::Operator;
use crate::program::Program;
use crate::world::{Goods, HOT, LIFE_GOODS, order_of};

/// How long an answer is waited for: longer than a flow waits for its commit (10 s).
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// How long a mover rests when nobody is there to answer.
const REST: Duration = Duration::from_millis(50);

/// How long a mover thinks, at most: what is done is to meet what a vendor and others do meanwhile. Milliseconds.
const THOUGHT_MS: u64 = 20;

/// How long "not now" is accepted.
const DEFINITE_WITHIN: Duration = Duration::from_secs(30);

/// One of them.
pub(super) struct Mover {
    book: Arc<Book>,
    proc: u32,
    partners: Vec<PartnerClient>,
    operator: Operator,
    chance: Chance,
    asked: u64,
}

impl Mover {
    pub(super) fn new(book: &Arc<Book>, proc: u32, program: &Program, mut chance: Chance) -> Self {
        let partners = book.buyers.iter();
        let partners = partners.map(|buyer| buyer.at(&program.base_url()).with_timeout(ANSWER_WITHIN));
        Self {
            proc,
            partners: partners.collect(),
            operator: Operator::of(program),
            asked: chance.between(0, u64::from(u32::MAX)),
            chance,
            book: Arc::clone(book),
        }
    }

    /// Acts until the doors close.
    pub(super) async fn run(mut self, front: Arc<Front>) {
        while !front.is_closed() {
            let Some(ask) = self.think() else { continue };
            let came = self.ask(&ask).await;
            let thought = Duration::from_millis(self.chance.between(0, THOUGHT_MS));
            let is_there = came.is_ok_and(|answer| !answer.status.is_server_error());
            tokio::time::sleep(if is_there { thought } else { REST }).await;
        }
    }

    /// Asks until the answer is more than "not now".
    pub(super) async fn until_definite(&mut self, ask: &Ask) -> Answer {
        let deadline = Instant::now() + DEFINITE_WITHIN;
        loop {
            match self.ask(ask).await {
                Ok(answer) if !is_not_now(&answer) => return answer,
                came => assert!(Instant::now() < deadline, "nothing definite of {ask:?}: {came:?}"),
            }
            tokio::time::sleep(REST).await;
        }
    }

    async fn ask(&mut self, ask: &Ask) -> Result<Answer, Failure> {
        let outcome = self.send(ask).await;
        self.book.note(ask, &outcome);
        outcome
    }

    async fn send(&mut self, ask: &Ask) -> Result<Answer, Failure> {
        let reason = json!({ "reason": "so it is" });
        match ask {
            Ask::Order { buyer, key, body } => self.partners[*buyer].order(key, body.clone()).await,
            Ask::Payout { buyer, key, body } => {
                let headers = HeaderMap::from_iter([(IDEMPOTENCY_KEY, HeaderValue::from_str(key).unwrap())]);
                let partner = &mut self.partners[*buyer];
                partner
                    .signed(Method::POST, "/payouts", body.clone(), headers)
                    .await
            }
            Ask::Cancel(order_id) => {
                let path = format!("/orders/{order_id}/cancel");
                let partner = self.owner(order_id);
                partner
                    .signed(Method::POST, &path, Bytes::new(), HeaderMap::new())
                    .await
            }
            Ask::Codes(order_id) => self.owner(order_id).codes(order_id).await,
            Ask::Read(order_id) => self.owner(order_id).get(&format!("/orders/{order_id}")).await,
            Ask::Decide { order_id, verb } => {
                let path = format!("/admin/v1/orders/{order_id}/{verb}");
                self.operator.say(&path, &reason).await
            }
            Ask::Revoke(order_id) => {
                let path = format!("/admin/v1/orders/{order_id}/cancel");
                self.operator.say(&path, &reason).await
            }
            Ask::End { payout_id, verb } => {
                let path = format!("/admin/v1/payouts/{payout_id}/{verb}");
                self.operator.say(&path, &reason).await
            }
        }
    }

    fn owner(&mut self, order_id: &str) -> &mut PartnerClient {
        let buyer = self.book.buyer_of(order_id);
        &mut self.partners[buyer]
    }

    fn think(&mut self) -> Option<Ask> {
        let chance = &mut self.chance;
        match chance.between(0, 99) {
            0..=39 => Some(self.afresh(true)),
            40..=44 => Some(self.afresh(false)),
            45..=49 => self.book.again(chance),
            50..=64 => self.book.any_order(chance).map(Ask::Cancel),
            65..=74 => self.book.any_order(chance).map(Ask::Codes),
            75..=89 => {
                let verb = if chance.percent(70) { "approve" } else { "reject" };
                let order_id = self.book.any_waiting(chance)?;
                Some(Ask::Decide { order_id, verb })
            }
            90..=92 => self.book.any_order(chance).map(Ask::Revoke),
            _ => {
                let verb = *chance.pick(&["pay", "reject", "fail"])?;
                let payout_id = self.book.any_payout(chance)?;
                Some(Ask::End { payout_id, verb })
            }
        }
    }

    /// Something new, under a new key that everybody may use from now on.
    fn afresh(&mut self, order: bool) -> Ask {
        self.asked += 1;
        let key = format!("life-{}-{}", self.proc, self.asked);
        let buyer = usize::try_from(self.chance.between(0, self.partners.len() as u64 - 1)).unwrap();
        let ask = if order {
            let body = self.basket();
            Ask::Order { buyer, key, body }
        } else {
            let amount = self.chance.between(1, 50);
            let destination = json!({ "type": "bank_account", "iban": "DE89370400440532013000" });
            let body = json!({ "amount": amount, "currency": "USD", "destination": destination });
            let body = Bytes::from(body.to_string());
            Ask::Payout { buyer, key, body }
        };
        self.book.remember(&ask);
        ask
    }

    fn basket(&mut self) -> Bytes {
        let quantity = self.chance.between(1, 2);
        let any: &Goods = self.chance.pick(&LIFE_GOODS).unwrap();
        match self.chance.between(0, 99) {
            0..=39 => order_of(&[(HOT, quantity)]),
            40..=49 => order_of(&[(*any, quantity), (HOT, 1)]),
            _ => order_of(&[(*any, quantity)]),
        }
    }
}
