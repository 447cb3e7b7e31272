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

mod draft;

use std::collections::BTreeMap;
use std::sync::Arc;

use time::OffsetDateTime;
use tracing::{Instrument as _, debug_span};

use self::draft::Draft;
use super::keyed::{self, Unanswered};
use crate::SPANS;
use crate::domain::answer::{Answer, Fingerprint, KeyHash};
use crate::domain::approval::{ApprovalRule, waits_for_approval};
use crate::domain::catalogue::{Assortment, RequestedOrder, Unpriced};
use crate::domain::ids::PartnerId;
use crate::domain::money::{Amount, Money};
use crate::domain::order::{Order, PendingReason, PricedOrder};
use crate::domain::product::Sku;
use crate::domain::voucher::Expiry;
use crate::engine::Engine;
use crate::inventory::{StockHold, Supply};
use crate::supervisor::Patience;
use crate::wallet::purse::Wish;
use crate::wallet::{Funds, WalletHold};

/// After how many commits that found a voucher gone the shelves are doubted as a whole: what one chunk shows may be true
/// of all, and the last decision is not to be made on the next one.
const SHELVES_DOUBTED_AFTER: u32 = 2;

/// A partner's wish, ready to be decided.
#[derive(Debug, Clone)]
pub struct PlaceOrder {
    pub partner_id: PartnerId,
    pub key: KeyHash,
    /// The request that the key belongs to.
    pub fingerprint: Fingerprint,
    /// What is asked for.
    pub request: RequestedOrder,
    /// What this partner may order.
    pub assortment: Assortment,
    /// When its orders wait for an operator beside those of products that always do; `None` when nothing was agreed.
    pub approval_rule: Option<Arc<ApprovalRule>>,
    /// How many orders it placed before, if [`ApprovalRule::counts_orders`].
    pub earlier_orders: Option<u64>,
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
        sku: Sku,
        /// How many were asked for.
        asked: usize,
        /// How many there may be, if all that others hold comes back.
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
    let decide = async |attempt: &keyed::Attempt| {
        let priced = command.assortment.price(&command.request)?;
        if attempt.refuted_stock == SHELVES_DOUBTED_AFTER {
            needs(&priced)
                .into_keys()
                .for_each(|sku| engine.inventory.doubt(sku));
        }
        let at = engine.clock.now();
        let decision = decide(engine, &command, &priced, at, &attempt.patience).await?;
        let draft = Draft {
            command: &command,
            priced: &priced,
            at,
        };
        Ok(draft.decided(decision, wording))
    };
    // By hand: the attribute would lay the future of the whole flow out three times, to be moved each time.
    let given = keyed::answer::<NotPlaced>(engine, command.key, command.fingerprint, decide);
    let given = given
        .instrument(debug_span!(target: SPANS, "place_order"))
        .await?;
    Ok(if given.replayed {
        Placed::Replayed(given.answer)
    } else {
        Placed::Fresh(given.answer)
    })
}

async fn decide(
    engine: &Engine,
    command: &PlaceOrder,
    priced: &PricedOrder,
    at: OffsetDateTime,
    patience: &Patience,
) -> Result<Decision, Unanswered> {
    let Money { amount, currency } = priced.total;
    let money = match engine
        .wallets
        .set_aside(command.partner_id, currency, Wish::Take(amount), patience)
        .await?
    {
        Funds::Held(money) => money,
        Funds::Refused(available) => {
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
        match supply(engine, sku, &need, not_before, patience).await? {
            Supply::Held(hold) => stock.push(hold),
            Supply::SoldOut(_) | Supply::Owned(_) | Supply::Kept(_)
                if need.can_be_bought && !engine.last_words.out_of_stock(sku) =>
            {
                backorder = true;
            }
            Supply::SoldOut(available) => {
                let refusal = Refusal::InsufficientInventory {
                    sku: sku.clone(),
                    asked: need.quantity,
                    available,
                };
                return Ok(Decision::Refuse(refusal));
            }
            Supply::Owned(_) | Supply::Kept(_) => return Err(Unanswered::Unavailable),
        }
    }
    let rule = command.approval_rule.as_deref();
    let approval = waits_for_approval(priced, rule, command.earlier_orders);
    Ok(match (approval, backorder) {
        (true, _) => Decision::Await(money, PendingReason::Approval),
        (false, true) => Decision::Await(money, PendingReason::Vendor),
        (false, false) => Decision::Deliver(money, stock),
    })
}

/// What a shelf says; where stock is about to be given to whoever waits, what it says once they have it: what they leave is
/// for sale, and nobody is refused before that is known.
async fn supply(
    engine: &Engine,
    sku: &Sku,
    need: &Need,
    not_before: Expiry,
    patience: &Patience,
) -> Result<Supply, Unanswered> {
    loop {
        let asked = engine
            .inventory
            .set_aside(sku, need.quantity, not_before, patience);
        match asked.await? {
            Supply::Kept(_) if !need.can_be_bought => patience.rest().await?,
            supply => return Ok(supply),
        }
    }
}

/// What an order needs of one SKU, all its lines together.
struct Need {
    quantity: usize,
    min_validity_days: u16,
    can_be_bought: bool,
}

fn needs(priced: &PricedOrder) -> BTreeMap<&Sku, Need> {
    let mut needs = BTreeMap::new();
    for line in &priced.lines {
        let need = needs.entry(&line.sku).or_insert(Need {
            quantity: 0,
            min_validity_days: line.min_validity_days,
            can_be_bought: priced.can_buy(line),
        });
        need.quantity += line.quantity as usize;
    }
    needs
}
