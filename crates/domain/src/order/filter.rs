//! Filter of order lists.

use super::OrderStatus;
use crate::ids::OrderId;
use crate::period::Period;

/// Filter of orders; `None` matches any.
#[derive(Debug, Clone, Default)]
pub struct OrderFilter {
    pub order_id: Option<OrderId>,
    pub status: Option<OrderStatus>,
    /// The partner's own reference.
    pub reference: Option<String>,
    /// Time of acceptance.
    pub period: Period,
}
