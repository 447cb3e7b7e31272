//! OpenAPI operations of `/categories` and `/products`.

use serde_json::{Value, json};
use vouchsafe_domain::category::Category;
use vouchsafe_domain::product::view::ProductView;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::NoFilter;
use vouchsafe_wire::operator::categories::CategoryRequest;
use vouchsafe_wire::operator::products::ProductRequest;

use super::{CATALOGUE, json_write_operation, read_operation};
use crate::examples;
use crate::openapi::Operation;

pub fn list_categories(operation: Operation) -> Operation {
    read_operation(operation, "listCategories")
        .describe(CATALOGUE, "List categories", "Sorted by ID.")
        .list::<NoFilter, Category>("Page of categories.", category())
}

pub fn put_category(operation: Operation) -> Operation {
    json_write_operation(operation, "putCategory")
        .describe(
            CATALOGUE,
            "Create or replace a category",
            "The parent must exist; cycles are rejected.",
        )
        .json_body::<CategoryRequest>(json!({ "name": "Gaming" }))
        .ok::<Category>("Replaced.", category())
        .created::<Category>("Created.", category())
}

pub fn list_products(operation: Operation) -> Operation {
    read_operation(operation, "listProducts")
        .describe(CATALOGUE, "List products", "Sorted by ID.")
        .list::<NoFilter, ProductView<'_>>("Page of products.", product())
}

pub fn get_product(operation: Operation) -> Operation {
    read_operation(operation, "getProduct")
        .describe(CATALOGUE, "Get a product", "With all fields.")
        .ok::<ProductView<'_>>("The product.", product())
        .errors(&[Code::ProductNotFound])
}

pub fn put_product(operation: Operation) -> Operation {
    let request = json!({
        "name": "Amazon.com gift card", "brand": "amazon", "category_id": "retail", "vendor": "mock", "currency": "USD",
        "countries": ["US"], "denominations": [25, "50.00"], "expiry_policy": { "type": "MONTHS_FROM_ISSUE", "value": 12 },
        "redemption": { "instructions": "Enter the code at checkout." }, "route": "stock",
    });
    json_write_operation(operation, "putProduct")
        .describe(
            CATALOGUE,
            "Create or replace a product",
            "Replaces all fields; omitted ones get their default. Brand and currency cannot change after stock was \
             imported, `code_case` not after stock of the brand was; it is the same for all products of a brand.",
        )
        .json_body::<ProductRequest>(request)
        .ok::<ProductView<'_>>("Replaced.", product())
        .created::<ProductView<'_>>("Created.", product())
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
