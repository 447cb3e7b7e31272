//! Event payloads (envelopes), expanded from the compact row that the commit wrote.
//!
//! A payload is frozen at emission and nothing is looked up later, so every attempt and the event feed send
//! the same content. No type here has a field that could hold a code.

mod schema;

use std::sync::Arc;

use serde::Serialize;
use time::{Date, OffsetDateTime};

use super::bounds::List;
use super::event::{EventBundle, EventStep, VoucherSnapshot};
use super::event_kind::EventKind;
use super::ids::{EventId, OrderId, TransactionId, VoucherId};
use super::labels::labels;
use super::money::{Currency, Money};
use super::order::{Actor, FulfilmentSource, OrderStatus, PendingReason};
use super::product::ProductId;

pub use self::schema::Event;

/// Maximum vouchers that an event of an order lists. With the longest product ids and metadata, the event
/// stays below 100,000 bytes, and so below the body limit that receivers have by default (102,400 bytes in
/// Express).
pub const MAX_EVENT_VOUCHERS: usize = 300;

type EventVouchers = List<EventVoucher, 0, MAX_EVENT_VOUCHERS>;

/// An event, as webhooks and the event feed deliver it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Envelope {
    /// What happened.
    pub event: EventKind,
    /// The event's id, the same on every attempt.
    pub event_id: EventId,
    /// When the event was committed.
    #[serde(with = "super::timestamp")]
    pub created_at: OffsetDateTime,
    /// The order or voucher that the event is about.
    #[schema(value_type = Object)]
    pub data: EventData,
}

/// The subject of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum EventData {
    /// The order, for `order.*` events.
    Order(Box<OrderEventData>),
    /// The voucher, for `voucher.issued`.
    Voucher(VoucherEventData),
}

/// The order as it was at the event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct OrderEventData {
    /// The order's id.
    pub order_id: OrderId,
    /// The order's status.
    pub status: OrderStatus,
    /// The order's total price.
    pub total_amount: Money,
    /// Currency of the amounts.
    pub currency: Currency,
    /// Where the order's vouchers came from; null while it has none.
    #[schema(required)]
    pub fulfilled_from: Option<FulfilmentSource>,
    /// Your reference for the order.
    #[schema(required)]
    pub reference: Option<String>,
    /// Your metadata, as you sent it.
    #[serde(with = "crate::json_text")]
    #[schema(required, value_type = Option<Object>)]
    pub metadata: Option<Arc<str>>,
    /// The order's first 300 vouchers, without codes; codes are retrieved separately.
    #[schema(value_type = EventVouchers)]
    pub vouchers: Vec<EventVoucher>,
    /// Number of the order's vouchers.
    pub voucher_count: usize,
    /// Sequence number of the event within its order, from 1.
    #[schema(minimum = 1)]
    pub sequence: u32,
    /// Only in `order.processing`: what the order waits for, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PendingReason>)]
    pub pending_reason: Option<Option<PendingReason>>,
    /// Only in `order.partially_delivered`: number of allocated units.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub delivered: Option<u32>,
    /// Only in `order.partially_delivered`: number of units still to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub pending: Option<u32>,
    /// Only in `order.partially_delivered`: number of units that will not be delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failed: Option<u32>,
    /// Only in `order.cancelled`: who cancelled the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub by: Option<Actor>,
    /// Only in `order.cancelled`: the reason, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Option<String>>,
    /// Only in `order.refunded`: the refund.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub refund: Option<Refund>,
}

/// A voucher of an order, without its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EventVoucher {
    /// The voucher's id.
    pub voucher_id: VoucherId,
    /// The voucher's product.
    pub product_id: ProductId,
    /// Last day on which the voucher is valid; null if it never expires.
    #[schema(required, value_type = Option<Date>)]
    #[serde(with = "day")]
    pub expiry: Option<Date>,
}

/// Wallet credit that was returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Refund {
    /// The refund transaction.
    pub transaction_id: TransactionId,
    /// Refunded amount.
    pub amount: Money,
    /// Currency of the amount.
    pub currency: Currency,
    /// Whether the whole order was refunded, or a part of it.
    pub scope: RefundScope,
}

labels! {
    /// How much of an order a refund covers.
    pub enum RefundScope: "lowercase",
        "`full` (the order is refunded; none of its vouchers is valid any more), `partial` (units that were not delivered, or were \
         taken back, are refunded; the order's vouchers stay valid)." {
        Full,
        Partial,
    }
}

/// A voucher that was allocated to an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct VoucherEventData {
    /// The order's id.
    pub order_id: OrderId,
    /// The voucher's id.
    pub voucher_id: VoucherId,
    /// The voucher's product.
    pub product_id: ProductId,
    /// The voucher's face value.
    pub denomination: Money,
    /// Currency of the face value.
    pub currency: Currency,
    /// Last day on which the voucher is valid; null if it never expires.
    #[schema(required, value_type = Option<Date>)]
    #[serde(with = "day")]
    pub expiry: Option<Date>,
    /// Sequence number of the event within its order, from 1.
    #[schema(minimum = 1)]
    pub sequence: u32,
}

