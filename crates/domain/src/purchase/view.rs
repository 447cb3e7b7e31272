//! Purchases as operators see them: state, last vendor response, and list filter.

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::ids::{OrderId, PartnerId};
use crate::money::{Currency, Money};

/// State of a purchase: `open`, `refused` (open, and the last vendor response was rejected) or `ended`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum PurchaseState {
    Open,
    /// Open, and the last vendor response was rejected.
    Refused,
    Ended,
}

impl PurchaseState {
    pub const ALL: [Self; 3] = [Self::Open, Self::Refused, Self::Ended];

    /// Label in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Refused => "refused",
            Self::Ended => "ended",
        }
    }
}

/// Result of the last request to a vendor about a purchase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LastAnswer {
    /// The vendor sold all vouchers.
    Sold,
    /// More vouchers may follow.
    Waiting,
    /// The vendor sold a part and will not sell more.
    NoMore,
    /// The vendor declined the purchase.
    NotSold,
    /// The vendor has no stock.
    OutOfStock,
    /// The vendor asked to try again later.
    NotNow,
    /// The outcome is unknown.
    Unknown,
    /// The response was invalid and was discarded.
    Refused,
    /// The service cannot send the request or cannot store the vouchers.
    Stuck,
    /// An operator ended the purchase.
    Ended,
}

impl LastAnswer {
    pub const ALL: [Self; 10] = [
        Self::Sold,
        Self::Waiting,
        Self::NoMore,
        Self::NotSold,
        Self::OutOfStock,
        Self::NotNow,
        Self::Unknown,
        Self::Refused,
        Self::Stuck,
        Self::Ended,
    ];

    /// Label in the API and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sold => "SOLD",
            Self::Waiting => "WAITING",
            Self::NoMore => "NO_MORE",
            Self::NotSold => "NOT_SOLD",
            Self::OutOfStock => "OUT_OF_STOCK",
            Self::NotNow => "NOT_NOW",
            Self::Unknown => "UNKNOWN",
            Self::Refused => "REFUSED",
            Self::Stuck => "STUCK",
            Self::Ended => "ENDED",
        }
    }
}

/// Filter of purchases; `None` matches any.
#[derive(Debug, Clone, Default)]
pub struct PurchaseFilter {
    pub vendor: Option<String>,
    /// `Open` includes `Refused`.
    pub state: Option<PurchaseState>,
    pub order_id: Option<OrderId>,
}

/// A purchase, as operators see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "utoipa", schema(as = Purchase))]
pub struct PurchaseView {
    /// Id, which is also the idempotency key at the vendor.
    #[cfg_attr(feature = "utoipa", schema(value_type = String))]
    pub purchase_id: Uuid,
    /// Partner of the order.
    pub partner_id: PartnerId,
    /// Order that the vouchers are bought for.
    pub order_id: OrderId,
    /// Index of the item in the order, from 0.
    pub item: u16,
    /// Id of the vendor.
    pub vendor: String,
    /// Id of the product.
    pub product_id: String,
    /// Face value.
    pub denomination: Money,
    /// Currency of the face value.
    pub currency: Currency,
    /// Number of requested vouchers.
    pub quantity: u32,
    /// State of the purchase.
    pub state: PurchaseState,
    /// Last response of the vendor; null before the first.
    #[cfg_attr(feature = "utoipa", schema(required))]
    pub answer: Option<LastAnswer>,
    /// Reason why vouchers are missing or why the purchase was ended; null if there is none.
    #[cfg_attr(feature = "utoipa", schema(required))]
    pub last_word: Option<String>,
    /// Number of vouchers that the vendor reports as sold.
    pub sold: u32,
    /// Number of vouchers added to stock.
    pub kept: u32,
    /// Vendor references of vouchers whose codes were sold before. They are never added to stock.
    pub quarantined: Vec<String>,
    /// Time of creation.
    #[serde(with = "crate::timestamp")]
    pub requested_at: OffsetDateTime,
    /// Time of the last vendor response.
    #[serde(with = "crate::timestamp::option")]
    #[cfg_attr(feature = "utoipa", schema(required))]
    pub answered_at: Option<OffsetDateTime>,
    /// Time of the next request to the vendor; null once the purchase has ended.
    #[serde(with = "crate::timestamp::option")]
    #[cfg_attr(feature = "utoipa", schema(required))]
    pub next_at: Option<OffsetDateTime>,
}
