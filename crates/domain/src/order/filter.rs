//! Filters of order lists.

use serde::{Deserialize, Serialize};

use super::{OrderStatus, PendingReason};
use crate::ids::{OrderId, PartnerId, VoucherId};
use crate::period::Period;

/// Filter of a partner's orders; `None` matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct OrderFilter {
    /// Filter by status.
    #[param(inline)]
    #[arg(long, value_parser = crate::arguments::enum_parser::<OrderStatus>())]
    pub status: Option<OrderStatus>,
    /// Filter by the reference in the order.
    #[serde(default, deserialize_with = "crate::identifier::deserialize_filter")]
    #[param(value_type = Option<crate::text_schema::FilterText>, inline, example = "po-1001")]
    #[arg(long)]
    pub reference: Option<String>,
    /// Time of acceptance.
    #[serde(flatten)]
    #[param(ignore)]
    #[command(flatten)]
    pub period: Period,
}

/// Filter of the orders of all partners.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct OrderSearch {
    /// Filter by partner.
    #[param(inline)]
    #[arg(long = "partner", value_name = "PARTNER_ID")]
    pub partner_id: Option<PartnerId>,
    /// Filter by order ID.
    #[param(inline)]
    #[arg(long = "order", value_name = "ORDER_ID")]
    pub order_id: Option<OrderId>,
    /// Filter by a voucher that the order has or had.
    #[param(inline)]
    #[arg(long = "voucher", value_name = "VOUCHER_ID")]
    pub voucher_id: Option<VoucherId>,
    /// Filter by what the order waits for.
    #[param(inline)]
    #[arg(long, value_name = "REASON", value_parser = crate::arguments::enum_parser::<PendingReason>())]
    pub pending_reason: Option<PendingReason>,
    #[serde(flatten)]
    #[param(ignore)]
    #[command(flatten)]
    pub filter: OrderFilter,
}
