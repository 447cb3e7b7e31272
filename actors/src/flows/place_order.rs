//! Places an order: prices it, holds money and vouchers, and commits everything in one record.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | acquire the key | key, admission permit | nothing |
//! | price the lines | the order with its total | nothing |
//! | if a commit found a cap of the partner exceeded: read what it has used of its caps on spend and order rate | the counters | nothing |
//! | count the partner's earlier orders, if the approval rule needs it | the count | nothing |
//! | hold the money, then the vouchers, SKU by SKU in sort order | holds | nothing |
//! | the same, if the order waits: read what the partner has used of its caps on pending orders | the counters | nothing |
//! | if the order cannot be accepted: read the counters, unless they were read, so that a cap comes before other refusals | the counters | nothing |
//! | submit the record | the lane owns everything | nothing |
//! | commit | holds settled | order, allocations, debit, ledger entry, response under its key, events |
//! | respond | nothing | the same |
//!
//! Wallet first, then SKUs in sort order: this lock order prevents deadlocks between holds. An order that is
//! not fully in stock keeps no vouchers: its stock holds are released with the decision, and its record
//! contains only the debit.

mod draft;

use async_recursion::async_recursion as boxed;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use time::OffsetDateTime;
use tokio::time::Instant;
use tracing::{Instrument as _, debug_span};
use uuid::Uuid;
use vouchsafe_domain::approval::{ApprovalRule, is_approval_required};
use vouchsafe_domain::cap::CapExceeded;
use vouchsafe_domain::catalogue::{Assortment, PricingFailure, RequestedOrder};
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::money::{Amount, Money};
use vouchsafe_domain::order::trace::{OrderTrace, to_micros};
use vouchsafe_domain::order::{Order, PendingReason, PricedLine, PricedOrder};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::Expiry;

use self::draft::OrderDraft;
use super::caps::{Acceptance, OrderCaps, OrderChecks};
use super::idempotent::{self, FlowError};
use crate::engine::Engine;
use crate::inventory::{StockHold, Supply};
use crate::supervisor::DecisionDeadline;
use crate::wallet::purse::ReserveRequest;
use crate::wallet::{Funds, WalletHold};
use vouchsafe_domain::spans::SPANS;

/// Stock conflicts after which all shelves of the order are invalidated: other chunks may be as outdated as
/// the one that conflicted, and the last decision must not rest on them.
const INVALIDATE_SHELVES_AFTER: u32 = 2;

/// The command to place an order.
#[derive(Debug, Clone)]
pub struct PlaceOrder {
    pub partner_id: PartnerId,
    pub key: KeyHash,
    /// Fingerprint of the request that the key belongs to.
    pub fingerprint: Fingerprint,
    pub request: RequestedOrder,
    pub assortment: Assortment,
    /// The partner's approval rule, in addition to products that always need approval; `None` if it has none.
    pub approval_rule: Option<Arc<ApprovalRule>>,
    /// The partner's caps; `None` if it has none.
    pub caps: Option<OrderCaps>,
    /// The request, for the durations of its steps; `None` outside of a request.
    pub origin: Option<RequestOrigin>,
}

/// The trace of a request, and when its head had been read.
#[derive(Debug, Clone, Copy)]
pub struct RequestOrigin {
    pub trace_id: Uuid,
    pub received_at: Instant,
}

/// A refusal that is stored under the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderRefusal {
    /// The wallet's balance is less than the order's total.
    InsufficientFunds { needed: Money, available: Amount },
    /// Fewer vouchers are available than requested, and the rest cannot be bought.
    InsufficientInventory {
        sku: Sku,
        /// The first line of this SKU, from 0.
        line: usize,
        requested: usize,
        /// The number available if all open holds are released.
        available: usize,
    },
}

/// Encodes the responses to an order; the engine stores their bytes without interpreting them.
pub trait OrderResponseEncoder {
    /// The response to an accepted order.
    fn accepted(&self, order: &Order) -> Response;

    /// The response to a refused order.
    fn refused(&self, refusal: &OrderRefusal) -> Response;
}

/// A response stored under the request's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdempotentResponse {
    /// Stored by this request.
    Fresh(Response),
    /// Stored by an earlier request.
    Replayed(Response),
}

