//! An order: what was asked for, what it costs, what it holds, and the stages it went through.

mod words;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

pub use self::words::{Actor, Fulfilment, OrderStatus, PendingReason, Source};
use super::ids::{OrderId, PartnerId, VoucherId};
use super::money::{Amount, Money};
use super::product::{Approval, Route, Sku};
use super::voucher::Allocation;

/// An entry of an order's timeline: a status, since when, by whom and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Milestone {
    /// The status that was entered.
    pub status: OrderStatus,
    /// When.
    #[serde(with = "crate::domain::moment")]
    pub at: OffsetDateTime,
    /// By whom.
    pub by: Actor,
    /// Why, where somebody said so.
    #[schema(required)]
    pub reason: Option<String>,
}

impl Milestone {
    /// The first entry: the partner placed the order.
    #[must_use]
    pub const fn placed(status: OrderStatus, at: OffsetDateTime) -> Self {
        Self {
            status,
            at,
            by: Actor::Partner,
            reason: None,
        }
    }
}

/// An order as a flow reads it, to move it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOrder {
    pub order: Order,
    /// The number of its last event.
    pub last_sequence: u32,
    /// The vouchers of it whose codes were retrieved.
    pub retrieved: Vec<VoucherId>,
}

/// A line that has a price: known product, allowed denomination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PricedLine {
    pub sku: Sku,
    pub quantity: u32,
    /// What one costs, frozen at acceptance. Minor units.
    pub unit_price: Amount,
    /// Where vouchers come from when the shelf is short.
    pub route: Route,
    /// Fewest days that a voucher must have left to be allocated.
    pub min_validity_days: u16,
    /// When an order of it waits for an operator.
    pub approval: Approval,
}

/// What a partner asked for, with prices: what the engine decides on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PricedOrder {
    /// The lines, as they were asked for.
    pub lines: Vec<PricedLine>,
    /// What all of it costs.
    pub total: Money,
    /// What it may be fulfilled from.
    pub fulfilment: Fulfilment,
    /// The partner's own reference.
    pub reference: Option<String>,
    /// The partner's own metadata: the text of a JSON object.
    pub metadata: Option<Arc<str>>,
}

impl PricedOrder {
    /// Whether what is missing of this line may be bought.
    #[must_use]
    pub fn can_buy(&self, line: &PricedLine) -> bool {
        line.route == Route::Vendor && self.fulfilment == Fulfilment::Auto
    }
}

/// A line of an order with its progress. Keys are short since it is stored with every order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderLine {
    #[serde(rename = "p")]
    pub product_id: super::product::ProductId,
    /// At which face value, in minor units.
    #[serde(rename = "d")]
    pub denomination: Amount,
    /// What one costs, frozen at acceptance. Minor units.
    #[serde(rename = "u")]
    pub unit_price: Amount,
    /// How many were asked for.
    #[serde(rename = "q")]
    pub quantity: u32,
    /// How many are allocated.
    #[serde(rename = "a")]
    pub delivered: u32,
    /// How many can never be had.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub failed: u32,
    /// How many were bought for the order.
    #[serde(rename = "b", default, skip_serializing_if = "is_zero")]
    pub bought: u32,
    /// Whether what is missing is never bought. Frozen at acceptance, of orders that wait.
    #[serde(rename = "s", default, skip_serializing_if = "is_false")]
    pub stock_only: bool,
    /// Fewest days that a voucher must have left to be allocated. Frozen at acceptance, of orders that wait.
    #[serde(rename = "m", default, skip_serializing_if = "is_zero")]
    pub min_validity_days: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_false(yes: &bool) -> bool {
    !yes
}

impl OrderLine {
    /// How many are still to come.
    #[must_use]
    pub const fn pending(&self) -> u32 {
        self.quantity
            .saturating_sub(self.delivered)
            .saturating_sub(self.failed)
    }

    /// What it is of.
    #[must_use]
    pub fn sku(&self) -> Sku {
        Sku {
            product_id: self.product_id.clone(),
            denomination: self.denomination,
        }
    }

    /// What these many units cost. A part of the order's total, which fits.
    fn cost(&self, units: u32) -> i64 {
        self.unit_price.minor() * i64::from(units)
    }
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub order_id: OrderId,
    pub partner_id: PartnerId,
    pub status: OrderStatus,
    pub total: Money,
    /// Where its vouchers came from, once there are any.
    pub fulfilled_from: Option<Source>,
    /// The partner's own reference.
    pub reference: Option<String>,
    /// The partner's own metadata: the text of a JSON object.
    pub metadata: Option<Arc<str>>,
    /// What was asked for, and how far it is.
    pub lines: Vec<OrderLine>,
    /// What it holds, in the order of its lines.
    pub vouchers: Vec<Allocation>,
    /// What was paid back, in minor units of the total's currency.
    pub refunded: Amount,
    /// Whether nothing more will be delivered.
    pub closed: bool,
    /// What it waits for.
    pub pending_reason: Option<PendingReason>,
    /// The stages it went through, oldest first.
    pub timeline: Vec<Milestone>,
    /// When it was accepted.
    pub created_at: OffsetDateTime,
    /// When it last changed.
    pub updated_at: OffsetDateTime,
}

