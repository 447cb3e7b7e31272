//! How is one event told? The envelope of the spec, spelled out of the compact row that its commit wrote.
//!
//! Rules: what is told is frozen at emission: nothing is looked up, so every attempt and the feed tell the same. No type
//! here has a field that could hold a code.

use serde::Serialize;
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;

use super::event::{EventBundle, Step, TaleVoucher};
use super::event_kind::EventKind;
use super::ids::{EventId, OrderId, TransactionId, VoucherId};
use super::money::{Currency, Money};
use super::order::{Actor, OrderStatus, PendingReason, Source};
use super::product::ProductId;

/// One event, as an endpoint and the feed get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct Envelope {
    /// What happened.
    pub event: EventKind,
    /// Its id, the same on every attempt.
    pub event_id: EventId,
    /// When it was committed.
    #[serde(with = "super::moment")]
    pub created_at: OffsetDateTime,
    /// What it is about.
    pub data: EventData,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum EventData {
    /// An order, of an `order.*` event.
    Order(Box<OrderTale>),
    /// A voucher, of `voucher.issued`.
    Voucher(VoucherTale),
}

/// The order as it was at the event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = OrderEventData)]
pub struct OrderTale {
    /// Which.
    pub order_id: OrderId,
    /// Its status.
    pub status: OrderStatus,
    /// What all of it costs.
    pub total_amount: Money,
    /// In this currency.
    pub currency: Currency,
    /// Where its vouchers came from; null while it has none.
    #[schema(required)]
    pub fulfilled_from: Option<Source>,
    /// What it holds; the codes are retrieved apart.
    pub vouchers: Vec<ShownVoucher>,
    /// The order's number of this event, from 1 over all its events.
    #[schema(minimum = 1)]
    pub sequence: u32,
    /// Of `order.processing`: what it waits for, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PendingReason>)]
    pub pending_reason: Option<Option<PendingReason>>,
    /// Of `order.partially_delivered`: how many units are allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u32>,
    /// Of `order.partially_delivered`: how many are still to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<u32>,
    /// Of `order.partially_delivered`: how many can never be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// Of `order.cancelled`: by whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// Of `order.cancelled`: why, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Option<String>>,
    /// Of `order.refunded`: what came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refund: Option<Refund>,
}

/// A voucher of an order, without its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = EventVoucher)]
pub struct ShownVoucher {
    /// Its product.
    pub product_id: ProductId,
    /// The last day on which it is valid; null for ever.
    #[schema(required, value_type = Option<Date>)]
    #[serde(with = "day")]
    pub expiry: Option<Date>,
}

/// Wallet credit that was returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Refund {
    /// The transaction that returned it.
    pub transaction_id: TransactionId,
    /// How much.
    pub amount: Money,
    /// In this currency.
    pub currency: Currency,
}

/// A voucher that was allocated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = VoucherEventData)]
pub struct VoucherTale {
    /// To which order.
    pub order_id: OrderId,
    /// Which voucher.
    pub voucher_id: VoucherId,
    /// Its product.
    pub product_id: ProductId,
    /// Its face value.
    pub denomination: Money,
    /// In this currency.
    pub currency: Currency,
    /// The last day on which it is valid; null for ever.
    #[schema(required, value_type = Option<Date>)]
    #[serde(with = "day")]
    pub expiry: Option<Date>,
    /// The order's number of this event, from 1 over all its events.
    #[schema(minimum = 1)]
    pub sequence: u32,
}

impl EventBundle {
    /// The kind of the event at this place of the bundle, from 0; `None` behind its end.
    #[must_use]
    pub fn kind(&self, place: u32) -> Option<EventKind> {
        self.step(place).map(|(step, _)| EventKind::of(step))
    }

