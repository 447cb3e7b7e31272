//! The words that an order is told in: where it stands, what it waits for, where its vouchers came from, who moved it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The status of an order (contract §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "Where an order is in its life: `PENDING` (accepted, not all in stock, or approval is due), \
    `PROCESSING` (allocation has begun, or approval was given), `PARTIALLY_DELIVERED` (some vouchers are allocated, the \
    rest is pending or failed), `DELIVERED` (all vouchers are allocated), `CANCELLED` (the money is about to come \
    back), `REFUNDED` (wallet credit was returned, nothing stays delivered)."
)]
pub enum OrderStatus {
    /// Accepted; not all in stock, or approval is due.
    Pending,
    /// Allocation has begun, or approval was given.
    Processing,
    /// Some vouchers are allocated, the rest is pending or failed.
    PartiallyDelivered,
    /// All vouchers are allocated.
    Delivered,
    /// Cancelled; the money is about to come back.
    Cancelled,
    /// Wallet credit was returned, nothing stays delivered.
    Refunded,
}

impl OrderStatus {
    /// All of them, in the order of an order's life.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Processing,
        Self::PartiallyDelivered,
        Self::Delivered,
        Self::Cancelled,
        Self::Refunded,
    ];

    /// Whether an order goes from here to there in one step (contract §4). What was delivered and is taken back in part by
    /// an operator is partially delivered again.
    #[must_use]
    pub const fn leads_to(self, next: Self) -> bool {
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

    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Processing => "PROCESSING",
            Self::PartiallyDelivered => "PARTIALLY_DELIVERED",
            Self::Delivered => "DELIVERED",
            Self::Cancelled => "CANCELLED",
            Self::Refunded => "REFUNDED",
        }
    }

    /// The status of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// What an order still waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "What it waits for: `VENDOR` (vouchers are bought) or `APPROVAL` (an operator decides)."
)]
pub enum PendingReason {
    /// Vouchers are bought from the vendor.
    Vendor,
    /// An operator has to approve.
    Approval,
}

impl PendingReason {
    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vendor => "VENDOR",
            Self::Approval => "APPROVAL",
        }
    }

    /// The reason of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Vendor, Self::Approval]
            .into_iter()
            .find(|reason| reason.as_str() == word)
    }
}

/// Where an order's vouchers came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(
    description = "Where vouchers came from: `cache` (all were held), `vendor` (all were bought), `mixed`."
)]
pub enum Source {
    Cache,
    Vendor,
    Mixed,
}

impl Source {
    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Vendor => "vendor",
            Self::Mixed => "mixed",
        }
    }

    /// The source of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Cache, Self::Vendor, Self::Mixed]
            .into_iter()
            .find(|source| source.as_str() == word)
    }
}

/// Who moved an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(description = "Who moved an order: `partner`, `system` (the service itself) or `operator`.")]
pub enum Actor {
    /// The partner.
    Partner,
    /// The service itself.
    System,
    /// An operator.
    Operator,
}

/// What an order may be fulfilled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(description = "From where: `AUTO` (stock and vendor) or `CACHE_ONLY` (stock alone, or not at all).")]
pub enum Fulfilment {
    /// From stock, and from the vendor where the product has one.
    #[default]
    Auto,
    /// From stock alone, or not at all.
    CacheOnly,
}
