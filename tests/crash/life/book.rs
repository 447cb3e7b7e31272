//! What was asked, and what was acknowledged? Written down by everybody; whatever contradicts what was acknowledged before
//! ends the test at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use serde_json::Value;
use vouchsafe_load::client::{Answer, Failure};

use crate::chance::Chance;
use crate::closing::is_not_now;
use crate::world::Buyer;

/// Orders and payouts that are moved on are among the last so many: what is old has had its time.
const LATELY: usize = 60;

/// Something that is asked, and may be asked again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ask {
    /// A partner, for an order under a key.
    Order { buyer: usize, key: String, body: Bytes },
    /// A partner, for a payout under a key.
    Payout { buyer: usize, key: String, body: Bytes },
    /// A partner, to cancel.
    Cancel(String),
    /// A partner, for the codes.
    Codes(String),
    /// A partner, how an order stands.
    Read(String),
    /// An operator, to let an order go on, or not.
    Decide { order_id: String, verb: &'static str },
    /// An operator, to take back what was not read.
    Revoke(String),
    /// An operator, what became of a payout.
    End { payout_id: String, verb: &'static str },
}

impl Ask {
    /// What is counted.
    const fn name(&self) -> &'static str {
        match self {
            Self::Order { .. } => "order",
            Self::Payout { .. } => "payout",
            Self::Cancel(_) => "cancel",
            Self::Codes(_) => "codes",
            Self::Read(_) => "read",
            Self::Decide { verb, .. } => verb,
            Self::Revoke(_) => "revoke",
            Self::End { verb, .. } => verb,
        }
    }
}

/// What was acknowledged of an order.
#[derive(Debug, Clone, Default)]
pub(super) struct OrderFacts {
    pub(super) buyer: usize,
    /// Whether it waited for approval when it was accepted.
    pub(super) waits: bool,
    /// The answer to its cancellation.
    pub(super) cancelled: Option<Bytes>,
    /// How often its codes were handed out.
    pub(super) looks: i64,
    /// What an operator said of it: `approve` or `reject`.
    pub(super) decided: Option<&'static str>,
    /// How often an operator's taking back was acknowledged.
    pub(super) revoked: bool,
}

/// What was acknowledged of a payout.
#[derive(Debug, Clone, Default)]
pub(super) struct PayoutFacts {
    pub(super) buyer: usize,
    pub(super) ended: Option<String>,
}

/// How often each kind of ask was acknowledged, refused, and left open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts(pub(super) BTreeMap<&'static str, [u64; 3]>);

/// All of it.
pub(super) struct Book {
    pub(super) buyers: Vec<Buyer>,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    /// The kept answer of each key.
    kept: BTreeMap<(usize, String), Answer>,
    orders: BTreeMap<String, OrderFacts>,
    payouts: BTreeMap<String, PayoutFacts>,
    /// Whose code it is. Never shown.
    codes: BTreeMap<String, String>,
    newly_cancelled: Vec<(String, Bytes)>,
    asked: Vec<Ask>,
    open: Vec<Ask>,
    counts: Counts,
}

impl Book {
    pub(super) fn new(buyers: Vec<Buyer>) -> Self {
        Self {
            buyers,
            pages: Mutex::default(),
        }
    }

    /// Something with a key is about to be asked for the first time.
    pub(super) fn remember(&self, ask: &Ask) {
        self.pages().asked.push(ask.clone());
    }

    /// What was asked under a key before, by anybody: lately, so perhaps at this moment.
    pub(super) fn again(&self, chance: &mut Chance) -> Option<Ask> {
        let pages = self.pages();
        let lately = pages.asked.len().saturating_sub(LATELY);
        chance.pick(&pages.asked[lately..]).cloned()
    }

    /// One of the last orders.
    pub(super) fn any_order(&self, chance: &mut Chance) -> Option<String> {
        let pages = self.pages();
        let lately: Vec<_> = pages.orders.keys().rev().take(LATELY).collect();
        chance.pick(&lately).map(|id| (*id).clone())
    }

    /// One of the last orders that waited for approval.
    pub(super) fn any_waiting(&self, chance: &mut Chance) -> Option<String> {
        let pages = self.pages();
        let waited = pages.orders.iter().rev().filter(|(_, facts)| facts.waits);
        let lately: Vec<_> = waited.take(LATELY / 4).map(|(id, _)| id).collect();
        chance.pick(&lately).map(|id| (*id).clone())
    }

    /// One of the last payouts.
    pub(super) fn any_payout(&self, chance: &mut Chance) -> Option<String> {
        let pages = self.pages();
        let lately: Vec<_> = pages.payouts.keys().rev().take(LATELY / 4).collect();
        chance.pick(&lately).map(|id| (*id).clone())
    }

    /// Whose order it is.
    pub(super) fn buyer_of(&self, order_id: &str) -> usize {
        self.pages().orders[order_id].buyer
    }

