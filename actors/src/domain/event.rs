//! What partners are told: the events of one commit, kept as one compact row and spelled out when they are read.
//!
//! Rule: a payload can hold no code, since no type here has a field for one. A bundle is frozen at emission: it holds the
//! order as it was then, and is never looked up again.

use serde::{Deserialize, Serialize};

use super::ids::{OrderId, TransactionId, VoucherId};
use super::money::{Amount, Currency};
use super::order::{Actor, Order, OrderStatus, PendingReason, Source};
use super::product::ProductId;
use super::voucher::{Allocation, Expiry};

/// One or several events of the same moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    #[serde(rename = "c")]
    Created,
    /// `voucher.issued`, for `count` vouchers of the snapshot from `first` on.
    #[serde(rename = "i")]
    Issued {
        /// Index of the first.
        #[serde(rename = "f")]
        first: u32,
        #[serde(rename = "n")]
        count: u32,
    },
    #[serde(rename = "p")]
    Processing,
    /// `order.partially_delivered`, with how many units are where.
    #[serde(rename = "q")]
    PartiallyDelivered {
        #[serde(rename = "d")]
        delivered: u32,
        #[serde(rename = "p")]
        pending: u32,
        /// Never to be had.
        #[serde(rename = "f")]
        failed: u32,
    },
    #[serde(rename = "d")]
    Delivered,
    #[serde(rename = "x")]
    Cancelled {
        #[serde(rename = "b")]
        by: Actor,
        /// Why, where somebody said so.
        #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    #[serde(rename = "r")]
    Refunded {
        /// The entry of the ledger.
        #[serde(rename = "t")]
        transaction_id: TransactionId,
        /// How much, in minor units of the order's currency.
        #[serde(rename = "a")]
        amount: Amount,
    },
}

impl Step {
    /// How many events it stands for.
    #[must_use]
    pub const fn count(&self) -> u32 {
        match self {
            Self::Issued { count, .. } => *count,
            _ => 1,
        }
    }
}

/// A voucher as an event tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaleVoucher {
    #[serde(rename = "v")]
    pub voucher_id: VoucherId,
    /// Which line of the snapshot it belongs to.
    #[serde(rename = "l")]
    pub line: u32,
    /// Its last valid day, as a Julian day; absent for never.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<i32>,
}

/// The events of one commit about one order, with the order as it was then. Keys are short: a row an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventBundle {
    /// Which order; a column of its own in the database.
    #[serde(skip, default = "OrderId::nil")]
    pub order_id: OrderId,
    /// The order's number of the first event, from 1 over all its events.
    #[serde(rename = "n")]
    pub first_sequence: u32,
    /// What happened, in this order.
    #[serde(rename = "s")]
    pub steps: Vec<Step>,
    #[serde(rename = "o")]
    pub status: OrderStatus,
    /// The order's total, in minor units.
    #[serde(rename = "t")]
    pub total: Amount,
    #[serde(rename = "c")]
    pub currency: Currency,
    /// Where its vouchers came from.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub fulfilled_from: Option<Source>,
    /// What it waits for.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub pending_reason: Option<PendingReason>,
    /// What its lines are: product and face value in minor units.
    #[serde(rename = "l")]
    pub lines: Vec<(ProductId, Amount)>,
    #[serde(rename = "v", default, skip_serializing_if = "Vec::is_empty")]
    pub vouchers: Vec<TaleVoucher>,
}

impl OrderId {
    /// The id of no order, until the database's column fills it in.
    #[must_use]
    pub const fn nil() -> Self {
        Self::from_uuid(uuid::Uuid::nil())
    }
}

impl EventBundle {
    /// What is told of an order that was just accepted: created, and on a cache hit each voucher and the delivery.
    #[must_use]
    pub fn accepted(order: &Order) -> Self {
        let mut steps = vec![Step::Created];
        if order.status == OrderStatus::Delivered {
            let count = u32::try_from(order.vouchers.len()).unwrap_or(u32::MAX);
            steps.extend([Step::Issued { first: 0, count }, Step::Delivered]);
        }
        Self::progressed(order, 1, steps)
    }

