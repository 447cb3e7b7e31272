//! JSON representation of an order, the same from POST, GET and lists. It has no field for voucher codes.

use serde::Serialize;
use serde_json::value::RawValue;
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;
use vouchsafe_domain::ids::{OrderId, VoucherId};
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::order::{FulfilmentSource, Milestone, Order, OrderLine, OrderStatus, PendingReason};
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::voucher::Allocation;

use super::request::Metadata;
use crate::json;

/// An order with its items, vouchers and history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Order)]
pub struct OrderBody<'a> {
    /// Identifies the order.
    order_id: OrderId,
    /// Current status of the order.
    status: OrderStatus,
    /// Total price: the sum of all items.
    total_amount: Money,
    /// Currency of all amounts of the order.
    currency: Currency,
    /// Where the vouchers came from. Null until the first voucher is allocated. A cancelled order keeps it.
    #[schema(required)]
    fulfilled_from: Option<FulfilmentSource>,
    /// Your reference for the order.
    #[schema(required)]
    reference: Option<&'a str>,
    /// Your metadata, exactly as you sent it.
    #[schema(required, value_type = Option<Metadata>)]
    metadata: Option<&'a RawValue>,
    /// The ordered items with their delivery state.
    items: Vec<OrderItem<'a>>,
    /// The allocated vouchers, without codes. `GET /orders/{order_id}/vouchers` returns the codes.
    vouchers: Vec<OrderVoucher<'a>>,
    /// Vouchers that were allocated and then went back to stock, because the order or a part of it was
    /// cancelled. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    returned_vouchers: Vec<OrderVoucher<'a>>,
    /// Amount returned to the wallet so far.
    refunded_amount: Money,
    /// Whether the order is final: no more vouchers will be delivered.
    closed: bool,
    /// What the order is waiting for. Null when it waits for nothing.
    #[schema(required)]
    pending_reason: Option<PendingReason>,
    /// Status history, oldest first.
    timeline: &'a [Milestone],
    /// When the order was accepted.
    #[serde(with = "vouchsafe_domain::timestamp")]
    created_at: OffsetDateTime,
    /// When the order last changed.
    #[serde(with = "vouchsafe_domain::timestamp")]
    updated_at: OffsetDateTime,
}

/// An item of an order.
#[derive(Debug, Serialize, ToSchema)]
struct OrderItem<'a> {
    /// The ordered product.
    product_id: &'a ProductId,
    /// Face value of each voucher.
    denomination: Money,
    /// Number of vouchers ordered.
    quantity: u32,
    /// Number of vouchers allocated so far.
    delivered: u32,
    /// Number of vouchers still to be delivered.
    pending: u32,
    /// Number of vouchers that could not be delivered, or that an operator took back of an order that it did
    /// not cancel.
    failed: u32,
    /// Number of vouchers that were delivered or still pending when the order was cancelled.
    cancelled: u32,
}

/// A voucher of an order, without its code.
#[derive(Debug, Serialize, ToSchema)]
struct OrderVoucher<'a> {
    /// Identifies the voucher.
    voucher_id: VoucherId,
    /// Product of the voucher.
    product_id: &'a ProductId,
    /// Face value of the voucher.
    denomination: Money,
    /// Last day on which the voucher is valid (UTC). Null if it does not expire.
    #[serde(with = "vouchsafe_domain::iso_date::option")]
    #[schema(required)]
    expiry: Option<Date>,
    /// When its code was first read. Null until then.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    first_retrieved_at: Option<OffsetDateTime>,
}

impl<'a> OrderBody<'a> {
    #[must_use]
    pub const fn order_id(&self) -> OrderId {
        self.order_id
    }

    /// The wire representation of an order.
    ///
    /// # Errors
    /// Returns an error if the stored metadata is not JSON, which is a bug: it was validated before it was
    /// stored.
    pub fn of(order: &'a Order) -> Result<Self, serde_json::Error> {
        let currency = order.total.currency;
        Ok(Self {
            order_id: order.order_id,
            status: order.status,
            total_amount: order.total,
            currency,
            fulfilled_from: order.fulfilled_from.or_else(|| order.source_of_returned()),
            reference: order.reference.as_deref(),
            metadata: order.metadata.as_deref().map(serde_json::from_str).transpose()?,
            items: order
                .lines
                .iter()
                .map(|line| OrderItem::of(line, order))
                .collect(),
            vouchers: order
                .vouchers
                .iter()
                .map(|allocation| OrderVoucher::of(allocation, currency))
                .collect(),
            returned_vouchers: order
                .returned
                .iter()
                .map(|allocation| OrderVoucher::of(allocation, currency))
                .collect(),
            refunded_amount: order.refunded.of(currency),
            closed: order.closed,
            pending_reason: order.pending_reason,
            timeline: &order.timeline,
            created_at: order.created_at,
            updated_at: order.updated_at,
        })
    }

    /// Extracts the id, which is the first field of an order's JSON.
    #[must_use]
    pub fn id_in(body: &[u8]) -> Option<&str> {
        json::leading_text(body, "order_id", OrderId::TEXT_LENGTH)
    }
}

impl<'a> OrderItem<'a> {
    fn of(line: &'a OrderLine, order: &Order) -> Self {
        Self {
            product_id: &line.product_id,
            denomination: line.denomination.of(order.total.currency),
            quantity: line.quantity,
            delivered: line.delivered,
            pending: line.pending(),
            failed: line.failed - line.cancelled,
            cancelled: line.cancelled,
        }
    }
}

impl<'a> OrderVoucher<'a> {
    fn of(allocation: &'a Allocation, currency: Currency) -> Self {
        Self {
            voucher_id: allocation.voucher_id,
            product_id: &allocation.sku.product_id,
            denomination: allocation.sku.denomination.of(currency),
            expiry: allocation.voucher.expiry.date(),
            first_retrieved_at: allocation.first_retrieved_at,
        }
    }
}
