//! Orders: lines, price, vouchers, status and timeline.

pub mod filter;
mod labels;
pub mod metadata_filter;
pub mod trace;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

pub use self::labels::{Actor, Fulfilment, FulfilmentSource, OrderStatus, PendingReason};
use self::trace::OrderTrace;
use super::ids::{OrderId, PartnerId};
use super::money::{Amount, Money};
use super::product::{ApprovalPolicy, Sku, SupplyRoute};
use super::voucher::Allocation;

/// An entry of an order's timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Milestone {
    /// The status that the order entered.
    pub status: OrderStatus,
    /// When it entered the status.
    #[serde(with = "crate::timestamp")]
    pub at: OffsetDateTime,
    /// Who caused the change.
    pub by: Actor,
    /// The reason, if one was given.
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

/// An order as a flow reads it before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOrder {
    pub order: Order,
    /// Sequence number of its last event.
    pub last_sequence: u32,
}

/// A priced line: known product, allowed denomination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PricedLine {
    pub sku: Sku,
    pub quantity: u32,
    /// Price of one unit, fixed at acceptance. Minor units.
    pub unit_price: Amount,
    /// How a shortfall is covered.
    pub route: SupplyRoute,
    /// Minimum remaining validity of an allocated voucher, in days.
    pub min_validity_days: u16,
    /// When an order of the product needs approval.
    pub approval: ApprovalPolicy,
}

/// A priced order request: the input of the engine's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PricedOrder {
    /// Sorted as in the request.
    pub lines: Vec<PricedLine>,
    pub total: Money,
    pub fulfilment: Fulfilment,
    pub reference: Option<String>,
    /// The partner's metadata: the text of a JSON object.
    pub metadata: Option<Arc<str>>,
}

impl PricedOrder {
    /// Whether a shortfall of this line may be bought.
    #[must_use]
    pub fn can_buy(&self, line: &PricedLine) -> bool {
        line.route == SupplyRoute::Vendor && self.fulfilment == Fulfilment::Auto
    }
}

/// An order line with its progress. Serialized keys are short: lines are stored with every order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderLine {
    #[serde(rename = "p")]
    pub product_id: super::product::ProductId,
    /// Face value in minor units.
    #[serde(rename = "d")]
    pub denomination: Amount,
    /// Price of one unit, fixed at acceptance. Minor units.
    #[serde(rename = "u")]
    pub unit_price: Amount,
    #[serde(rename = "q")]
    pub quantity: u32,
    /// Number of allocated units.
    #[serde(rename = "a")]
    pub delivered: u32,
    /// Number of units that will not be delivered.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub failed: u32,
    /// Number of failed units that were to come or had come when the order was cancelled. The others could
    /// not be had.
    #[serde(rename = "c", default, skip_serializing_if = "is_zero")]
    pub cancelled: u32,
    /// Number of units bought for the order.
    #[serde(rename = "b", default, skip_serializing_if = "is_zero")]
    pub bought: u32,
    /// Whether a shortfall is never bought. Fixed at acceptance of pending orders.
    #[serde(rename = "s", default, skip_serializing_if = "is_false")]
    pub stock_only: bool,
    /// Minimum remaining validity of an allocated voucher, in days. Fixed at acceptance of pending orders.
    #[serde(rename = "m", default, skip_serializing_if = "is_zero")]
    pub min_validity_days: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde requires a reference
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde requires a reference
fn is_false(value: &bool) -> bool {
    !value
}

impl OrderLine {
    /// Number of units still to come.
    #[must_use]
    pub const fn pending(&self) -> u32 {
        self.quantity
            .saturating_sub(self.delivered)
            .saturating_sub(self.failed)
    }

    /// The line's SKU.
    #[must_use]
    pub fn sku(&self) -> Sku {
        Sku {
            product_id: self.product_id.clone(),
            denomination: self.denomination,
        }
    }

