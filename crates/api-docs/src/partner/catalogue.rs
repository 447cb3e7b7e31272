//! OpenAPI operations of `/categories` and `/products`.

use serde_json::{Value, json};
use vouchsafe_domain::language::AcceptedLanguages;
use vouchsafe_domain::money::Money;
use vouchsafe_domain::product::{Product, Sku};
use vouchsafe_domain::stock::FreeVouchers;
use vouchsafe_wire::partner::operations;
use vouchsafe_wire::partner::products::ProductBody;

use super::describe;
use crate::examples;
use crate::openapi::{Operation, ResponseHeader, text};

const ACCEPT_LANGUAGE: &str =
    "Languages of the texts, best first. A product without one of them has its texts in its own language.";

pub(super) fn catalogue() -> Vec<Operation> {
    vec![
        describe(operations::LIST_PRODUCTS, "Lists the products that you can order, sorted by id. Products are never removed: one that is no longer sold is \
             `DISCONTINUED`.")
            .list("A page of products.", product())
            .with_header(ResponseHeader::ContentLanguage)
            .header_parameter("Accept-Language", ACCEPT_LANGUAGE, text("de-AT, en;q=0.5"))
            .conditional(),
        describe(operations::LIST_CATEGORIES, "Lists the categories with at least one product that you can order, sorted by id.")
            .list("The categories.", json!({
                "category_id": "gaming", "name": "Gaming", "parent_id": null, "product_count": 3,
            }))
            .conditional(),
        describe(operations::GET_PRODUCT, "Returns a product with the availability of each denomination, as of the last commit.")
            .ok("The product.", product_with_stock())
            .with_header(ResponseHeader::ContentLanguage)
            .header_parameter("Accept-Language", ACCEPT_LANGUAGE, text("de-AT, en;q=0.5"))
            .conditional(),
    ]
}

fn product_with_stock() -> Value {
    show_product(|product, free| {
        json!(ProductBody::with_stock(
            product,
            free,
            &AcceptedLanguages::default()
        ))
    })
}

fn product() -> Value {
    show_product(|product, free| json!(ProductBody::of(product, free, &AcceptedLanguages::default())))
}

fn show_product(show: impl Fn(&Product, &FreeVouchers) -> Value) -> Value {
    let Some(product) = examples::product() else {
        return Value::Null;
    };
    let sku = |denomination: &Money| Sku {
        product_id: product.product_id.clone(),
        denomination: denomination.amount,
    };
    let free = product.denominations.iter().map(sku).zip([100, 5]).collect();
    show(&product, &free)
}
