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
            .json_body(examples::product_request())
            .responses([(200, "Replaced.", product()), (201, "Created.", product())]),
        describe(catalogue::PUT_PRODUCT_TRANSLATION, "Partners receive these texts if they ask for the language with `Accept-Language`. The product's own \
             language is that of its `content`; a change of the product leaves its translations.")
            .json_body(translation())
            .ok("The product.", with_translation()),
        describe(catalogue::DELETE_PRODUCT_TRANSLATION, "Partners that ask for the language receive the texts of the product's own language.")
            .no_content("The product has no texts in this language."),
    ]
}

fn category() -> Value {
    json!({ "category_id": "gaming", "name": "Gaming", "parent_id": null })
}

fn product() -> Value {
    json!(examples::product())
}

fn translation() -> Value {
    json!({
        "description": "Für alles, was der Laden verkauft.",
        "redemption": { "instructions": "Code an der Kasse eingeben.", "terms": "Keine Barauszahlung." },
    })
}

fn with_translation() -> Value {
    let (mut product, mut translation) = (product(), translation());
    translation["language"] = json!("de");
    product["translations"] = json!([translation]);
    product
}