    /// The price of `units` units. It cannot overflow: it is a part of the order's total.
    fn cost(&self, units: u32) -> i64 {
        self.unit_price.minor() * i64::from(units)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub order_id: OrderId,
    pub partner_id: PartnerId,
    pub status: OrderStatus,
    pub total: Money,
    pub fulfilled_from: Option<FulfilmentSource>,
    pub reference: Option<String>,
    /// The partner's metadata: the text of a JSON object.
    pub metadata: Option<Arc<str>>,
    pub lines: Vec<OrderLine>,
    /// Sorted by line.
    pub vouchers: Vec<Allocation>,
    /// Vouchers that the order held and that went back to stock, in the order of the lines.
    pub returned: Vec<Allocation>,
    /// In minor units of the total's currency.
    pub refunded: Amount,
    /// Whether no more vouchers will be delivered.
    pub closed: bool,
    pub pending_reason: Option<PendingReason>,
    /// Oldest first.
    pub timeline: Vec<Milestone>,
    pub created_at: OffsetDateTime,
    pub updated_at: OffsetDateTime,
    /// `None` if no request placed it, or a program that kept none.
    pub trace: Option<OrderTrace>,
}

impl Order {
    /// Creates an order that is delivered from stock and complete.
    #[must_use]
    pub fn delivered(
        order_id: OrderId,
        partner_id: PartnerId,
        priced: &PricedOrder,
        vouchers: Vec<Allocation>,
        at: OffsetDateTime,
    ) -> Self {
        let requested: u32 = priced.lines.iter().map(|line| line.quantity).sum();
        assert_eq!(
            requested as usize,
            vouchers.len(),
            "a delivered order holds exactly the requested quantity"
        );
        let mut order = Self::accepted(order_id, partner_id, priced, OrderStatus::Delivered, at);
        order
            .lines
            .iter_mut()
            .for_each(|line| line.delivered = line.quantity);
        order.vouchers = vouchers;
        order.fulfilled_from = Some(FulfilmentSource::Cache);
        order.closed = true;
        order
    }

    /// Creates a paid order with nothing allocated.
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
        for (line, requested) in order.lines.iter_mut().zip(&priced.lines) {
            line.stock_only = !priced.can_buy(requested);
            line.min_validity_days = u32::from(requested.min_validity_days);
        }
        order
    }

    /// Whether the order has not changed since it was placed.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.timeline == [Milestone::placed(self.status, self.created_at)]
    }

    /// The amount the partner has paid and was not refunded, for delivered and pending units. Minor units.
    #[must_use]
    pub fn owed(&self) -> Amount {
        let cost = |line: &OrderLine| line.cost(line.quantity - line.failed);
        Amount::from_minor(self.lines.iter().map(cost).sum())
    }

    /// The amount the partner has paid for pending units. Minor units.
    #[must_use]
    pub fn outstanding(&self) -> Amount {
        let cost = |line: &OrderLine| line.cost(line.pending());
        Amount::from_minor(self.lines.iter().map(cost).sum())
    }

    /// Where the order's vouchers came from; `None` while it has none.
    #[must_use]
    pub fn source(&self) -> Option<FulfilmentSource> {
        self.source_of(self.lines.iter().map(|line| line.delivered).sum())
    }

    /// Where the returned vouchers came from of an order that holds none any more.
    #[must_use]
    pub fn source_of_returned(&self) -> Option<FulfilmentSource> {
        self.source_of(u32::try_from(self.returned.len()).unwrap_or(u32::MAX))
    }

    fn source_of(&self, vouchers: u32) -> Option<FulfilmentSource> {
        match (vouchers, self.lines.iter().map(|line| line.bought).sum::<u32>()) {
            (0, _) => None,
            (_, 0) => Some(FulfilmentSource::Cache),
            (vouchers, bought) if bought >= vouchers => Some(FulfilmentSource::Vendor),
            _ => Some(FulfilmentSource::Mixed),
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
            lines: priced.lines.iter().map(OrderLine::new).collect(),
            vouchers: Vec::new(),
            returned: Vec::new(),
            refunded: Amount::ZERO,
            closed: false,
            pending_reason: None,
            timeline: vec![Milestone::placed(status, at)],
            created_at: at,
            updated_at: at,
            trace: None,
        }
    }
}

impl OrderLine {
    fn new(line: &PricedLine) -> Self {
        Self {
            product_id: line.sku.product_id.clone(),
            denomination: line.sku.denomination,
            unit_price: line.unit_price,
            quantity: line.quantity,
            delivered: 0,
            failed: 0,
            cancelled: 0,
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
    fn pending_units_are_neither_delivered_nor_failed() {
        let line = |delivered, failed| OrderLine {
            product_id: "p".parse().unwrap(),
            denomination: Amount::from_minor(100),
            unit_price: Amount::from_minor(100),
            quantity: 5,
            delivered,
            failed,
            cancelled: 0,
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
