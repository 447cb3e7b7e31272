//! Order enums and their labels: status, pending reason, fulfilment source, actor.

use crate::labels::labels;

labels! {
    /// The status of an order (contract §4).
    pub enum OrderStatus: "SCREAMING_SNAKE_CASE",
        "Status of the order: `PENDING` (accepted, not all in stock, or approval is due), \
         `PROCESSING` (allocation has begun, or approval was given), `PARTIALLY_DELIVERED` (some vouchers are allocated, the \
         rest is pending or failed), `DELIVERED` (all vouchers are allocated), `CANCELLED` (the refund follows \
         at once), `REFUNDED` (wallet credit was returned, nothing stays delivered)." {
        /// Accepted; not all vouchers are in stock, or approval is required.
        Pending,
        /// Allocation has begun, or an operator approved the order.
        Processing,
        /// Some vouchers are allocated; the rest is pending or failed.
        PartiallyDelivered,
        /// All vouchers are allocated.
        Delivered,
        /// Cancelled; the refund follows in the same commit.
        Cancelled,
        /// Wallet credit was returned; no voucher stays delivered.
        Refunded,
    }
}

impl OrderStatus {
    /// Whether an order can change from this status to `next` in one step (contract §4). A delivered order
    /// from which an operator revokes a part becomes partially delivered.
    #[must_use]
    pub const fn can_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Pending, Self::Processing)
            | (Self::Processing, Self::PartiallyDelivered | Self::Delivered)
            | (Self::PartiallyDelivered, Self::PartiallyDelivered | Self::Delivered)
            | (Self::Delivered, Self::PartiallyDelivered)
            | (Self::Cancelled, Self::Refunded) => true,
            (from, Self::Cancelled) => !matches!(from, Self::Cancelled | Self::Refunded),
            _ => false,
        }
    }
}

labels! {
    /// What an order waits for.
    pub enum PendingReason: "SCREAMING_SNAKE_CASE",
        "What the order waits for: `VENDOR` (vouchers are being bought) or `APPROVAL` (an operator decides)." {
        /// Vouchers are being bought from the vendor.
        Vendor,
        /// An operator must approve the order.
        Approval,
    }
}

labels! {
    /// Where an order's vouchers came from.
    pub enum FulfilmentSource: "lowercase" as Source,
        "Where vouchers came from: `cache` (all from stock), `vendor` (all were bought), `mixed`." {
        Cache,
        Vendor,
        Mixed,
    }
}

labels! {
    /// The party that changed an order.
    pub enum Actor: "lowercase",
        "Who changed the order: `partner`, `system` (the service) or `operator`." {
        Partner,
        /// The service.
        System,
        Operator,
    }
}

labels! {
    /// How an order may be fulfilled.
    #[derive(Default)]
    pub enum Fulfilment: "SCREAMING_SNAKE_CASE",
        "How the order may be fulfilled: `AUTO` (from stock or by purchase) or `CACHE_ONLY` (from stock only)." {
        /// From stock, and by purchase where the product has a vendor.
        #[default]
        Auto,
        /// From stock only.
        CacheOnly,
    }
}
