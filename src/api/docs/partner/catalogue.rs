//! OpenAPI operations of `/categories` and `/products`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_domain::product::ProductId;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::categories::CategoryBody;
use vouchsafe_wire::partner::products::ProductBody;

use super::{CATALOGUE, unsigned_operation};
use crate::api::docs::openapi::{Operation, OperationResponse, ResponseHeader, filter};

/// `GET /categories`.
pub(super) fn list_categories() -> Operation {
    let category = json!({
        "category_id": "gaming", "name": "Gaming", "parent_id": null, "product_count": 3,
    });
    unsigned_operation(HttpMethod::Get, "/categories", "listCategories")
        .describe(
            CATALOGUE,
            "List categories",
            "Lists the categories with at least one product that you can order, sorted by id.",
        )
        .paginated()
        .conditional()
        .response(
            OperationResponse::page::<CategoryBody>("A page of categories.", category)
                .with_header(ResponseHeader::EntityTag),
        )
}

/// `GET /products`.
pub(super) fn list_products() -> Operation {
    unsigned_operation(HttpMethod::Get, "/products", "listProducts")
        .describe(
            CATALOGUE,
            "List products",
            "Lists the products that you can order, sorted by id. Products are never removed: one that is no longer sold is \
             `DISCONTINUED`.",
        )
        .query_parameter("currency", "Filter by currency.", filter("USD"))
        .query_parameter(
            "country",
            "Filter by country of redemption (ISO 3166-1 alpha-2, for example `US`).",
            filter("US"),
        )
        .query_parameter("category_id", "Filter by category.", filter("gaming"))
        .paginated()
        .conditional()
        .response(OperationResponse::page::<ProductBody<'_>>("A page of products.", product()).with_header(ResponseHeader::EntityTag))
}

/// `GET /products/{product_id}`.
pub(super) fn get_product() -> Operation {
    let mut product = product();
    product["stock"] = json!([
        { "denomination": 25, "availability": "IN_STOCK" },
        { "denomination": 50, "availability": "LOW_STOCK" },
    ]);
    unsigned_operation(HttpMethod::Get, "/products/{product_id}", "getProduct")
        .describe(
            CATALOGUE,
            "Get a product",
            "Returns a product with the availability of each denomination, as of the last commit.",
        )
        .path_parameter("product_id", "Product id.", ProductId::schema())
        .conditional()
        .response(
            OperationResponse::json::<ProductBody<'_>>(200, "The product.", product)
                .with_header(ResponseHeader::EntityTag),
        )
        .errors(&[Code::ProductNotFound])
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
        "availability": "IN_STOCK",
        "redemption": { "instructions": "Enter the code at checkout.", "terms": "Not redeemable for cash." },
        "updated_at": "2026-11-20T12:00:00.123456Z",
    })
}
