//! What is said of `/categories` and `/products`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_actors::domain::product::ProductId;

use super::{CATALOGUE, identified};
use crate::errors::Code;
use crate::http::categories::CategoryBody;
use crate::http::products::ProductBody;
use crate::openapi::{Answer, Header, Operation, filter};

/// `GET /categories`.
pub(super) fn list_categories() -> Operation {
    let category = json!({
        "category_id": "gaming", "name": "Gaming", "parent_id": null, "product_count": 3,
    });
    identified(HttpMethod::Get, "/categories", "listCategories")
        .says(
            CATALOGUE,
            "List categories",
            "Those with at least one product that you may order, by id.",
        )
        .paged()
        .tagged()
        .answers(Answer::page_of::<CategoryBody>("Categories.", category).with(Header::EntityTag))
}

/// `GET /products`.
pub(super) fn list_products() -> Operation {
    identified(HttpMethod::Get, "/products", "listProducts")
        .says(
            CATALOGUE,
            "List products",
            "Those that you may order, by id. A product never vanishes: one that is no longer sold is `DISCONTINUED`.",
        )
        .query("currency", "Only those of this currency.", filter("USD"))
        .query(
            "country",
            "Only those that can be redeemed in this country (ISO 3166, two capital letters).",
            filter("US"),
        )
        .query("category_id", "Only those of this category.", filter("gaming"))
        .paged()
        .tagged()
        .answers(Answer::page_of::<ProductBody<'_>>("Products.", product()).with(Header::EntityTag))
}

/// `GET /products/{product_id}`.
pub(super) fn get_product() -> Operation {
    let mut product = product();
    product["stock"] = json!([
        { "denomination": 25, "availability": "IN_STOCK" },
        { "denomination": 50, "availability": "LOW_STOCK" },
    ]);
    identified(HttpMethod::Get, "/products/{product_id}", "getProduct")
        .says(
            CATALOGUE,
            "Get a product",
            "A product, with the availability of each of its denominations as of the last commit.",
        )
        .path("product_id", "Which product.", ProductId::schema())
        .tagged()
        .answers(Answer::of::<ProductBody<'_>>(200, "The product.", product).with(Header::EntityTag))
        .refuses(&[Code::ProductNotFound])
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
