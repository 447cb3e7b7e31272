//! An order: what was asked for, what it costs, what it holds, and the stages it went through.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::ids::{OrderId, PartnerId};
use super::money::{Amount, Money};
use super::product::{Approval, Route, Sku};
use super::voucher::Allocation;

/// The status of an order (contract §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "Where an order is in its life: `PENDING` (accepted, not all in stock, or approval is due), \
    `PROCESSING` (allocation has begun, or approval was given), `PARTIALLY_DELIVERED` (some vouchers are allocated, the \
    rest is pending or failed), `DELIVERED` (all vouchers are allocated), `CANCELLED` (the money is about to come \
    back), `REFUNDED` (wallet credit was returned, nothing stays delivered)."
)]
pub enum OrderStatus {
    /// Accepted; not all in stock, or approval is due.
    Pending,
    /// Allocation has begun, or approval was given.
    Processing,
    /// Some vouchers are allocated, the rest is pending or failed.
    PartiallyDelivered,
    /// All vouchers are allocated.
    Delivered,
    /// Cancelled; the money is about to come back.
    Cancelled,
    /// Wallet credit was returned, nothing stays delivered.
    Refunded,
}

impl OrderStatus {
    /// All of them, in the order of an order's life.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Processing,
        Self::PartiallyDelivered,
        Self::Delivered,
        Self::Cancelled,
        Self::Refunded,
    ];

    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Processing => "PROCESSING",
            Self::PartiallyDelivered => "PARTIALLY_DELIVERED",
            Self::Delivered => "DELIVERED",
            Self::Cancelled => "CANCELLED",
            Self::Refunded => "REFUNDED",
        }
    }

    /// The status of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// What an order still waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "What it waits for: `VENDOR` (vouchers are bought) or `APPROVAL` (an operator decides)."
)]
pub enum PendingReason {
    /// Vouchers are bought from the vendor.
    Vendor,
    /// An operator has to approve.
    Approval,
}

impl PendingReason {
    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vendor => "VENDOR",
            Self::Approval => "APPROVAL",
        }
    }

    /// The reason of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Vendor, Self::Approval]
            .into_iter()
            .find(|reason| reason.as_str() == word)
    }
}

/// Where an order's vouchers came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(
    description = "Where vouchers came from: `cache` (all were held), `vendor` (all were bought), `mixed`."
)]
pub enum Source {
    /// All were held.
    Cache,
    /// All were bought.
    Vendor,
    /// Some of both.
    Mixed,
}

impl Source {
    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Vendor => "vendor",
            Self::Mixed => "mixed",
        }
    }

    /// The source of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Cache, Self::Vendor, Self::Mixed]
            .into_iter()
            .find(|source| source.as_str() == word)
    }
}

/// Who moved an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(description = "Who moved an order: `partner`, `system` (the service itself) or `operator`.")]
pub enum Actor {
    /// The partner.
    Partner,
    /// The service itself.
    System,
    /// An operator.
    Operator,
}

/// An entry of an order's timeline: a status, since when, by whom and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Milestone {
    /// The status that was entered.
    pub status: OrderStatus,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// By whom.
    pub by: Actor,
    /// Why, where somebody said so.
    #[schema(required)]
    pub reason: Option<String>,
}

/// What an order may be fulfilled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(description = "From where: `AUTO` (stock and vendor) or `CACHE_ONLY` (stock alone, or not at all).")]
pub enum Fulfilment {
    /// From stock, and from the vendor where the product has one.
    #[default]
    Auto,
    /// From stock alone, or not at all.
    CacheOnly,
}

/// A line that has a price: known product, allowed denomination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PricedLine {
    /// What.
    pub sku: Sku,
    /// How many.
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

/// A line of an order with its progress. Keys are short since it is stored with every order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderLine {
    /// Which product.
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
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl OrderLine {
    /// How many are still to come.
    #[must_use]
    pub const fn pending(&self) -> u32 {
        self.quantity
            .saturating_sub(self.delivered)
            .saturating_sub(self.failed)
    }
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Its id.
    pub order_id: OrderId,
    /// Whose it is.
    pub partner_id: PartnerId,
    /// Where it stands.
    pub status: OrderStatus,
    /// What it cost.
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
        order
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
            timeline: vec![Milestone {
                status,
                at,
                by: Actor::Partner,
                reason: None,
            }],
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
        };
        assert_eq!(
            [line(0, 0), line(2, 1), line(5, 0)].map(|l| l.pending()),
            [5, 2, 0]
        );
    }
}