impl Order {
    /// A cache hit: all that was asked for is allocated, and nothing is left to do.
    #[must_use]
    pub fn delivered(
        order_id: OrderId,
        partner_id: PartnerId,
        priced: &PricedOrder,
        vouchers: Vec<Allocation>,
        at: OffsetDateTime,
    ) -> Self {
        let asked: u32 = priced.lines.iter().map(|line| line.quantity).sum();
        assert_eq!(
            asked as usize,
            vouchers.len(),
            "a delivered order holds exactly what was asked for"
        );
        let mut order = Self::accepted(order_id, partner_id, priced, OrderStatus::Delivered, at);
        order
            .lines
            .iter_mut()
            .for_each(|line| line.delivered = line.quantity);
        order.vouchers = vouchers;
        order.fulfilled_from = Some(Source::Cache);
        order.closed = true;
        order
    }

    /// A cache miss: paid, and nothing allocated yet.
    #[must_use]
    pub fn pending(
        order_id: OrderId,
        partner_id: PartnerId,
        priced: &PricedOrder,
        reason: PendingReason,
        at: OffsetDateTime,
    ) -> Self {
        let mut order = Self::accepted(order_id, partner_id, priced, OrderStatus::Pending, at);
        order.pending_reason = Some(reason);
        for (line, asked) in order.lines.iter_mut().zip(&priced.lines) {
            line.stock_only = !priced.can_buy(asked);
            line.min_validity_days = u32::from(asked.min_validity_days);
        }
        order
    }

    /// Whether nothing became of it since it was placed.
    #[must_use]
    pub fn stands_as_placed(&self) -> bool {
        self.timeline == [Milestone::placed(self.status, self.created_at)]
    }

    /// What the partner has paid and not got back: for what is delivered and for what is pending. Minor units.
    #[must_use]
    pub fn owed(&self) -> Amount {
        let cost = |line: &OrderLine| line.cost(line.quantity - line.failed);
        Amount::from_minor(self.lines.iter().map(cost).sum())
    }

    /// What the partner has paid for what is still to come. Minor units.
    #[must_use]
    pub fn outstanding(&self) -> Amount {
        let cost = |line: &OrderLine| line.cost(line.pending());
        Amount::from_minor(self.lines.iter().map(cost).sum())
    }

    /// Where its vouchers came from; `None` as long as there are none.
    #[must_use]
    pub fn source(&self) -> Option<Source> {
        let sum = |of: fn(&OrderLine) -> u32| -> u32 { self.lines.iter().map(of).sum() };
        match (sum(|line| line.delivered), sum(|line| line.bought)) {
            (0, _) => None,
            (_, 0) => Some(Source::Cache),
            (delivered, bought) if bought >= delivered => Some(Source::Vendor),
            _ => Some(Source::Mixed),
        }
    }

    fn accepted(
        order_id: OrderId,
        partner_id: PartnerId,
        priced: &PricedOrder,
        status: OrderStatus,
        at: OffsetDateTime,
    ) -> Self {
        Self {
            order_id,
            partner_id,
            status,
            total: priced.total,
            fulfilled_from: None,
            reference: priced.reference.clone(),
            metadata: priced.metadata.clone(),
            lines: priced.lines.iter().map(OrderLine::untouched).collect(),
            vouchers: Vec::new(),
            refunded: Amount::ZERO,
            closed: false,
            pending_reason: None,
            timeline: vec![Milestone::placed(status, at)],
            created_at: at,
            updated_at: at,
        }
    }
}

impl OrderLine {
    fn untouched(line: &PricedLine) -> Self {
        Self {
            product_id: line.sku.product_id.clone(),
            denomination: line.sku.denomination,
            unit_price: line.unit_price,
            quantity: line.quantity,
            delivered: 0,
            failed: 0,
            bought: 0,
            stock_only: false,
            min_validity_days: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_read_back() {
        for status in OrderStatus::ALL {
            assert_eq!(OrderStatus::from_word(status.as_str()), Some(status));
            assert_eq!(
                serde_json::to_string(&status).unwrap(),
                format!("\"{}\"", status.as_str())
            );
        }
        assert_eq!(OrderStatus::from_word("delivered"), None);
    }

    #[test]
    fn what_is_neither_delivered_nor_failed_is_pending() {
        let line = |delivered, failed| OrderLine {
            product_id: "p".parse().unwrap(),
            denomination: Amount::from_minor(100),
            unit_price: Amount::from_minor(100),
            quantity: 5,
            delivered,
            failed,
            bought: 0,
            stock_only: false,
            min_validity_days: 0,
        };
        assert_eq!(
            [line(0, 0), line(2, 1), line(5, 0)].map(|l| l.pending()),
            [5, 2, 0]
        );
    }
}
