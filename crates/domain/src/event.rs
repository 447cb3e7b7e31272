//! Order events in compact form: one row per commit and order, expanded into payloads when it is read.
//!
//! A bundle holds the order as it was at emission and is never updated. No type here has a field that could
//! hold a code.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ids::{OrderId, TransactionId, VoucherId};
use super::money::{Amount, Currency};
use super::order::{Actor, FulfilmentSource, Order, OrderStatus, PendingReason};
use super::product::ProductId;
use super::voucher::{Allocation, Expiry};

/// One or more events of the same commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventStep {
    #[serde(rename = "c")]
    Created,
    /// `voucher.issued` for `count` vouchers of the snapshot, starting at index `first`.
    #[serde(rename = "i")]
    Issued {
        #[serde(rename = "f")]
        first: u32,
        #[serde(rename = "n")]
        count: u32,
    },
    #[serde(rename = "p")]
    Processing,
    /// `order.partially_delivered`, with the number of units in each state.
    #[serde(rename = "q")]
    PartiallyDelivered {
        #[serde(rename = "d")]
        delivered: u32,
        #[serde(rename = "p")]
        pending: u32,
        #[serde(rename = "f")]
        failed: u32,
    },
    #[serde(rename = "d")]
    Delivered,
    #[serde(rename = "x")]
    Cancelled {
        #[serde(rename = "b")]
        by: Actor,
        #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    #[serde(rename = "r")]
    Refunded {
        /// The ledger entry of the refund.
        #[serde(rename = "t")]
        transaction_id: TransactionId,
        /// In minor units of the order's currency.
        #[serde(rename = "a")]
        amount: Amount,
    },
}

impl EventStep {
    /// The number of events in this step.
    #[must_use]
    pub const fn count(&self) -> u32 {
        match self {
            Self::Issued { count, .. } => *count,
            _ => 1,
        }
    }
}

/// A voucher in a bundle's snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoucherSnapshot {
    #[serde(rename = "v")]
    pub voucher_id: VoucherId,
    /// Index of the snapshot line it belongs to.
    #[serde(rename = "l")]
    pub line: u32,
    /// The last valid day as a Julian day; absent if it never expires.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<i32>,
}

/// The events of one commit about one order, with a snapshot of the order. Serialized keys are short: there
/// is a row per order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventBundle {
    /// Stored in a column of its own.
    #[serde(skip, default = "OrderId::nil")]
    pub order_id: OrderId,
    /// Sequence number of the first event within the order, from 1.
    #[serde(rename = "n")]
    pub first_sequence: u32,
    /// Oldest first.
    #[serde(rename = "s")]
    pub steps: Vec<EventStep>,
    #[serde(rename = "o")]
    pub status: OrderStatus,
    /// In minor units.
    #[serde(rename = "t")]
    pub total: Amount,
    #[serde(rename = "c")]
    pub currency: Currency,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub fulfilled_from: Option<FulfilmentSource>,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub pending_reason: Option<PendingReason>,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The partner's metadata: the text of a JSON object.
    #[serde(
        rename = "m",
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::json_text"
    )]
    pub metadata: Option<Arc<str>>,
    /// The order's lines: product and face value in minor units.
    #[serde(rename = "l")]
    pub lines: Vec<(ProductId, Amount)>,
    #[serde(rename = "v", default, skip_serializing_if = "Vec::is_empty")]
    pub vouchers: Vec<VoucherSnapshot>,
}

impl OrderId {
    /// The nil id; a placeholder until the database column supplies the id.
    #[must_use]
    pub const fn nil() -> Self {
        Self::from_uuid(uuid::Uuid::nil())
    }
}

impl EventBundle {
    /// Removes the texts that a partner or an operator wrote.
    pub fn erase(&mut self) {
        self.reference = None;
        self.metadata = None;
        for step in &mut self.steps {
            if let EventStep::Cancelled { reason, .. } = step {
                *reason = None;
            }
        }
    }

    /// The events of a new order: created and, if it is delivered from stock, each voucher and the delivery.
    #[must_use]
    pub fn for_new_order(order: &Order) -> Self {
        let mut steps = vec![EventStep::Created];
        if order.status == OrderStatus::Delivered {
            let count = u32::try_from(order.vouchers.len()).unwrap_or(u32::MAX);
            steps.extend([EventStep::Issued { first: 0, count }, EventStep::Delivered]);
        }
        Self::for_changed_order(order, 1, steps)
    }

