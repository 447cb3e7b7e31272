//! What is said of `/categories` and `/products`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_actors::domain::product::ProductId;
use vouchsafe_actors::domain::schema::slug;

use super::{CATALOGUE, looks, writes_json};
use crate::admin::catalogue::CategoryRequest;
use crate::admin::products::PutRequest;
use crate::errors::Code;
use crate::openapi::{Answer, Operation};
use crate::store::{Category, ShownProduct};

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
    looks("/categories", "listCategories")
        .says(CATALOGUE, "List categories", "All of them, by id.")
        .paged()
        .answers(Answer::page_of::<Category>("Categories.", category()))
}

fn put_category() -> Operation {
    let path = "/categories/{category_id}";
    writes_json(HttpMethod::Put, path, "putCategory")
        .says(
            CATALOGUE,
            "Make or replace a category",
            "Its parent must be there, and no category is a part of itself.",
        )
        .path(
            "category_id",
            "Which category.",
            slug("The id of a category", "gaming"),
        )
        .takes::<CategoryRequest>(json!({ "name": "Gaming" }))
        .answers(Answer::of::<Category>(
            200,
            "It was there, and is replaced.",
            category(),
        ))
        .answers(Answer::of::<Category>(201, "It is new.", category()))
}

fn list_products() -> Operation {
    looks("/products", "listProducts")
        .says(CATALOGUE, "List products", "All of them, by id.")
        .paged()
        .answers(Answer::page_of::<ShownProduct<'_>>("Products.", product()))
}

fn get_product() -> Operation {
    looks("/products/{product_id}", "getProduct")
        .says(CATALOGUE, "Get a product", "All there is to it.")
        .path("product_id", "Which product.", ProductId::schema())
        .answers(Answer::of::<ShownProduct<'_>>(200, "The product.", product()))
        .refuses(&[Code::ProductNotFound])
}

fn put_product() -> Operation {
    let request = json!({
        "name": "Amazon.com gift card", "brand": "amazon", "category_id": "retail", "vendor": "mock", "currency": "USD",
        "countries": ["US"], "denominations": [25, "50.00"], "expiry_policy": { "type": "MONTHS_FROM_ISSUE", "value": 12 },
        "redemption": { "instructions": "Enter the code at checkout." }, "route": "stock",
    });
    writes_json(HttpMethod::Put, "/products/{product_id}", "putProduct")
        .says(
            CATALOGUE,
            "Make or replace a product",
            "The whole of it: what is left out has its default. Brand and currency stay as they are once stock was \
             imported.",
        )
        .path("product_id", "Which product.", ProductId::schema())
        .takes::<PutRequest>(request)
        .answers(Answer::of::<ShownProduct<'_>>(200, "It was there, and is replaced.", product()))
        .answers(Answer::of::<ShownProduct<'_>>(201, "It is new.", product()))
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
