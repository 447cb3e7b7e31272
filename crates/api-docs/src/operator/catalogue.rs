//! OpenAPI operations of `/categories` and `/products`.

use serde_json::{Value, json};
use vouchsafe_wire::operator::catalogue;

use super::describe;
use crate::examples;
use crate::openapi::Operation;

pub(super) fn catalogue() -> [Operation; catalogue::OPERATIONS.len()] {
    [
        describe(catalogue::LIST_CATEGORIES, "Sorted by ID.")
            .list("Page of categories.", category()),
        describe(catalogue::PUT_CATEGORY, "The parent must exist; cycles are rejected.")
            .json_body(json!({ "name": "Gaming" }))
            .responses([(200, "Replaced.", category()), (201, "Created.", category())]),
        describe(catalogue::LIST_PRODUCTS, "Sorted by ID.")
            .list("Page of products.", product()),
        describe(catalogue::GET_PRODUCT, "With all fields.")
            .ok("The product.", product()),
        describe(catalogue::PUT_PRODUCT, "Replaces all fields; omitted ones get their default. Brand and currency cannot change after stock was \
             imported, `code_case` not after stock of the brand was; it is the same for all products of a brand.")
            .json_body(json!({
                "name": "Amazon.com gift card", "brand": "amazon", "category_id": "retail", "vendor": "mock", "currency": "USD",
                "countries": ["US"], "denominations": [25, "50.00"], "expiry_policy": { "type": "MONTHS_FROM_ISSUE", "value": 12 },
                "redemption": { "instructions": "Enter the code at checkout." }, "route": "stock",
            }))
            .responses([(200, "Replaced.", product()), (201, "Created.", product())]),
    ]
}

fn category() -> Value {
    json!({ "category_id": "gaming", "name": "Gaming", "parent_id": null })
}

fn product() -> Value {
    let mut product = examples::product();
    product["route"] = "stock".into();
    product["approval"] = "rule".into();
    product["returnable"] = false.into();
    product["code_identity"] = "code".into();
    product["code_case"] = "exact".into();
    product["min_validity_days"] = 0.into();
    product["low_stock_at"] = 20.into();
    product["discontinued"] = false.into();
    product
}
