//! Ledger of the vendor simulator: purchases and sales records. Plain data; time is an argument.
//!
//! A key sells once. A repeated request returns what was sold, never more.

use std::collections::HashMap;

use time::{Date, OffsetDateTime};
use vouchsafe_domain::purchase::{MAX_QUANTITY, PurchaseKey};

use super::faults::{self, Fault, FaultPlan};
use super::voucher::{self, PurchaseRequest, Record, SoldVoucher};

/// Bounds the memory.
const MAX_PURCHASES: usize = 100_000;

/// Small, so that a day has several pages.
const PAGE_SIZE: usize = 100;

struct Purchase {
    request: PurchaseRequest,
    faults: Vec<Fault>,
    sold: Vec<SoldVoucher>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    /// A part was sold; the rest follows.
    PartlySold,
    Completed,
    Refused,
}

/// Why a call gets an error.
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

/// The response to a call.
pub(super) struct PurchaseStatement {
    pub(super) key: PurchaseKey,
    pub(super) completed: bool,
    pub(super) sold: Vec<SoldVoucher>,
    /// The faults of this response.
    pub(super) faults: Vec<Fault>,
}

pub(super) struct Ledger {
    plans: Vec<FaultPlan>,
    purchases: HashMap<PurchaseKey, Purchase>,
    records: Vec<Record>,
    /// The first code sold of each product.
    first_codes: HashMap<String, String>,
}

impl Ledger {
    pub(super) fn new(plans: Vec<FaultPlan>) -> Self {
        Self {
            plans,
            purchases: HashMap::new(),
            records: Vec::new(),
            first_codes: HashMap::new(),
        }
    }

    /// Sells, or returns what was sold.
    pub(super) fn buy(
        &mut self,
        request: PurchaseRequest,
        now: OffsetDateTime,
    ) -> Result<PurchaseStatement, Refusal> {
        let key = request.key;
        let is_new = self.register(request)?;
        let Some(purchase) = self.purchases.get_mut(&key) else {
            return Err(Refusal::NotFound);
        };
        let has = |fault| purchase.faults.contains(&fault);
        match (is_new, purchase.stage) {
            (true, _) if has(Fault::Down) => return Err(Refusal::Down),
            (true, _) if has(Fault::Busy) => return Err(Refusal::Busy),
            (_, Stage::New) if has(Fault::OutOfStock) => purchase.stage = Stage::Refused,
            _ => {}
        }
        if purchase.stage == Stage::Refused {
            return Err(Refusal::OutOfStock);
        }
        self.sell(key, now);
        self.statement(key, is_new)
    }

    /// Returns what was sold; a partly sold purchase continues.
    pub(super) fn poll(
        &mut self,
        key: PurchaseKey,
        now: OffsetDateTime,
    ) -> Result<PurchaseStatement, Refusal> {
        if self
            .purchases
            .get(&key)
            .is_some_and(|purchase| purchase.stage == Stage::PartlySold)
        {
            self.sell(key, now);
        }
        self.statement(key, false)
    }

    /// A page of the records of a day after `skipped` others, and whether there are more.
    pub(super) fn page(&self, day: Date, skipped: usize) -> (Vec<Record>, bool) {
        let of_day = self.records.iter().filter(|record| record.sold_at.date() == day);
        let mut rest = of_day.skip(skipped);
        let page: Vec<Record> = rest.by_ref().take(PAGE_SIZE).cloned().collect();
        (page, rest.next().is_some())
    }

    /// Registers a purchase; returns whether it is new.
    fn register(&mut self, request: PurchaseRequest) -> Result<bool, Refusal> {
        if let Some(existing) = self.purchases.get(&request.key) {
            return if existing.request == request {
                Ok(false)
            } else {
                Err(Refusal::KeyReused)
            };
        }
        if !(1..=MAX_QUANTITY).contains(&request.quantity) {
            return Err(Refusal::Quantity);
        }
        if self.purchases.len() == MAX_PURCHASES {
            return Err(Refusal::Full);
        }
        let purchase = Purchase {
            faults: faults::faults_of_next_purchase(&mut self.plans, &request.product_id),
            sold: Vec::new(),
            stage: Stage::New,
            request,
        };
        self.purchases.insert(purchase.request.key, purchase);
        Ok(true)
    }

    fn sell(&mut self, key: PurchaseKey, now: OffsetDateTime) {
        let Some(purchase) = self.purchases.get_mut(&key) else {
            return;
        };
        let (from, to, next) = purchase.next_share();
        let Purchase { request, faults, .. } = &*purchase;
        let mut sold: Vec<SoldVoucher> = (from..to)
            .map(|number| voucher::issue_voucher(request, number))
            .collect();
        if from == 0 {
            let earlier = self.first_codes.get(&request.product_id);
            voucher::apply_faults(&mut sold, faults, earlier.map(String::as_str));
        }
        if let Some(first) = sold.first() {
            let product_id = request.product_id.clone();
            self.first_codes
                .entry(product_id)
                .or_insert_with(|| first.code.clone());
        }
        self.records
            .extend(voucher::records_of_sale(request, &sold, faults, now));
        purchase.sold.extend(sold);
        purchase.stage = next;
    }

    fn statement(&self, key: PurchaseKey, is_new: bool) -> Result<PurchaseStatement, Refusal> {
        let purchase = self.purchases.get(&key).ok_or(Refusal::NotFound)?;
        if matches!(purchase.stage, Stage::New | Stage::Refused) {
            return Err(Refusal::NotFound);
        }
        let is_once = |fault: &Fault| matches!(fault, Fault::Slow | Fault::Timeout | Fault::Drop);
        let faults = purchase.faults.iter().filter(|fault| is_new || !is_once(fault));
        Ok(PurchaseStatement {
            key,
            completed: purchase.stage == Stage::Completed,
            sold: purchase.sold.clone(),
            faults: faults.copied().collect(),
        })
    }
}

impl Purchase {
    /// The range of voucher numbers to sell now, and the next stage.
    fn next_share(&self) -> (u32, u32, Stage) {
        let (quantity, half) = (self.request.quantity, self.request.quantity / 2);
        let has = |fault| self.faults.contains(&fault);
        match self.stage {
            Stage::New if has(Fault::Part) => (0, half, Stage::Completed),
            Stage::New if has(Fault::Pending) => (0, half, Stage::PartlySold),
            Stage::New if has(Fault::TooMany) => (0, quantity + 1, Stage::Completed),
            Stage::New => (0, quantity, Stage::Completed),
            Stage::PartlySold => (half, quantity, Stage::Completed),
            stage @ (Stage::Completed | Stage::Refused) => (0, 0, stage),
        }
    }
}

#[cfg(test)]
mod tests;
