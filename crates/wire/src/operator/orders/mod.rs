//! Bodies of `/orders`.

pub mod fulfil;

use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::order::Order;

use crate::partner::orders::body::OrderBody;

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