    /// What the event at this place of the bundle tells; `None` behind its end, and where a row is not whole.
    #[must_use]
    pub fn tell(&self, place: u32) -> Option<EventData> {
        let (step, within) = self.step(place)?;
        let sequence = self.first_sequence.checked_add(place)?;
        match step {
            Step::Issued { first, .. } => {
                let index = usize::try_from(first.checked_add(within)?).ok()?;
                self.issued(self.vouchers.get(index)?, sequence)
                    .map(EventData::Voucher)
            }
            step => self.order(step, sequence).map(Box::new).map(EventData::Order),
        }
    }

    /// The step that a place belongs to, and which event of the step it is.
    fn step(&self, place: u32) -> Option<(&Step, u32)> {
        let mut left = place;
        for step in &self.steps {
            if left < step.count() {
                return Some((step, left));
            }
            left -= step.count();
        }
        None
    }

    fn order(&self, step: &Step, sequence: u32) -> Option<OrderTale> {
        let vouchers = self.vouchers.iter().map(|voucher| {
            Some(ShownVoucher {
                product_id: self.line(voucher)?.0.clone(),
                expiry: expiry(voucher),
            })
        });
        let mut tale = OrderTale {
            order_id: self.order_id,
            status: self.status_at(step),
            total_amount: self.total.of(self.currency),
            currency: self.currency,
            fulfilled_from: self.fulfilled_from,
            vouchers: vouchers.collect::<Option<_>>()?,
            sequence,
            pending_reason: None,
            delivered: None,
            pending: None,
            failed: None,
            by: None,
            reason: None,
            refund: None,
        };
        self.add(step, &mut tale);
        Some(tale)
    }

    /// A commit may take an order through several states; each event tells the one that it stands for.
    const fn status_at(&self, step: &Step) -> OrderStatus {
        match step {
            Step::Processing => OrderStatus::Processing,
            Step::PartiallyDelivered { .. } => OrderStatus::PartiallyDelivered,
            Step::Delivered => OrderStatus::Delivered,
            Step::Cancelled { .. } => OrderStatus::Cancelled,
            Step::Created | Step::Issued { .. } | Step::Refunded { .. } => self.status,
        }
    }

    /// What is told of this kind of event alone.
    fn add(&self, step: &Step, tale: &mut OrderTale) {
        match step {
            Step::Created | Step::Issued { .. } | Step::Delivered => {}
            Step::Processing => tale.pending_reason = Some(self.pending_reason),
            Step::PartiallyDelivered {
                delivered,
                pending,
                failed,
            } => {
                tale.delivered = Some(*delivered);
                tale.pending = Some(*pending);
                tale.failed = Some(*failed);
            }
            Step::Cancelled { by, reason } => {
                tale.by = Some(*by);
                tale.reason = Some(reason.clone());
            }
            Step::Refunded {
                transaction_id,
                amount,
            } => {
                tale.refund = Some(Refund {
                    transaction_id: *transaction_id,
                    amount: amount.of(self.currency),
                    currency: self.currency,
                });
            }
        }
    }

    fn issued(&self, voucher: &TaleVoucher, sequence: u32) -> Option<VoucherTale> {
        let (product_id, denomination) = self.line(voucher)?;
        Some(VoucherTale {
            order_id: self.order_id,
            voucher_id: voucher.voucher_id,
            product_id: product_id.clone(),
            denomination: denomination.of(self.currency),
            currency: self.currency,
            expiry: expiry(voucher),
            sequence,
        })
    }

    fn line(&self, voucher: &TaleVoucher) -> Option<&(ProductId, super::money::Amount)> {
        self.lines.get(usize::try_from(voucher.line).ok()?)
    }
}

fn expiry(voucher: &TaleVoucher) -> Option<Date> {
    voucher.expiry.and_then(|day| Date::from_julian_day(day).ok())
}

/// A day on the wire: `YYYY-MM-DD`, or null.
mod day {
    use serde::{Serialize as _, Serializer};
    use time::Date;

    #[allow(clippy::ref_option)] // serde asks for it
    pub(super) fn serialize<S: Serializer>(day: &Option<Date>, serializer: S) -> Result<S::Ok, S::Error> {
        day.map(|day| day.to_string()).serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
