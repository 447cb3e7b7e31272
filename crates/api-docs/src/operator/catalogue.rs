//! OpenAPI operations of `/categories` and `/products`.

use serde_json::{Value, json};
use vouchsafe_wire::operator::catalogue;

use super::describe;
use crate::examples;
use crate::openapi::Operation;

pub(super) fn catalogue() -> [Operation; catalogue::OPERATIONS.len()] {
    [
        describe(catalogue::LIST_CATEGORIES, "Sorted by ID.").list("Page of categories.", category()),
        describe(
            catalogue::PUT_CATEGORY,
            "The parent must exist; cycles are rejected.",
        )
        .json_body(json!({ "name": "Gaming" }))
        .responses([(200, "Replaced.", category()), (201, "Created.", category())]),
        describe(catalogue::LIST_PRODUCTS, "Sorted by ID.").list("Page of products.", product()),
        describe(catalogue::GET_PRODUCT, "With all fields.").ok("The product.", product()),
        describe(
            catalogue::PUT_PRODUCT,
            "Replaces all fields; omitted ones get their default. Brand and \
            currency cannot change after stock was imported, `code_case` not after stock of the brand was; \
            it is the same for all products of a brand.",
        )
        .json_body(examples::product_request())
        .responses([(200, "Replaced.", product()), (201, "Created.", product())]),
    ]
}

fn category() -> Value {
    json!({ "category_id": "gaming", "name": "Gaming", "parent_id": null })
}

fn product() -> Value {
    json!(examples::product())
}
