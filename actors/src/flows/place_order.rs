//! Placing an order: price it, set money and vouchers aside, and make all of it durable in one record.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | take the key | key, admission | nothing |
//! | price the lines | the order with its total | nothing |
//! | set money aside, then vouchers, SKU by SKU in their order | holds | nothing |
//! | submit the record | the lane has everything | nothing |
//! | the lane commits | holds settled | order, allocations, debit, ledger entry, answer under its key, events |
//! | answer | nothing | the same |
//!
//! Wallet first, then SKUs sorted: waiting for each other's holds cannot go round in a circle. A cache miss sets no voucher
//! aside for good: what was held for it goes back when the decision is made, and the record has the debit alone.

use std::collections::{BTreeMap, HashMap, VecDeque};

use time::OffsetDateTime;

use super::keyed::{self, Finished, Turn, Unanswered};
use crate::domain::answer::{Answer, Fingerprint, Keep, KeyHash};
use crate::domain::catalogue::{Assortment, RequestedOrder, Unpriced};
use crate::domain::event::EventBundle;
use crate::domain::ids::{OrderId, PartnerId, TransactionId, VoucherId};
use crate::domain::ledger::{LedgerKind, Movement};
use crate::domain::money::{Amount, Money};
use crate::domain::order::{Fulfilment, Order, PendingReason, PricedLine, PricedOrder};
use crate::domain::product::{Approval, Route, Sku};
use crate::domain::voucher::{Allocation, Expiry, Shelved};
use crate::engine::Engine;
use crate::inventory::{StockHold, Supply};
use crate::journal::{Hold, KeyClaim, Record, Ticket};
use crate::supervisor::{Patience, TooLong};
use crate::wallet::{Funds, WalletHold};

/// How often an order is decided when its commit finds each time that the world has moved on.
const MAX_DECISIONS: u32 = 3;

/// A partner's wish, ready to be decided.
#[derive(Debug, Clone)]
pub struct PlaceOrder {
    /// Who asks.
    pub partner_id: PartnerId,
    /// Under which key.
    pub key: KeyHash,
    /// The request that the key belongs to.
    pub fingerprint: Fingerprint,
    /// What is asked for.
    pub request: RequestedOrder,
    /// What this partner may order.
    pub assortment: Assortment,
}

/// A refusal that is kept under the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The wallet holds less than the order costs.
    InsufficientFunds {
        /// What the order costs.
        needed: Money,
        /// What the wallet holds.
        available: Amount,
    },
    /// There are fewer vouchers than were asked for, and no more can be had.
    InsufficientInventory {
        /// Of what.
        sku: Sku,
        /// How many were asked for.
        asked: usize,
        /// How many there are.
        available: usize,
    },
}

/// How answers are worded; the engine keeps their bytes and does not read them.
pub trait Wording {
    /// The answer to an order that was accepted.
    fn accepted(&self, order: &Order) -> Answer;

    /// The answer to an order that was refused for good.
    fn refused(&self, refusal: &Refusal) -> Answer;
}

/// An answer that is durable under the request's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// It was given for the first time.
    Fresh(Answer),
    /// It was given before.
    Replayed(Answer),
}

