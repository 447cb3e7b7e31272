//! Bodies and filters of `/orders`.

pub mod fulfil;

use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::order::Order;
use vouchsafe_domain::order::filter::OrderFilter;

use crate::error_body::InvalidRequest;
use crate::page::PageRequest;
use crate::partner::orders::body::OrderBody;
use crate::partner::orders::filter;

pub const FILTERS: [&str; 6] = ["partner_id", "order_id", "status", "reference", "from", "to"];

/// Parses the filters, and `partner_id`.
///
/// # Errors
/// `VALIDATION_FAILED` for a value that does not parse.
pub fn parse_filter(page: &PageRequest) -> Result<(OrderFilter, Option<PartnerId>), InvalidRequest> {
    let filter = OrderFilter {
        order_id: page.parsed_filter("order_id")?,
        ..filter::parse_filter(page)?
    };
    Ok((filter, page.parsed_filter("partner_id")?))
}

/// An order and its partner.
#[derive(Serialize, ToSchema)]
pub struct OrderOfPartner<'a> {
    partner_id: PartnerId,
    #[serde(flatten)]
    order: OrderBody<'a>,
}

impl<'a> OrderOfPartner<'a> {
    /// The wire representation of an order.
    ///
    /// # Errors
    /// Returns an error if the stored metadata is not JSON, which is a bug.
    pub fn of(order: &'a Order) -> Result<Self, serde_json::Error> {
        Ok(Self {
            partner_id: order.partner_id,
            order: OrderBody::of(order)?,
        })
    }

    #[must_use]
    pub const fn order_id(&self) -> OrderId {
        self.order.order_id()
    }
}
