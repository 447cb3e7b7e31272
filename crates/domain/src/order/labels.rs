//! Order enums and their labels: status, pending reason, fulfilment source, actor.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// The status of an order (contract §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", const_into_str)]
#[cfg_attr(
    feature = "utoipa",
    schema(
        description = "Status of the order: `PENDING` (accepted, not all in stock, or approval is due), \
    `PROCESSING` (allocation has begun, or approval was given), `PARTIALLY_DELIVERED` (some vouchers are allocated, the \
    rest is pending or failed), `DELIVERED` (all vouchers are allocated), `CANCELLED` (the refund follows \
    at once), `REFUNDED` (wallet credit was returned, nothing stays delivered)."
    )
)]
pub enum OrderStatus {
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

impl OrderStatus {
    /// Whether an order can change from this status to `next` in one step (contract §4). A delivered order from which an
    /// operator revokes a part becomes partially delivered.
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

/// What an order waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", const_into_str)]
#[cfg_attr(
    feature = "utoipa",
    schema(
        description = "What the order waits for: `VENDOR` (vouchers are being bought) or `APPROVAL` (an operator decides)."
    )
)]
pub enum PendingReason {
    /// Vouchers are being bought from the vendor.
    Vendor,
    /// An operator must approve the order.
    Approval,
}

/// Where an order's vouchers came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
#[cfg_attr(feature = "utoipa", schema(
    as = Source,
    description = "Where vouchers came from: `cache` (all from stock), `vendor` (all were bought), `mixed`."
))]
pub enum FulfilmentSource {
    Cache,
    Vendor,
    Mixed,
}

/// The party that changed an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(
    feature = "utoipa",
    schema(description = "Who changed the order: `partner`, `system` (the service) or `operator`.")
)]
pub enum Actor {
    Partner,
    /// The service.
    System,
    Operator,
}

/// How an order may be fulfilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(
    feature = "utoipa",
    schema(
        description = "How the order may be fulfilled: `AUTO` (from stock or by purchase) or `CACHE_ONLY` (from stock only)."
    )
)]
pub enum Fulfilment {
    /// From stock, and by purchase where the product has a vendor.
    #[default]
    Auto,
    /// From stock only.
    CacheOnly,
}
