//! Sample webhook events for endpoint tests, one of each kind, for a fictitious order.

use std::sync::Arc;

use time::OffsetDateTime;
use time::macros::date;

use crate::delivery::CommittedEvents;
use crate::envelope::Envelope;
use crate::event::{EventBundle, EventStep, VoucherSnapshot};
use crate::event_kind::EventKind;
use crate::ids::{EventId, OrderId, PartnerId, TransactionId, VoucherId};
use crate::money::Amount;
use crate::order::{Actor, FulfilmentSource, OrderStatus, PendingReason};

/// A sample of this kind with a new event id.
pub fn sample_event(partner_id: PartnerId, kind: EventKind, now: OffsetDateTime) -> Option<Envelope> {
    let events = CommittedEvents {
        partner_id,
        first_number: 1,
        bundle: sample_bundle(kind, now)?,
        created_at: now,
    };
    Some(Envelope {
        event_id: EventId::generate(),
        ..events.envelope(1)?
    })
}

fn status_and_step(kind: EventKind) -> (OrderStatus, EventStep) {
    match kind {
        EventKind::OrderCreated => (OrderStatus::Pending, EventStep::Created),
        EventKind::OrderProcessing => (OrderStatus::Processing, EventStep::Processing),
        EventKind::OrderDelivered => (OrderStatus::Delivered, EventStep::Delivered),
        EventKind::OrderPartiallyDelivered => {
            let step = EventStep::PartiallyDelivered {
                delivered: 1,
                pending: 1,
                failed: 0,
            };
            (OrderStatus::PartiallyDelivered, step)
        }
        EventKind::OrderCancelled => {
            let step = EventStep::Cancelled {
                by: Actor::Partner,
                reason: Some("a test".to_owned()),
            };
            (OrderStatus::Cancelled, step)
        }
        EventKind::OrderRefunded => {
            let step = EventStep::Refunded {
                transaction_id: TransactionId::generate(),
                amount: Amount::from_minor(2_500),
            };
            (OrderStatus::Refunded, step)
        }
        EventKind::VoucherIssued => (OrderStatus::Delivered, EventStep::Issued { first: 0, count: 1 }),
    }
}

/// The events of a fictitious order, up to one of this kind.
#[must_use]
pub fn sample_bundle(kind: EventKind, now: OffsetDateTime) -> Option<EventBundle> {
    let (status, step) = status_and_step(kind);
    let has_vouchers = matches!(status, OrderStatus::Delivered | OrderStatus::PartiallyDelivered);
    let voucher = VoucherSnapshot {
        voucher_id: VoucherId::generate(),
        line: 0,
        expiry: Some(date!(2030 - 12 - 31).to_julian_day()),
    };
    Some(EventBundle {
        order_id: OrderId::generate_at(now),
        first_sequence: 1,
        steps: vec![step],
        status,
        total: Amount::from_minor(2_500),
        currency: "USD".parse().ok()?,
        fulfilled_from: has_vouchers.then_some(FulfilmentSource::Cache),
        pending_reason: (!has_vouchers).then_some(PendingReason::Vendor),
        reference: Some("sample".to_owned()),
        metadata: Some(Arc::from(r#"{"campaign":"spring"}"#)),
        lines: vec![("sample".parse().ok()?, Amount::from_minor(2_500))],
        vouchers: has_vouchers.then_some(voucher).into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use crate::event_kind::EventKinds;

    use super::*;

    #[test]
    fn sample_exists_for_each_kind_with_a_unique_id() {
        let now = time::macros::datetime!(2026-11-20 12:00 UTC);
        for kind in EventKinds::DEFAULT.iter() {
            let partner = PartnerId::generate();
            let one = sample_event(partner, kind, now).unwrap();
            let other = sample_event(partner, kind, now).unwrap();
            assert_eq!(one.event, kind);
            assert_ne!(one.event_id, other.event_id);
        }
    }
}
