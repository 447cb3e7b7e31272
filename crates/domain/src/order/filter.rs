//! Filters of order lists.

use serde::{Deserialize, Serialize};

use super::{OrderStatus, PendingReason};
use crate::ids::{OrderId, PartnerId, VoucherId};
use crate::period::Period;

/// Filter of a partner's orders; `None` matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct OrderFilter {
    /// Filter by status.
    #[cfg_attr(feature = "utoipa", param(inline))]
    #[cfg_attr(feature = "clap", arg(long, value_parser = crate::arguments::enum_parser::<OrderStatus>()))]
    pub status: Option<OrderStatus>,
    /// Filter by the reference in the order.
    #[serde(default, deserialize_with = "crate::identifier::deserialize_filter")]
    #[cfg_attr(feature = "utoipa", param(value_type = Option<crate::text_schema::FilterText>, inline, example = "po-1001"))]
    #[cfg_attr(feature = "clap", arg(long))]
    pub reference: Option<String>,
    /// Time of acceptance.
    #[serde(flatten)]
    #[cfg_attr(feature = "utoipa", param(ignore))]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub period: Period,
}

/// Filter of the orders of all partners.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct OrderSearch {
    /// Filter by partner.
    #[cfg_attr(feature = "utoipa", param(inline))]
    #[cfg_attr(feature = "clap", arg(long = "partner", value_name = "PARTNER_ID"))]
    pub partner_id: Option<PartnerId>,
    /// Filter by order ID.
    #[cfg_attr(feature = "utoipa", param(inline))]
    #[cfg_attr(feature = "clap", arg(long = "order", value_name = "ORDER_ID"))]
    pub order_id: Option<OrderId>,
    /// Filter by a voucher that the order has or had.
    #[cfg_attr(feature = "utoipa", param(inline))]
    #[cfg_attr(feature = "clap", arg(long = "voucher", value_name = "VOUCHER_ID"))]
    pub voucher_id: Option<VoucherId>,
    /// Filter by what the order waits for.
    #[cfg_attr(feature = "utoipa", param(inline))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "REASON", value_parser = crate::arguments::enum_parser::<PendingReason>()))]
    pub pending_reason: Option<PendingReason>,
    #[serde(flatten)]
    #[cfg_attr(feature = "utoipa", param(ignore))]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub filter: OrderFilter,
}
