//! An order on the wire: POST and GET give the same bytes. It has no field that could hold a code.

use serde::Serialize;
use serde_json::value::RawValue;
use time::{Date, OffsetDateTime};
use vouchsafe_actors::domain::ids::{OrderId, VoucherId};
use vouchsafe_actors::domain::money::{Currency, Money};
use vouchsafe_actors::domain::order::{Milestone, Order, OrderLine, OrderStatus, PendingReason, Source};
use vouchsafe_actors::domain::product::ProductId;
use vouchsafe_actors::domain::voucher::Allocation;

time::serde::format_description!(iso_day, Date, "[year]-[month]-[day]");

/// The object of contract §3.
#[derive(Debug, Serialize)]
pub struct OrderBody<'a> {
    order_id: OrderId,
    status: OrderStatus,
    total_amount: Money,
    currency: Currency,
    fulfilled_from: Option<Source>,
    reference: Option<&'a str>,
    metadata: Option<&'a RawValue>,
    items: Vec<ItemBody<'a>>,
    vouchers: Vec<VoucherBody<'a>>,
    refunded_amount: Money,
    closed: bool,
    pending_reason: Option<PendingReason>,
    timeline: &'a [Milestone],
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
}

#[derive(Debug, Serialize)]
struct ItemBody<'a> {
    product_id: &'a ProductId,
    denomination: Money,
    quantity: u32,
    delivered: u32,
    pending: u32,
    failed: u32,
}

#[derive(Debug, Serialize)]
struct VoucherBody<'a> {
    voucher_id: VoucherId,
    product_id: &'a ProductId,
    denomination: Money,
    #[serde(with = "iso_day::option")]
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
