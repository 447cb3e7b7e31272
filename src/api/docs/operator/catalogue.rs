//! OpenAPI operations of `/categories` and `/products`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_domain::category::Category;
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::product::view::ProductView;
use vouchsafe_domain::schema::slug;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::categories::CategoryRequest;
use vouchsafe_wire::operator::products::ProductRequest;

use super::{CATALOGUE, json_write_operation, read_operation};
use crate::api::docs::openapi::{Operation, OperationResponse};

pub(super) fn operations() -> [Operation; 5] {
    [
        list_categories(),
        put_category(),
        list_products(),
        get_product(),
        put_product(),
    ]
}

fn list_categories() -> Operation {
    read_operation("/categories", "listCategories")
        .describe(CATALOGUE, "List categories", "Sorted by ID.")
        .paginated()
        .response(OperationResponse::page::<Category>(
            "Page of categories.",
            category(),
        ))
}

fn put_category() -> Operation {
    let path = "/categories/{category_id}";
    json_write_operation(HttpMethod::Put, path, "putCategory")
        .describe(
            CATALOGUE,
            "Create or replace a category",
            "The parent must exist; cycles are rejected.",
        )
        .path_parameter("category_id", "Category ID.", slug("Category ID", "gaming"))
        .json_body::<CategoryRequest>(json!({ "name": "Gaming" }))
        .response(OperationResponse::json::<Category>(200, "Replaced.", category()))
        .response(OperationResponse::json::<Category>(201, "Created.", category()))
}

fn list_products() -> Operation {
    read_operation("/products", "listProducts")
        .describe(CATALOGUE, "List products", "Sorted by ID.")
        .paginated()
        .response(OperationResponse::page::<ProductView<'_>>(
            "Page of products.",
            product(),
        ))
}

fn get_product() -> Operation {
    read_operation("/products/{product_id}", "getProduct")
        .describe(CATALOGUE, "Get a product", "With all fields.")
        .path_parameter("product_id", "Product ID.", ProductId::schema())
        .response(OperationResponse::json::<ProductView<'_>>(
            200,
            "The product.",
            product(),
        ))
        .errors(&[Code::ProductNotFound])
}

fn put_product() -> Operation {
    let request = json!({
        "name": "Amazon.com gift card", "brand": "amazon", "category_id": "retail", "vendor": "mock", "currency": "USD",
        "countries": ["US"], "denominations": [25, "50.00"], "expiry_policy": { "type": "MONTHS_FROM_ISSUE", "value": 12 },
        "redemption": { "instructions": "Enter the code at checkout." }, "route": "stock",
    });
    json_write_operation(HttpMethod::Put, "/products/{product_id}", "putProduct")
        .describe(
            CATALOGUE,
            "Create or replace a product",
            "Replaces all fields; omitted ones get their default. Brand and currency cannot change after stock was \
             imported.",
        )
        .path_parameter("product_id", "Product ID.", ProductId::schema())
        .json_body::<ProductRequest>(request)
        .response(OperationResponse::json::<ProductView<'_>>(200, "Replaced.", product()))
        .response(OperationResponse::json::<ProductView<'_>>(201, "Created.", product()))
}

fn category() -> Value {
    json!({ "category_id": "gaming", "name": "Gaming", "parent_id": null })
}

fn product() -> Value {
    json!({
        "product_id": "amzn-us",
        "name": "Amazon.com gift card",
        "brand": "amazon",
        "category_id": "retail",
        "vendor": "mock",
        "currency": "USD",
        "countries": ["US"],
        "denominations": [25, 50],
        "denomination_range": null,
        "expiry_policy": { "type": "MONTHS_FROM_ISSUE", "value": 12 },
        "redemption": { "instructions": "Enter the code at checkout.", "terms": "" },
        "route": "stock",
        "approval": "rule",
        "returnable": false,
        "min_validity_days": 0,
        "low_stock_at": 20,
        "discontinued": false,
        "updated_at": "2026-11-20T12:00:00.123456Z",
    })
}
