//! OpenAPI operation of `/search`.

use serde_json::json;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::search::{SearchQuery, SearchResults};

use super::{MONITORING, read_operation};
use crate::openapi::Operation;

pub fn find(operation: Operation) -> Operation {
    let order = json!({
        "kind": "order", "id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "label": "DELIVERED",
    });
    read_operation(operation, "search")
        .describe(
            MONITORING,
            "Find an object by ID or reference",
            "The object of any kind with the ID, or up to 20 orders with the reference, newest first. Names and codes are not \
             searched.",
        )
        .query::<SearchQuery>()
        .ok::<SearchResults>("The objects found.", json!({ "data": [order], "has_more": false }))
        .errors(&[Code::ValidationFailed])
}