    /// The events of a changed order. `first_sequence` is the sequence number of the first of them within the
    /// order.
    #[must_use]
    pub fn for_changed_order(order: &Order, first_sequence: u32, steps: Vec<EventStep>) -> Self {
        Self {
            order_id: order.order_id,
            first_sequence,
            steps,
            status: order.status,
            total: order.total.amount,
            currency: order.total.currency,
            fulfilled_from: order.fulfilled_from,
            pending_reason: order.pending_reason,
            reference: order.reference.clone(),
            metadata: order.metadata.clone(),
            lines: order
                .lines
                .iter()
                .map(|line| (line.product_id.clone(), line.denomination))
                .collect(),
            vouchers: order.vouchers.iter().map(snapshot).collect(),
        }
    }

    /// The number of events in the bundle.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.steps.iter().map(EventStep::count).sum()
    }

    /// Sequence number of the last event within the order.
    #[must_use]
    pub fn last_sequence(&self) -> u32 {
        (self.first_sequence + self.count()).saturating_sub(1)
    }
}

fn snapshot(allocation: &Allocation) -> VoucherSnapshot {
    VoucherSnapshot {
        voucher_id: allocation.voucher_id,
        line: u32::from(allocation.line),
        expiry: julian_day(allocation.voucher.expiry),
    }
}

fn julian_day(expiry: Expiry) -> Option<i32> {
    expiry.date().map(time::Date::to_julian_day)
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;
    use crate::fixtures::priced_lines;
    use crate::ids::{ChunkId, PartnerId, StockId};
    use crate::order::PricedOrder;
    use crate::voucher::StockVoucher;

    fn allocations(order: &PricedOrder) -> Vec<Allocation> {
        let skus = (0..)
            .zip(&order.lines)
            .flat_map(|(line, l)| std::iter::repeat_n((line, l.sku.clone()), l.quantity as usize));
        skus.zip(1..)
            .map(|((line, sku), n)| {
                let stocked = StockVoucher {
                    expiry: Expiry::on(date!(2027 - 01 - 01)),
                    stock_id: StockId(n),
                    chunk_id: ChunkId(1),
                };
                Allocation::new(VoucherId::generate(), line, sku, stocked)
            })
            .collect()
    }

    fn delivered(quantities: &[u32]) -> Order {
        let (priced, at) = (priced_lines(quantities), datetime!(2026-01-01 0:00 UTC));
        let (order_id, partner_id) = (OrderId::generate_at(at), PartnerId::generate());
        Order::delivered(order_id, partner_id, &priced, allocations(&priced), at)
    }

    #[test]
    fn order_delivered_from_stock_emits_created_issued_and_delivered() {
        let bundle = EventBundle::for_new_order(&delivered(&[2, 1]));
        assert_eq!(
            bundle.steps,
            [
                EventStep::Created,
                EventStep::Issued { first: 0, count: 3 },
                EventStep::Delivered
            ]
        );
        assert_eq!(bundle.count(), 5);
        assert_eq!(
            bundle.vouchers.iter().map(|v| v.line).collect::<Vec<_>>(),
            [0, 0, 1]
        );
    }

    #[test]
    fn pending_order_emits_created_only() {
        let at = datetime!(2026-01-01 0:00 UTC);
        let order = Order::pending(
            OrderId::generate_at(at),
            PartnerId::generate(),
            &priced_lines(&[3]),
            PendingReason::Vendor,
            at,
        );
        let bundle = EventBundle::for_new_order(&order);
        assert_eq!(
            (bundle.steps.as_slice(), bundle.count()),
            (&[EventStep::Created][..], 1)
        );
    }

    #[test]
    fn bundle_round_trips_and_stays_under_200_bytes() {
        let mut bundle = EventBundle::for_new_order(&delivered(&[1]));
        (bundle.reference, bundle.metadata) = (None, None);
        let text = serde_json::to_string(&bundle).unwrap();
        assert!(text.len() < 200, "{} bytes: {text}", text.len());
        bundle.reference = Some("PO-1".to_owned());
        bundle.metadata = Some(Arc::from(r#"{ "n": 1.50 }"#));
        let text = serde_json::to_string(&bundle).unwrap();
        assert!(text.contains(r#""m":{ "n": 1.50 }"#), "{text}");
        let back: EventBundle = serde_json::from_str(&text).unwrap();
        assert_eq!(
            EventBundle {
                order_id: bundle.order_id,
                ..back
            },
            bundle
        );
    }
}
