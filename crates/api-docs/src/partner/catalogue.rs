//! OpenAPI operations of `/categories` and `/products`.

use serde_json::{Value, json};
use vouchsafe_wire::partner::operations;

use super::describe;
use crate::examples;
use crate::openapi::Operation;

pub(super) fn catalogue() -> Vec<Operation> {
    vec![
        describe(operations::LIST_PRODUCTS, "Lists the products that you can order, sorted by id. Products are never removed: one that is no longer sold is \
             `DISCONTINUED`.")
            .list("A page of products.", product())
            .conditional(),
        describe(operations::LIST_CATEGORIES, "Lists the categories with at least one product that you can order, sorted by id.")
            .list("The categories.", json!({
                "category_id": "gaming", "name": "Gaming", "parent_id": null, "product_count": 3,
            }))
            .conditional(),
        describe(operations::GET_PRODUCT, "Returns a product with the availability of each denomination, as of the last commit.")
            .ok("The product.", product_with_stock())
            .conditional(),
    ]
}

fn product_with_stock() -> Value {
    let mut product = product();
    product["stock"] = json!([
        { "denomination": 25.0, "availability": "IN_STOCK" },
        { "denomination": 50.0, "availability": "LOW_STOCK" },
    ]);
    product
}

fn product() -> Value {
    let mut product = examples::product();
    product["availability"] = "IN_STOCK".into();
    product
}
