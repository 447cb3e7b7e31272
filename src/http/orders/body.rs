//! An order on the wire: POST and GET give the same bytes. It has no field that could hold a code.

use serde::Serialize;
use serde_json::value::RawValue;
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;
use vouchsafe_actors::domain::ids::{OrderId, VoucherId};
use vouchsafe_actors::domain::money::{Currency, Money};
use vouchsafe_actors::domain::order::{Milestone, Order, OrderLine, OrderStatus, PendingReason, Source};
use vouchsafe_actors::domain::product::ProductId;
use vouchsafe_actors::domain::voucher::Allocation;

use super::request::Metadata;

time::serde::format_description!(iso_day, Date, "[year]-[month]-[day]");

/// An order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Order)]
pub struct OrderBody<'a> {
    /// Its id.
    order_id: OrderId,
    /// Where it is in its life.
    status: OrderStatus,
    /// What it costs: the sum of its items.
    total_amount: Money,
    /// Of what.
    currency: Currency,
    /// Where its vouchers came from, once some are allocated.
    #[schema(required)]
    fulfilled_from: Option<Source>,
    /// What the partner calls it.
    #[schema(required)]
    reference: Option<&'a str>,
    /// What the partner keeps with it, as it was sent.
    #[schema(required, value_type = Option<Metadata>)]
    metadata: Option<&'a RawValue>,
    /// What was ordered, and what became of it.
    items: Vec<ItemBody<'a>>,
    /// The vouchers that are allocated. Their codes have an endpoint of their own.
    vouchers: Vec<VoucherBody<'a>>,
    /// What went back to the wallet.
    refunded_amount: Money,
    /// Whether nothing more will be delivered.
    closed: bool,
    /// What it still waits for.
    #[schema(required)]
    pending_reason: Option<PendingReason>,
    /// How it came here, oldest first.
    timeline: &'a [Milestone],
    /// When it was accepted.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    created_at: OffsetDateTime,
    /// When something about it last changed.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    updated_at: OffsetDateTime,
}

/// A line of an order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderItem)]
struct ItemBody<'a> {
    /// What.
    product_id: &'a ProductId,
    /// At which face value.
    denomination: Money,
    /// How many.
    quantity: u32,
    /// How many of them are allocated.
    delivered: u32,
    /// How many of them are still to come.
    pending: u32,
    /// How many of them can never be had.
    failed: u32,
}

/// A voucher of an order, without its code.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderVoucher)]
struct VoucherBody<'a> {
    /// Its id.
    voucher_id: VoucherId,
    /// Of which product.
    product_id: &'a ProductId,
    /// Its face value.
    denomination: Money,
    /// The last day on which it is valid (UTC); null where it never ends.
    #[serde(with = "iso_day::option")]
    #[schema(required)]
    expiry: Option<Date>,
}

impl<'a> OrderBody<'a> {
    /// Which order.
    #[must_use]
    pub const fn order_id(&self) -> OrderId {
        self.order_id
    }

    /// The order as partners see it; `metadata` is the text that came with it.
    ///
    /// # Errors
    /// When the metadata is no JSON, which would be a fault of ours: it was read before it was kept.
    pub fn of(order: &'a Order) -> Result<Self, serde_json::Error> {
        let currency = order.total.currency;
        Ok(Self {
            order_id: order.order_id,
            status: order.status,
            total_amount: order.total,
            currency,
            fulfilled_from: order.fulfilled_from,
            reference: order.reference.as_deref(),
            metadata: order.metadata.as_deref().map(serde_json::from_str).transpose()?,
            items: order
                .lines
                .iter()
                .map(|line| ItemBody::of(line, currency))
                .collect(),
            vouchers: order
                .vouchers
                .iter()
                .map(|allocation| VoucherBody::of(allocation, currency))
                .collect(),
            refunded_amount: order.refunded.of(currency),
            closed: order.closed,
            pending_reason: order.pending_reason,
            timeline: &order.timeline,
            created_at: order.created_at,
            updated_at: order.updated_at,
        })
    }
}

impl<'a> ItemBody<'a> {
    fn of(line: &'a OrderLine, currency: Currency) -> Self {
        Self {
            product_id: &line.product_id,
            denomination: line.denomination.of(currency),
            quantity: line.quantity,
            delivered: line.delivered,
            pending: line.pending(),
            failed: line.failed,
        }
    }
}

impl<'a> VoucherBody<'a> {
    fn of(allocation: &'a Allocation, currency: Currency) -> Self {
        Self {
            voucher_id: allocation.voucher_id,
            product_id: &allocation.sku.product_id,
            denomination: allocation.sku.denomination.of(currency),
            expiry: allocation.voucher.expiry.date(),
        }
    }
}
