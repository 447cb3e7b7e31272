//! Which kinds of events are there, and which of them does an endpoint ask for?

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::event::Step;

/// What an event is about. The list is the spec's; nothing else is ever emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(
    description = "What happened: `order.created` (accepted), `order.processing` (allocation has begun, or approval was \
    given), `order.delivered` (all vouchers are allocated), `order.partially_delivered` (some are), `order.cancelled`, \
    `order.refunded` (wallet credit was returned), `voucher.issued` (one voucher of an order was allocated)."
)]
pub enum EventKind {
    /// An order was accepted.
    #[serde(rename = "order.created")]
    OrderCreated,
    /// Its allocation has begun, or approval was given.
    #[serde(rename = "order.processing")]
    OrderProcessing,
    /// All its vouchers are allocated.
    #[serde(rename = "order.delivered")]
    OrderDelivered,
    /// Some of its vouchers are.
    #[serde(rename = "order.partially_delivered")]
    OrderPartiallyDelivered,
    #[serde(rename = "order.cancelled")]
    OrderCancelled,
    /// Wallet credit was returned.
    #[serde(rename = "order.refunded")]
    OrderRefunded,
    /// One voucher of an order was allocated.
    #[serde(rename = "voucher.issued")]
    VoucherIssued,
}

impl EventKind {
    /// All of them, in the order of the spec.
    pub const ALL: [Self; 7] = [
        Self::OrderCreated,
        Self::OrderProcessing,
        Self::OrderDelivered,
        Self::OrderPartiallyDelivered,
        Self::OrderCancelled,
        Self::OrderRefunded,
        Self::VoucherIssued,
    ];

    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OrderCreated => "order.created",
            Self::OrderProcessing => "order.processing",
            Self::OrderDelivered => "order.delivered",
            Self::OrderPartiallyDelivered => "order.partially_delivered",
            Self::OrderCancelled => "order.cancelled",
            Self::OrderRefunded => "order.refunded",
            Self::VoucherIssued => "voucher.issued",
        }
    }

    /// The kind of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// What a step of an order is told as.
    #[must_use]
    pub const fn of(step: &Step) -> Self {
        match step {
            Step::Created => Self::OrderCreated,
            Step::Issued { .. } => Self::VoucherIssued,
            Step::Processing => Self::OrderProcessing,
            Step::PartiallyDelivered { .. } => Self::OrderPartiallyDelivered,
            Step::Delivered => Self::OrderDelivered,
            Step::Cancelled { .. } => Self::OrderCancelled,
            Step::Refunded { .. } => Self::OrderRefunded,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The kinds that an endpoint asks for; never none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventKinds(u8);

impl EventKinds {
    /// Every kind, those too that may come later.
    pub const ALL: Self = Self(u8::MAX);

    /// These; `None` where there are none.
    #[must_use]
    pub fn of(kinds: &[EventKind]) -> Option<Self> {
        let bits = kinds.iter().fold(0, |bits, kind| bits | kind.bit());
        (bits != 0).then_some(Self(bits))
    }

    /// Whether this one is among them.
    #[must_use]
    pub const fn contains(self, kind: EventKind) -> bool {
        self.0 & kind.bit() != 0
    }

    /// Each of them, in the order of the spec.
    pub fn iter(self) -> impl Iterator<Item = EventKind> {
        EventKind::ALL
            .into_iter()
            .filter(move |kind| self.contains(*kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_reads_back_as_its_word_and_a_set_has_what_it_was_made_of() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_word(kind.as_str()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            let one = EventKinds::of(&[kind]).unwrap();
            assert_eq!(one.iter().collect::<Vec<_>>(), [kind]);
            assert!(EventKinds::ALL.contains(kind));
        }
        assert_eq!(EventKind::from_word("order.lost"), None);
        assert_eq!(EventKinds::of(&[]), None);
    }
}
