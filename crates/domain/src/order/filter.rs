//! Filters of order lists.

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

use super::metadata_filter::MetadataFilter;
use super::{OrderStatus, PendingReason};
use crate::comma_list::CommaList;
use crate::ids::{OrderId, PartnerId, VoucherId};
use crate::period::Period;

/// Longest time since `updated_from`: a list reads all orders that changed since then and were placed before.
pub const MAX_UPDATED: Duration = Duration::days(7);

/// Longest period of a list by metadata, which has no index: a list reads all orders of the period.
pub const MAX_METADATA_PERIOD: Duration = Duration::days(1);

/// Filter of a partner's orders; `None` matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct OrderFilter {
    /// Filter by status; several are separated by commas.
    #[param(value_type = Option<Vec<OrderStatus>>, style = Form, explode = false, min_items = 1, inline)]
    #[arg(long, value_name = "STATUS[,STATUS]", value_parser = crate::arguments::list_parser::<OrderStatus>())]
    pub status: Option<CommaList<OrderStatus>>,
    /// Filter by whether the order is final, or something is still to be delivered.
    #[param(inline)]
    #[arg(long, value_name = "true|false")]
    pub closed: Option<bool>,
    /// Filter by the reference in the order.
    #[serde(default, deserialize_with = "crate::identifier::deserialize_filter")]
    #[param(value_type = Option<crate::text_schema::FilterText>, inline, example = "po-1001")]
    #[arg(long)]
    pub reference: Option<String>,
    /// Filter by a key of the metadata and its value, separated by a colon. Needs `from`, at most a day
    /// before `to` or now, or `reference`.
    #[param(value_type = Option<crate::text_schema::MetadataEntry>, inline)]
    #[arg(long, value_name = "KEY:VALUE")]
    pub metadata: Option<MetadataFilter>,
    /// Filter by the last change, inclusive: a date (midnight UTC) or an RFC 3339 time of the last seven
    /// days.
    #[serde(default, with = "crate::period::bound")]
    #[param(value_type = Option<crate::text_schema::DateOrTime>, inline)]
    #[arg(long, value_name = "TIME", value_parser = crate::period::time_option::parse_time)]
    pub updated_from: Option<OffsetDateTime>,
    /// Time of acceptance.
    #[serde(flatten)]
    #[param(ignore)]
    #[command(flatten)]
    pub period: Period,
}

impl OrderFilter {
    /// The parameter without which a list would read an unbounded part of the orders, and what it needs.
    #[must_use]
    pub fn unbounded(&self, now: OffsetDateTime) -> Option<(&'static str, &'static str)> {
        if self.updated_from.is_some_and(|from| now - from > MAX_UPDATED) {
            return Some(("updated_from", "expected a time of the last seven days"));
        }
        let period = self.period.from.map(|from| self.period.to.unwrap_or(now) - from);
        let is_short = period.is_some_and(|period| period <= MAX_METADATA_PERIOD);
        let is_bounded = self.metadata.is_none() || self.reference.is_some() || is_short;
        (!is_bounded).then_some((
            "from",
            "`metadata` needs `from`, at most a day before `to` or now, or `reference`",
        ))
    }
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
