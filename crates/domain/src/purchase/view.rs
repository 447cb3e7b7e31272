//! Purchases as operators see them: state, last vendor response, and list filter.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::ids::{OrderId, PartnerId};
use crate::money::{Currency, Money};

/// State of a purchase: `open`, `refused` (open, and the last vendor response was rejected) or `ended`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
#[derive(utoipa::ToSchema)]
pub enum PurchaseState {
    Open,
    /// Open, and the last vendor response was rejected.
    Refused,
    Ended,
}

/// Result of the last request to a vendor about a purchase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, EnumString, IntoStaticStr, VariantArray)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", const_into_str)]
#[derive(utoipa::ToSchema)]
pub enum LastResponse {
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

/// Filter of purchases; `None` matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct PurchaseFilter {
    /// Filter by vendor.
    #[param(value_type = Option<crate::text_schema::FilterText>, inline, example = "acme-cards")]
    #[arg(long, value_name = "VENDOR_ID")]
    pub vendor: Option<String>,
    /// Filter by state. Purchases in `refused` are retried too.
    #[param(inline)]
    #[arg(long, value_parser = crate::arguments::enum_parser::<PurchaseState>())]
    // `Open` includes `Refused`.
    pub state: Option<PurchaseState>,
    /// Filter by order.
    #[param(inline)]
    #[arg(long = "order", value_name = "ORDER_ID")]
    pub order_id: Option<OrderId>,
}

/// A purchase, as operators see it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Purchase)]
pub struct PurchaseView {
    /// Id, which is also the idempotency key at the vendor.
    #[schema(value_type = String)]
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
    #[schema(required)]
    pub last_response: Option<LastResponse>,
    /// Reason why vouchers are missing or why the purchase was ended; null if there is none.
    #[schema(required)]
    pub last_message: Option<String>,
    /// Number of vouchers that the vendor reports as sold.
    pub sold: u32,
    /// Number of vouchers added to stock.
    pub imported: u32,
    /// Vendor references of vouchers whose codes were sold before. They are never added to stock.
    pub quarantined: Vec<String>,
    /// Time of creation.
    #[serde(with = "crate::timestamp")]
    pub requested_at: OffsetDateTime,
    /// Time of the last vendor response.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub last_response_at: Option<OffsetDateTime>,
    /// Time of the next request to the vendor; null once the purchase has ended.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub next_attempt_at: Option<OffsetDateTime>,
}
