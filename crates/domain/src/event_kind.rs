//! Event kinds, and the set of kinds an endpoint subscribes to.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::event::EventStep;

/// The kind of an event. Kinds may be added within v1: see [`EventKinds::DEFAULT`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(const_into_str)]
#[derive(utoipa::ToSchema)]
#[schema(
    description = "What happened: `order.created` (accepted), `order.processing` (allocation has begun, or approval was \
    given), `order.delivered` (all vouchers are allocated), `order.partially_delivered` (some are), `order.cancelled`, \
    `order.refunded` (wallet credit was returned), `voucher.issued` (one voucher of an order was allocated)."
)]
pub enum EventKind {
    /// An order was accepted.
    #[serde(rename = "order.created")]
    #[strum(serialize = "order.created")]
    OrderCreated,
    /// Allocation has begun, or an operator approved the order.
    #[serde(rename = "order.processing")]
    #[strum(serialize = "order.processing")]
    OrderProcessing,
    /// All vouchers of the order are allocated.
    #[serde(rename = "order.delivered")]
    #[strum(serialize = "order.delivered")]
    OrderDelivered,
    /// Some vouchers of the order are allocated.
    #[serde(rename = "order.partially_delivered")]
    #[strum(serialize = "order.partially_delivered")]
    OrderPartiallyDelivered,
    #[serde(rename = "order.cancelled")]
    #[strum(serialize = "order.cancelled")]
    OrderCancelled,
    /// Wallet credit was returned.
    #[serde(rename = "order.refunded")]
    #[strum(serialize = "order.refunded")]
    OrderRefunded,
    /// One voucher of an order was allocated.
    #[serde(rename = "voucher.issued")]
    #[strum(serialize = "voucher.issued")]
    VoucherIssued,
}

impl EventKind {
    /// The kind of the events in a step.
    #[must_use]
    pub const fn of(step: &EventStep) -> Self {
        match step {
            EventStep::Created => Self::OrderCreated,
            EventStep::Issued { .. } => Self::VoucherIssued,
            EventStep::Processing => Self::OrderProcessing,
            EventStep::PartiallyDelivered { .. } => Self::OrderPartiallyDelivered,
            EventStep::Delivered => Self::OrderDelivered,
            EventStep::Cancelled { .. } => Self::OrderCancelled,
            EventStep::Refunded { .. } => Self::OrderRefunded,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The kinds an endpoint subscribes to; never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventKinds(u8);

impl EventKinds {
    /// The kinds of a subscription that names none: those with which v1 began. A kind that is added later is
    /// not among them, so that no endpoint receives a kind that its code does not know; an endpoint
    /// subscribes to it by its name.
    pub const DEFAULT: Self = Self(0b0111_1111);

    /// The set of `kinds`; `None` if it is empty.
    #[must_use]
    pub fn of(kinds: &[EventKind]) -> Option<Self> {
        let bits = kinds.iter().fold(0, |bits, kind| bits | kind.bit());
        (bits != 0).then_some(Self(bits))
    }

    /// The set of stored labels; `None` stands for [`Self::DEFAULT`]. Ignores labels of a newer version.
    #[must_use]
    pub fn from_labels(labels: Option<&[String]>) -> Self {
        let kinds = labels.map(|labels| labels.iter().filter_map(|label| label.parse().ok()).collect());
        kinds
            .and_then(|kinds: Vec<EventKind>| Self::of(&kinds))
            .unwrap_or(Self::DEFAULT)
    }

    /// Whether the set contains `kind`.
    #[must_use]
    pub const fn contains(self, kind: EventKind) -> bool {
        self.0 & kind.bit() != 0
    }

    /// The kinds in the set, in the order of the spec.
    pub fn iter(self) -> impl Iterator<Item = EventKind> {
        EventKind::VARIANTS
            .iter()
            .copied()
            .filter(move |kind| self.contains(*kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_contains_its_kinds() {
        for &kind in EventKind::VARIANTS {
            let one = EventKinds::of(&[kind]).unwrap();
            assert_eq!(one.iter().collect::<Vec<_>>(), [kind]);
        }
        assert_eq!(EventKinds::of(&[]), None);
    }

    #[test]
    fn subscription_without_names_has_the_first_kinds_of_v1_only() {
        let first = [
            "order.created",
            "order.processing",
            "order.delivered",
            "order.partially_delivered",
            "order.cancelled",
            "order.refunded",
            "voucher.issued",
        ];
        let first = first.map(|label| label.parse().unwrap());
        assert_eq!(EventKinds::of(&first), Some(EventKinds::DEFAULT));
        assert_eq!(EventKinds::from_labels(None), EventKinds::DEFAULT);
    }
}
