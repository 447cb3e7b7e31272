//! What did the simulator sell, to whom, and what does it say of it? Plain data; time is an argument.
//!
//! Rule: a key sells once. What is asked for under it again is answered with what was sold, never with more.

use std::collections::HashMap;

use time::{Date, OffsetDateTime};
use vouchsafe_actors::domain::money::Money;

use super::faults::{self, Fault, Plan};
use super::voucher::{self, Record, Sold};
use crate::vendor::{MAX_QUANTITY, PurchaseKey};

/// Most purchases that are kept: memory for an afternoon of trying.
const MAX_PURCHASES: usize = 100_000;

/// Records of a page. Few, so that a day has pages.
const PAGE: usize = 100;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) key: PurchaseKey,
    pub(super) product_id: String,
    pub(super) denomination: Money,
    pub(super) quantity: u32,
}

/// A purchase that was asked for.
struct Purchase {
    wish: Wish,
    faults: Vec<Fault>,
    sold: Vec<Sold>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing was sold yet.
    Asked,
    /// A part was sold; the rest comes.
    Begun,
    /// No more is sold.
    Done,
    Refused,
}

/// Why a call is not answered with a purchase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Quantity,
    KeyReused,
    NotFound,
    OutOfStock,
    Busy,
    Down,
    Full,
}

/// What is said of a purchase.
pub(super) struct Statement {
    pub(super) key: PurchaseKey,
    pub(super) completed: bool,
    pub(super) sold: Vec<Sold>,
    /// What goes wrong on the way of this answer.
    pub(super) faults: Vec<Fault>,
}

/// The books.
pub(super) struct Ledger {
    plans: Vec<Plan>,
    purchases: HashMap<PurchaseKey, Purchase>,
    records: Vec<Record>,
    /// The first code that was sold of each product.
    first_codes: HashMap<String, String>,
}

impl Ledger {
    pub(super) fn new(plans: Vec<Plan>) -> Self {
        Self {
            plans,
            purchases: HashMap::new(),
            records: Vec::new(),
            first_codes: HashMap::new(),
        }
    }

    /// Sells, or says again what was sold.
    pub(super) fn buy(&mut self, wish: Wish, now: OffsetDateTime) -> Result<Statement, Refusal> {
        let key = wish.key;
        let is_new = self.admit(wish)?;
        let Some(purchase) = self.purchases.get_mut(&key) else {
            return Err(Refusal::NotFound);
        };
        let has = |fault| purchase.faults.contains(&fault);
        match (is_new, purchase.stage) {
            (true, _) if has(Fault::Down) => return Err(Refusal::Down),
            (true, _) if has(Fault::Busy) => return Err(Refusal::Busy),
            (_, Stage::Asked) if has(Fault::OutOfStock) => purchase.stage = Stage::Refused,
            _ => {}
        }
        if purchase.stage == Stage::Refused {
            return Err(Refusal::OutOfStock);
        }
        self.sell(key, now);
        self.state(key, is_new)
    }

    /// Says what was sold; what was begun goes on meanwhile.
    pub(super) fn look(&mut self, key: PurchaseKey, now: OffsetDateTime) -> Result<Statement, Refusal> {
        if self
            .purchases
            .get(&key)
            .is_some_and(|purchase| purchase.stage == Stage::Begun)
        {
            self.sell(key, now);
        }
        self.state(key, false)
    }

    /// A page of the records of a day behind so many others, and whether there are more.
    pub(super) fn page(&self, day: Date, skipped: usize) -> (Vec<Record>, bool) {
        let of_day = self.records.iter().filter(|record| record.sold_at.date() == day);
        let mut rest = of_day.skip(skipped);
        let page: Vec<Record> = rest.by_ref().take(PAGE).cloned().collect();
        (page, rest.next().is_some())
    }

    /// Takes a purchase in; says whether it is new.
    fn admit(&mut self, wish: Wish) -> Result<bool, Refusal> {
        if let Some(known) = self.purchases.get(&wish.key) {
            return if known.wish == wish {
                Ok(false)
            } else {
                Err(Refusal::KeyReused)
            };
        }
        if !(1..=MAX_QUANTITY).contains(&wish.quantity) {
            return Err(Refusal::Quantity);
        }
        if self.purchases.len() == MAX_PURCHASES {
            return Err(Refusal::Full);
        }
        let purchase = Purchase {
            faults: faults::of_next(&mut self.plans, &wish.product_id),
            sold: Vec::new(),
            stage: Stage::Asked,
            wish,
        };
        self.purchases.insert(purchase.wish.key, purchase);
        Ok(true)
    }

    fn sell(&mut self, key: PurchaseKey, now: OffsetDateTime) {
        let Some(purchase) = self.purchases.get_mut(&key) else {
            return;
        };
        let (from, to, next) = purchase.share();
        let Purchase { wish, faults, .. } = &*purchase;
        let mut sold: Vec<Sold> = (from..to).map(|number| voucher::sold(wish, number)).collect();
        if from == 0 {
            let earlier = self.first_codes.get(&wish.product_id);
            voucher::spoil(&mut sold, faults, earlier.map(String::as_str));
        }
        if let Some(first) = sold.first() {
            let product_id = wish.product_id.clone();
            self.first_codes
                .entry(product_id)
                .or_insert_with(|| first.code.clone());
        }
        self.records.extend(voucher::records(wish, &sold, faults, now));
        purchase.sold.extend(sold);
        purchase.stage = next;
    }

    fn state(&self, key: PurchaseKey, is_new: bool) -> Result<Statement, Refusal> {
        let purchase = self.purchases.get(&key).ok_or(Refusal::NotFound)?;
        if matches!(purchase.stage, Stage::Asked | Stage::Refused) {
            return Err(Refusal::NotFound);
        }
        let is_once = |fault: &Fault| matches!(fault, Fault::Slow | Fault::Timeout | Fault::Drop);
        let faults = purchase.faults.iter().filter(|fault| is_new || !is_once(fault));
        Ok(Statement {
            key,
            completed: purchase.stage == Stage::Done,
            sold: purchase.sold.clone(),
            faults: faults.copied().collect(),
        })
    }
}

impl Purchase {
    /// What is sold now, from which number to which, and what comes of it.
    fn share(&self) -> (u32, u32, Stage) {
        let (quantity, half) = (self.wish.quantity, self.wish.quantity / 2);
        let has = |fault| self.faults.contains(&fault);
        match self.stage {
            Stage::Asked if has(Fault::Part) => (0, half, Stage::Done),
            Stage::Asked if has(Fault::Pending) => (0, half, Stage::Begun),
            Stage::Asked if has(Fault::TooMany) => (0, quantity + 1, Stage::Done),
            Stage::Asked => (0, quantity, Stage::Done),
            Stage::Begun => (half, quantity, Stage::Done),
            stage @ (Stage::Done | Stage::Refused) => (0, 0, stage),
        }
    }
}

#[cfg(test)]
mod tests;