/// Why there is no durable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPlaced {
    /// The order has no price. Nothing is kept under the key.
    #[error(transparent)]
    Unpriced(#[from] Unpriced),
    /// Something else.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// What was decided, with what it rests on.
enum Decision {
    Deliver(WalletHold, Vec<StockHold>),
    Await(WalletHold, PendingReason),
    Refuse(Refusal),
}

/// Places an order, or gives the answer that its key was given before.
///
/// # Errors
/// [`NotPlaced`]; then nothing was written, or it says that this is not known yet.
pub async fn place_order(
    engine: &Engine,
    command: PlaceOrder,
    wording: &dyn Wording,
) -> Result<Placed, NotPlaced> {
    let PlaceOrder {
        partner_id,
        key,
        fingerprint,
        request,
        assortment,
    } = command;
    let mut ticket = match keyed::begin(engine, key, fingerprint).await? {
        Turn::Answered(answer) => return Ok(Placed::Replayed(answer)),
        Turn::Run(ticket) => ticket,
    };
    let priced = match assortment.price(request) {
        Ok(priced) => priced,
        Err(unpriced) => return unless_known(engine, ticket, fingerprint, unpriced.into()).await,
    };
    let patience = Patience::begin();
    for _ in 0..MAX_DECISIONS {
        let at = engine.clock.now();
        let Ok(decision) = decide(engine, partner_id, &priced, at, &patience).await else {
            return unless_known(engine, ticket, fingerprint, Unanswered::Unavailable.into()).await;
        };
        if let Decision::Refuse(_) = decision {
            match keyed::look_up(engine, ticket, fingerprint).await? {
                Turn::Answered(answer) => return Ok(Placed::Replayed(answer)),
                Turn::Run(same) => ticket = same,
            }
        }
        let draft = Draft {
            partner_id,
            key,
            fingerprint,
            priced: &priced,
            at,
        };
        let (record, holds) = draft.record(decision, wording);
        match keyed::finish(engine, record, holds, ticket).await? {
            Finished::Committed(answer) => return Ok(Placed::Fresh(answer)),
            Finished::Replayed(answer) => return Ok(Placed::Replayed(answer)),
            Finished::Stale(same) => ticket = same,
        }
    }
    unless_known(engine, ticket, fingerprint, Unanswered::Unavailable.into()).await
}

/// Refuses for `reason`, unless the key was answered before.
async fn unless_known(
    engine: &Engine,
    ticket: Ticket,
    fingerprint: Fingerprint,
    reason: NotPlaced,
) -> Result<Placed, NotPlaced> {
    match keyed::look_up(engine, ticket, fingerprint).await? {
        Turn::Answered(answer) => Ok(Placed::Replayed(answer)),
        Turn::Run(_) => Err(reason),
    }
}

async fn decide(
    engine: &Engine,
    partner_id: PartnerId,
    priced: &PricedOrder,
    at: OffsetDateTime,
    patience: &Patience,
) -> Result<Decision, TooLong> {
    let Money { amount, currency } = priced.total;
    let money = match engine
        .wallets
        .set_aside(partner_id, currency, amount, patience)
        .await?
    {
        Funds::Held(money) => money,
        Funds::Short(available) => {
            return Ok(Decision::Refuse(Refusal::InsufficientFunds {
                needed: priced.total,
                available,
            }));
        }
    };
    let mut stock = Vec::new();
    let mut backorder = false;
    for (sku, need) in needs(priced) {
        let not_before = Expiry::leaving(at.date(), need.min_validity_days);
        match engine
            .inventory
            .set_aside(sku, need.quantity, not_before, patience)
            .await?
        {
            Supply::Held(hold) => stock.push(hold),
            Supply::SoldOut(_) | Supply::Elsewhere if need.can_be_bought => backorder = true,
            Supply::SoldOut(available) => {
                let refusal = Refusal::InsufficientInventory {
                    sku: sku.clone(),
                    asked: need.quantity,
                    available,
                };
                return Ok(Decision::Refuse(refusal));
            }
            Supply::Elsewhere => return Err(TooLong),
        }
    }
    let approval = priced.lines.iter().any(|line| line.approval == Approval::Always);
    Ok(match (approval, backorder) {
        (true, _) => Decision::Await(money, PendingReason::Approval),
        (false, true) => Decision::Await(money, PendingReason::Vendor),
        (false, false) => Decision::Deliver(money, stock),
    })
}

/// What an order needs of one SKU, all its lines together.
struct Need {
    quantity: usize,
    min_validity_days: u16,
    can_be_bought: bool,
}

fn needs(priced: &PricedOrder) -> BTreeMap<&Sku, Need> {
    let mut needs = BTreeMap::new();
    for PricedLine {
        sku,
        quantity,
        route,
        min_validity_days,
        ..
    } in &priced.lines
    {
        let need = needs.entry(sku).or_insert(Need {
            quantity: 0,
            min_validity_days: *min_validity_days,
            can_be_bought: *route == Route::Vendor && priced.fulfilment == Fulfilment::Auto,
        });
        need.quantity += *quantity as usize;
    }
    needs
}

/// What the record is made of, whatever was decided.
struct Draft<'a> {
    partner_id: PartnerId,
    key: KeyHash,
    fingerprint: Fingerprint,
    priced: &'a PricedOrder,
    at: OffsetDateTime,
}

impl Draft<'_> {
    fn record(&self, decision: Decision, wording: &dyn Wording) -> (Record, Vec<Box<dyn Hold>>) {
        let order_id = OrderId::at(self.at);
        match decision {
            Decision::Refuse(refusal) => (
                Record {
                    order: None,
                    movement: None,
                    events: None,
                    ..self.kept(wording.refused(&refusal))
                },
                vec![],
            ),
            Decision::Await(money, reason) => {
                let order = Order::pending(order_id, self.partner_id, self.priced, reason, self.at);
                (
                    self.order(order, self.priced.total.amount, wording),
                    vec![Box::new(money)],
                )
            }
            Decision::Deliver(money, stock) => {
                let vouchers = allot(self.priced, &stock);
                let order = Order::delivered(order_id, self.partner_id, self.priced, vouchers, self.at);
                let mut holds: Vec<Box<dyn Hold>> = vec![Box::new(money)];
                holds.extend(stock.into_iter().map(|hold| Box::new(hold) as Box<dyn Hold>));
                (self.order(order, Amount::ZERO, wording), holds)
            }
        }
    }

    fn order(&self, order: Order, pending: Amount, wording: &dyn Wording) -> Record {
        let movement = Movement {
            transaction_id: TransactionId::debit_of(order.order_id),
            currency: order.total.currency,
            kind: LedgerKind::Debit,
            amount: Amount::from_minor(-order.total.amount.minor()),
            pending_orders: pending,
            order_id: Some(order.order_id),
            reference: order.reference.clone(),
        };
        let kept = self.kept(wording.accepted(&order));
        Record {
            movement: Some(movement),
            events: Some(EventBundle::accepted(&order)),
            order: Some(order),
            ..kept
        }
    }

    fn kept(&self, answer: Answer) -> Record {
        let claim = KeyClaim {
            key: self.key,
            fingerprint: self.fingerprint,
            answer,
            keep: Keep::Day,
        };
        Record {
            partner_id: self.partner_id,
            claim,
            order: None,
            movement: None,
            events: None,
        }
    }
}

/// Gives each line its vouchers, each with a public id of its own.
fn allot(priced: &PricedOrder, stock: &[StockHold]) -> Vec<Allocation> {
    let held = stock
        .iter()
        .map(|hold| (hold.sku(), hold.vouchers().iter().copied().collect()));
    let mut held: HashMap<&Sku, VecDeque<Shelved>> = held.collect();
    let mut allotted = Vec::new();
    for line in &priced.lines {
        let vouchers = held
            .get_mut(&line.sku)
            .into_iter()
            .flat_map(|v| v.drain(..line.quantity as usize));
        allotted.extend(vouchers.map(|voucher| Allocation {
            voucher_id: VoucherId::generate(),
            sku: line.sku.clone(),
            voucher,
        }));
    }
    allotted
}