impl EventBundle {
    /// The kind of the event at `index` in the bundle, from 0; `None` past its end.
    #[must_use]
    pub fn kind(&self, index: u32) -> Option<EventKind> {
        self.step_at(index).map(|(step, _)| EventKind::of(step))
    }

    /// The payload of the event at `index` in the bundle; `None` past its end, and where the row is
    /// incomplete.
    #[must_use]
    pub fn data(&self, index: u32) -> Option<EventData> {
        let (step, offset) = self.step_at(index)?;
        let sequence = self.first_sequence.checked_add(index)?;
        match step {
            EventStep::Issued { first, .. } => {
                let voucher_index = usize::try_from(first.checked_add(offset)?).ok()?;
                self.voucher_data(self.vouchers.get(voucher_index)?, sequence)
                    .map(EventData::Voucher)
            }
            step => self
                .order_data(step, sequence)
                .map(Box::new)
                .map(EventData::Order),
        }
    }

    /// The step that contains the event at `index`, and the event's index within the step.
    fn step_at(&self, index: u32) -> Option<(&EventStep, u32)> {
        let mut remaining = index;
        for step in &self.steps {
            if remaining < step.count() {
                return Some((step, remaining));
            }
            remaining -= step.count();
        }
        None
    }

    fn order_data(&self, step: &EventStep, sequence: u32) -> Option<OrderEventData> {
        let vouchers = self.vouchers.iter().take(MAX_EVENT_VOUCHERS).map(|voucher| {
            Some(EventVoucher {
                voucher_id: voucher.voucher_id,
                product_id: self.line(voucher)?.0.clone(),
                expiry: expiry(voucher),
            })
        });
        let mut data = OrderEventData {
            order_id: self.order_id,
            status: self.status_at(step),
            total_amount: self.total.of(self.currency),
            currency: self.currency,
            fulfilled_from: self.fulfilled_from,
            reference: self.reference.clone(),
            metadata: self.metadata.clone(),
            vouchers: vouchers.collect::<Option<_>>()?,
            voucher_count: self.vouchers.len(),
            sequence,
            pending_reason: None,
            delivered: None,
            pending: None,
            failed: None,
            by: None,
            reason: None,
            refund: None,
        };
        self.add_step_fields(step, &mut data);
        Some(data)
    }

    /// A commit may take an order through several states; each event reports the state it stands for.
    const fn status_at(&self, step: &EventStep) -> OrderStatus {
        match step {
            EventStep::Processing => OrderStatus::Processing,
            EventStep::PartiallyDelivered { .. } => OrderStatus::PartiallyDelivered,
            EventStep::Delivered => OrderStatus::Delivered,
            EventStep::Cancelled { .. } => OrderStatus::Cancelled,
            EventStep::Created | EventStep::Issued { .. } | EventStep::Refunded { .. } => self.status,
        }
    }

    /// Sets the fields that only this kind of event has.
    fn add_step_fields(&self, step: &EventStep, data: &mut OrderEventData) {
        match step {
            EventStep::Created | EventStep::Issued { .. } | EventStep::Delivered => {}
            EventStep::Processing => data.pending_reason = Some(self.pending_reason),
            EventStep::PartiallyDelivered {
                delivered,
                pending,
                failed,
            } => {
                data.delivered = Some(*delivered);
                data.pending = Some(*pending);
                data.failed = Some(*failed);
            }
            EventStep::Cancelled { by, reason } => {
                data.by = Some(*by);
                data.reason = Some(reason.clone());
            }
            EventStep::Refunded {
                transaction_id,
                amount,
            } => {
                data.refund = Some(Refund {
                    transaction_id: *transaction_id,
                    amount: amount.of(self.currency),
                    currency: self.currency,
                    scope: match self.status {
                        OrderStatus::Refunded => RefundScope::Full,
                        _ => RefundScope::Partial,
                    },
                });
            }
        }
    }

    fn voucher_data(&self, voucher: &VoucherSnapshot, sequence: u32) -> Option<VoucherEventData> {
        let (product_id, denomination) = self.line(voucher)?;
        Some(VoucherEventData {
            order_id: self.order_id,
            voucher_id: voucher.voucher_id,
            product_id: product_id.clone(),
            denomination: denomination.of(self.currency),
            currency: self.currency,
            expiry: expiry(voucher),
            sequence,
        })
    }

    fn line(&self, voucher: &VoucherSnapshot) -> Option<&(ProductId, super::money::Amount)> {
        self.lines.get(usize::try_from(voucher.line).ok()?)
    }
}

fn expiry(voucher: &VoucherSnapshot) -> Option<Date> {
    voucher.expiry.and_then(|day| Date::from_julian_day(day).ok())
}

/// Serializes a date as `YYYY-MM-DD` or null.
mod day {
    use serde::{Serialize as _, Serializer};
    use time::Date;

    #[allow(clippy::ref_option)] // the signature that serde requires
    pub(super) fn serialize<S: Serializer>(day: &Option<Date>, serializer: S) -> Result<S::Ok, S::Error> {
        day.map(|day| day.to_string()).serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