    /// What is told of an order that has moved on: `first_sequence` is the order's number of the first of these.
    #[must_use]
    pub fn progressed(order: &Order, first_sequence: u32, steps: Vec<Step>) -> Self {
        Self {
            order_id: order.order_id,
            first_sequence,
            steps,
            status: order.status,
            total: order.total.amount,
            currency: order.total.currency,
            fulfilled_from: order.fulfilled_from,
            pending_reason: order.pending_reason,
            lines: order
                .lines
                .iter()
                .map(|line| (line.product_id.clone(), line.denomination))
                .collect(),
            vouchers: order.vouchers.iter().map(tell).collect(),
        }
    }

    /// How many events it stands for.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.steps.iter().map(Step::count).sum()
    }

    /// The order's number of the last event.
    #[must_use]
    pub fn last_sequence(&self) -> u32 {
        (self.first_sequence + self.count()).saturating_sub(1)
    }
}

fn tell(allocation: &Allocation) -> TaleVoucher {
    TaleVoucher {
        voucher_id: allocation.voucher_id,
        line: u32::from(allocation.line),
        expiry: julian(allocation.voucher.expiry),
    }
}

fn julian(expiry: Expiry) -> Option<i32> {
    expiry.date().map(time::Date::to_julian_day)
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;
    use crate::domain::ids::{ChunkId, PartnerId, StockId};
    use crate::domain::order::{Fulfilment, PricedLine, PricedOrder};
    use crate::domain::product::{Approval, Route, Sku};
    use crate::domain::voucher::Shelved;

    fn priced(quantities: &[u32]) -> PricedOrder {
        let line = |(index, quantity): (usize, &u32)| PricedLine {
            sku: Sku {
                product_id: format!("p{index}").parse().unwrap(),
                denomination: Amount::from_minor(500),
            },
            quantity: *quantity,
            unit_price: Amount::from_minor(500),
            route: Route::Stock,
            min_validity_days: 0,
            approval: Approval::Rule,
        };
        PricedOrder {
            lines: quantities.iter().enumerate().map(line).collect(),
            total: Amount::from_minor(1_500).of("USD".parse().unwrap()),
            fulfilment: Fulfilment::Auto,
            reference: None,
            metadata: None,
        }
    }

    fn allocations(order: &PricedOrder) -> Vec<Allocation> {
        let skus = (0..)
            .zip(&order.lines)
            .flat_map(|(line, l)| std::iter::repeat_n((line, l.sku.clone()), l.quantity as usize));
        skus.zip(1..)
            .map(|((line, sku), n)| Allocation {
                voucher_id: VoucherId::generate(),
                line,
                sku,
                voucher: Shelved {
                    expiry: Expiry::on(date!(2027 - 01 - 01)),
                    stock_id: StockId(n),
                    chunk_id: ChunkId(1),
                },
            })
            .collect()
    }

    #[test]
    fn a_cache_hit_tells_of_creation_each_voucher_and_delivery() {
        let priced = priced(&[2, 1]);
        let at = datetime!(2026-01-01 0:00 UTC);
        let order = Order::delivered(
            OrderId::at(at),
            PartnerId::generate(),
            &priced,
            allocations(&priced),
            at,
        );
        let bundle = EventBundle::accepted(&order);
        assert_eq!(
            bundle.steps,
            [
                Step::Created,
                Step::Issued { first: 0, count: 3 },
                Step::Delivered
            ]
        );
        assert_eq!(bundle.count(), 5);
        assert_eq!(
            bundle.vouchers.iter().map(|v| v.line).collect::<Vec<_>>(),
            [0, 0, 1]
        );
    }

    #[test]
    fn a_cache_miss_tells_of_creation_alone() {
        let at = datetime!(2026-01-01 0:00 UTC);
        let order = Order::pending(
            OrderId::at(at),
            PartnerId::generate(),
            &priced(&[3]),
            PendingReason::Vendor,
            at,
        );
        let bundle = EventBundle::accepted(&order);
        assert_eq!(
            (bundle.steps.as_slice(), bundle.count()),
            (&[Step::Created][..], 1)
        );
    }

    #[test]
    fn a_bundle_reads_back_and_stays_small() {
        let priced = priced(&[1]);
        let at = datetime!(2026-01-01 0:00 UTC);
        let order = Order::delivered(
            OrderId::at(at),
            PartnerId::generate(),
            &priced,
            allocations(&priced),
            at,
        );
        let bundle = EventBundle::accepted(&order);
        let text = serde_json::to_string(&bundle).unwrap();
        assert!(text.len() < 200, "{} bytes: {text}", text.len());
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
