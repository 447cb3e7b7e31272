//! Results of a search by id, name or an order's reference.

use serde::Serialize;

use crate::ids::{OrderId, PartnerId};
use crate::labels::labels;

/// Maximum results of a search. Several orders may have the same reference.
pub const MAX_RESULTS: usize = 20;

labels! {
    /// Kind of an object that a search finds.
    pub enum ObjectKind: "lowercase", "Kind of an object." {
        Partner,
        Credential,
        Order,
        Voucher,
        Purchase,
        Transaction,
        Payout,
        Drift,
        Webhook,
        Delivery,
        /// A change that needs a second operator.
        Request,
        Product,
        Vendor,
        Category,
        Operator,
    }
}

/// An object whose id begins with the searched text, whose name contains it, or an order with this reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct SearchResult {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// ID of the object.
    pub id: String,
    /// Its partner.
    #[schema(required)]
    pub partner_id: Option<PartnerId>,
    /// The order that it belongs to.
    #[schema(required)]
    pub order_id: Option<OrderId>,
    /// Name, status or URL.
    #[schema(required)]
    pub label: Option<String>,
}