    /// Writes down what came of it.
    pub(super) fn note(&self, ask: &Ask, outcome: &Result<Answer, Failure>) {
        let mut pages = self.pages();
        let place = match outcome {
            Ok(answer) if answer.status.is_success() => {
                pages.acknowledge(ask, answer);
                0
            }
            Ok(answer) if is_not_now(answer) => 2,
            Ok(answer) => {
                pages.refuse(ask, answer);
                1
            }
            Err(Failure::NotSent(_)) => 1,
            Err(Failure::Unknown(_)) => 2,
        };
        pages.counts.0.entry(ask.name()).or_default()[place] += 1;
        if place == 2 {
            pages.open.push(ask.clone());
        }
    }

    /// What nobody knows the outcome of, each once.
    pub(super) fn take_open(&self) -> Vec<Ask> {
        let mut open = std::mem::take(&mut self.pages().open);
        open.sort();
        open.dedup();
        open
    }

    /// The orders whose cancellation was acknowledged since this was asked.
    pub(super) fn newly_cancelled(&self) -> Vec<(String, Bytes)> {
        std::mem::take(&mut self.pages().newly_cancelled)
    }

    pub(super) fn orders(&self) -> BTreeMap<String, OrderFacts> {
        self.pages().orders.clone()
    }

    pub(super) fn payouts(&self) -> BTreeMap<String, PayoutFacts> {
        self.pages().payouts.clone()
    }

    pub(super) fn counts(&self) -> Counts {
        self.pages().counts.clone()
    }

    /// A panic of another mover is the test's end anyway; who comes later says nothing of it.
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap()
    }
}

impl Pages {
    fn acknowledge(&mut self, ask: &Ask, answer: &Answer) {
        let body: Value = answer.json().unwrap();
        let id = |name: &str| body[name].as_str().unwrap().to_owned();
        match ask {
            Ask::Order { buyer, key, .. } => {
                self.keep(*buyer, key, answer);
                self.orders.entry(id("order_id")).or_insert_with(|| OrderFacts {
                    buyer: *buyer,
                    waits: body["pending_reason"] == "APPROVAL",
                    ..OrderFacts::default()
                });
            }
            Ask::Payout { buyer, key, .. } => {
                self.keep(*buyer, key, answer);
                self.payouts
                    .entry(id("payout_id"))
                    .or_insert_with(|| PayoutFacts {
                        buyer: *buyer,
                        ended: None,
                    });
            }
            Ask::Cancel(order_id) => self.cancel(order_id, answer),
            Ask::Codes(order_id) => self.look(order_id, &body),
            Ask::Read(_) => {}
            Ask::Decide { order_id, verb } => {
                let before = self.order(order_id).decided.replace(verb);
                assert_eq!(before, None, "{order_id} is decided once");
            }
            Ask::Revoke(order_id) => self.order(order_id).revoked = true,
            Ask::End { payout_id, .. } => {
                let payout = self.payouts.get_mut(payout_id).unwrap();
                let before = payout.ended.replace(id("status"));
                assert_eq!(before, None, "{payout_id} is decided once");
            }
        }
    }

    /// Two refusals are kept under a key; no other one is.
    fn refuse(&mut self, ask: &Ask, answer: &Answer) {
        let code = answer.error_code().unwrap_or_default();
        if let Ask::Order { buyer, key, .. } | Ask::Payout { buyer, key, .. } = ask
            && ["INSUFFICIENT_FUNDS", "INSUFFICIENT_INVENTORY"].contains(&code.as_str())
        {
            self.keep(*buyer, key, answer);
        }
    }

    fn keep(&mut self, buyer: usize, key: &str, answer: &Answer) {
        let first = self.kept.entry((buyer, key.to_owned()));
        let first = first.or_insert_with(|| answer.clone());
        assert_eq!(
            (first.status, &first.body),
            (answer.status, &answer.body),
            "{key} is answered as it was"
        );
    }

    fn cancel(&mut self, order_id: &str, answer: &Answer) {
        let facts = self.order(order_id);
        assert_eq!(facts.looks, 0, "{order_id} was read before it was cancelled");
        match &facts.cancelled {
            Some(first) => assert_eq!(*first, answer.body, "{order_id} is cancelled once"),
            None => {
                facts.cancelled = Some(answer.body.clone());
                self.newly_cancelled
                    .push((order_id.to_owned(), answer.body.clone()));
            }
        }
    }

    fn look(&mut self, order_id: &str, body: &Value) {
        let facts = self.order(order_id);
        facts.looks += 1;
        assert!(
            facts.cancelled.is_none(),
            "{order_id} was cancelled before it was read"
        );
        for voucher in body["data"].as_array().unwrap() {
            let code = voucher["credentials"].to_string();
            let owner = self.codes.entry(code).or_insert_with(|| order_id.to_owned());
            assert_eq!(owner, order_id, "{} was handed to both", voucher["voucher_id"]);
        }
    }

    fn order(&mut self, order_id: &str) -> &mut OrderFacts {
        self.orders.get_mut(order_id).unwrap()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:10}{:>8}{:>9}{:>7}", "asked", "acked", "refused", "open")?;
        for (name, [acknowledged, refused, open]) in &self.0 {
            writeln!(f, "{name:10}{acknowledged:>8}{refused:>9}{open:>7}")?;
        }
        Ok(())
    }
}