/// Why there is no stored response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceOrderError {
    /// The order cannot be priced; nothing is stored under the key.
    #[error(transparent)]
    Pricing(#[from] PricingFailure),
    /// The partner has reached a cap; nothing is stored under the key.
    #[error("the partner has reached a cap")]
    Cap(CapExceeded),
    #[error(transparent)]
    Flow(#[from] FlowError),
}

/// The decision with its holds.
enum Decision {
    Deliver(WalletHold, Vec<StockHold>),
    Await(WalletHold, PendingReason),
    Refuse(OrderRefusal),
}

impl Decision {
    /// How it accepts the order; `None` if it refuses it.
    const fn acceptance(&self) -> Option<Acceptance> {
        match self {
            Self::Deliver(..) => Some(Acceptance::Delivered),
            Self::Await(_, PendingReason::Approval) => Some(Acceptance::UnderApproval),
            Self::Await(_, PendingReason::Vendor) => Some(Acceptance::Pending),
            Self::Refuse(_) => None,
        }
    }
}

/// Places an order, or replays the response stored under its key.
///
/// # Errors
/// [`PlaceOrderError`]. Nothing was written, except possibly with [`FlowError::OutcomeUnknown`].
#[boxed(?Send)]
pub async fn place_order(
    engine: &Engine,
    command: PlaceOrder,
    encoder: &dyn OrderResponseEncoder,
) -> Result<IdempotentResponse, PlaceOrderError> {
    let admission = OnceCell::new();
    let decide = async |attempt: &idempotent::DecisionAttempt| {
        let origin = command.origin.map(|origin| {
            let admission = *admission.get_or_init(|| origin.received_at.elapsed());
            (origin, admission)
        });
        let priced = command.assortment.price(&command.request)?;
        if attempt.stock_conflicts == INVALIDATE_SHELVES_AFTER {
            demand_by_sku(&priced)
                .into_keys()
                .for_each(|sku| engine.inventory.invalidate(sku));
        }
        let at = engine.clock.now();
        let mut checks = command.caps.as_ref().map_or_else(OrderChecks::default, |caps| {
            OrderChecks::new(caps, priced.total, at)
        });
        // The commit verifies the caps of all orders of its batch at once: only those of a partner that has
        // reached one need the counters before they hold anything. Boxed: other orders do not carry the
        // futures that read them.
        let (partner_id, reached_caps) = (command.partner_id, &engine.reached_caps);
        if attempt.cap_conflicts > 0 {
            reached_caps.insert(partner_id);
        }
        let is_at_cap = command.caps.is_some() && reached_caps.contains(partner_id);
        if is_at_cap {
            let permitted = Box::pin(checks.read(engine, partner_id, &attempt.deadline));
            permitted.await?.map_err(PlaceOrderError::Cap)?;
        }
        let needs_approval = checks.is_rate_exceeded();
        let decision = decide(engine, &command, &priced, (at, needs_approval), &attempt.deadline).await;
        let acceptance = decision.as_ref().ok().and_then(Decision::acceptance);
        if acceptance.is_none() && !is_at_cap {
            // No commit verifies the caps of this order; a cap, which stores nothing under the key, comes
            // before other refusals.
            let permitted = Box::pin(checks.read(engine, partner_id, &attempt.deadline));
            permitted.await?.map_err(PlaceOrderError::Cap)?;
        }
        let decision = decision?;
        if is_at_cap && acceptance.is_some_and(|acceptance| checks.has_pending(acceptance)) {
            // Under the hold of the money: a slow read delays only orders that need the same money.
            let exceeded = checks.find_pending_exceeded(engine, partner_id, &attempt.deadline);
            if let Some(exceeded) = Box::pin(exceeded).await? {
                return Err(PlaceOrderError::Cap(exceeded));
            }
        }
        if is_at_cap && !checks.is_rate_exceeded() {
            reached_caps.remove(partner_id);
        }
        let checks = acceptance.map_or_else(Vec::new, |acceptance| checks.of(acceptance));
        let draft = OrderDraft {
            command: &command,
            priced: &priced,
            at,
        };
        let mut decision = draft.to_flow_decision(decision, encoder);
        decision.record.caps = checks;
        if let (Some(order), Some((origin, admission))) = (&mut decision.record.order, origin) {
            order.trace = Some(OrderTrace {
                trace_id: origin.trace_id,
                admission_us: to_micros(admission),
                holds_us: to_micros(origin.received_at.elapsed().saturating_sub(admission)),
                queue_us: 0,
            });
        }
        Ok(decision)
    };
    // Instrumented by hand: `#[instrument]` would copy the flow's future twice more.
    let keyed = idempotent::run::<PlaceOrderError>(
        engine,
        command.partner_id,
        command.key,
        command.fingerprint,
        decide,
    );
    let keyed = keyed
        .instrument(debug_span!(target: SPANS, "place_order"))
        .await?;
    Ok(if keyed.replayed {
        IdempotentResponse::Replayed(keyed.response)
    } else {
        IdempotentResponse::Fresh(keyed.response)
    })
}

async fn decide(
    engine: &Engine,
    command: &PlaceOrder,
    priced: &PricedOrder,
    (at, needs_approval): (OffsetDateTime, bool),
    deadline: &DecisionDeadline,
) -> Result<Decision, FlowError> {
    // Before the first hold: a slow count delays no other order, and a failed one leaves nothing to release.
    let earlier_orders = count_earlier_orders(engine, command, deadline).await?;
    let Money { amount, currency } = priced.total;
    let wallet_hold = match engine
        .wallets
        .hold(
            command.partner_id,
            currency,
            ReserveRequest::Debit(amount),
            deadline,
        )
        .await?
    {
        Funds::Held(wallet_hold) => wallet_hold,
        Funds::Refused(available) => {
            return Ok(Decision::Refuse(OrderRefusal::InsufficientFunds {
                needed: priced.total,
                available,
            }));
        }
    };
    let mut stock_holds = Vec::new();
    let mut backorder = false;
    for (sku, demand) in demand_by_sku(priced) {
        let not_before = Expiry::with_remaining_days(at.date(), demand.min_validity_days);
        match hold_stock(engine, sku, &demand, not_before, deadline).await? {
            Supply::Held(hold) => stock_holds.push(hold),
            Supply::SoldOut(_) | Supply::Reserved(_) | Supply::Quarantined(_)
                if demand.can_be_bought && !engine.out_of_stock.contains(sku) =>
            {
                backorder = true;
            }
            Supply::SoldOut(available) => {
                let is_of_sku = |line: &PricedLine| line.sku == *sku;
                let refusal = OrderRefusal::InsufficientInventory {
                    sku: sku.clone(),
                    line: priced.lines.iter().position(is_of_sku).unwrap_or_default(),
                    requested: demand.quantity,
                    available,
                };
                return Ok(Decision::Refuse(refusal));
            }
            Supply::Reserved(_) => return Err(FlowError::Unavailable),
            Supply::Quarantined(_) => return Err(FlowError::StockQuarantined),
        }
    }
    let rule = command.approval_rule.as_deref();
    let approval = needs_approval || is_approval_required(priced, rule, earlier_orders);
    Ok(match (approval, backorder) {
        (true, _) => Decision::Await(wallet_hold, PendingReason::Approval),
        (false, true) => Decision::Await(wallet_hold, PendingReason::Vendor),
        (false, false) => Decision::Deliver(wallet_hold, stock_holds),
    })
}

/// Counts the partner's earlier orders, as far as its approval rule needs them.
async fn count_earlier_orders(
    engine: &Engine,
    command: &PlaceOrder,
    deadline: &DecisionDeadline,
) -> Result<Option<u64>, FlowError> {
    let Some(rule) = &command.approval_rule else {
        return Ok(None);
    };
    if !rule.is_order_count_needed() {
        return Ok(None);
    }
    let count = engine.store.count_orders(command.partner_id, rule.first_orders);
    match deadline.with_timeout(count).await? {
        Ok(count) => Ok(Some(count)),
        Err(error) => {
            tracing::warn!(error.message = %error, "cannot count orders for approval rule");
            Err(FlowError::Unavailable)
        }
    }
}

/// Asks a shelf for vouchers. While stock is reserved for waiting orders, it asks again until they are
/// served, since what they leave is for sale: an order is not refused before that is known.
async fn hold_stock(
    engine: &Engine,
    sku: &Sku,
    demand: &SkuDemand,
    not_before: Expiry,
    deadline: &DecisionDeadline,
) -> Result<Supply, FlowError> {
    loop {
        let held = engine.inventory.hold(sku, demand.quantity, not_before, deadline);
        match held.await? {
            Supply::Reserved(_) if !demand.can_be_bought => deadline.wait_before_retry().await?,
            supply => return Ok(supply),
        }
    }
}

/// An order's demand for one SKU, over all its lines.
struct SkuDemand {
    quantity: usize,
    min_validity_days: u16,
    can_be_bought: bool,
}

fn demand_by_sku(priced: &PricedOrder) -> BTreeMap<&Sku, SkuDemand> {
    let mut demands = BTreeMap::new();
    for line in &priced.lines {
        let demand = demands.entry(&line.sku).or_insert(SkuDemand {
            quantity: 0,
            min_validity_days: line.min_validity_days,
            can_be_bought: priced.can_buy(line),
        });
        demand.quantity += line.quantity as usize;
    }
    demands
}
