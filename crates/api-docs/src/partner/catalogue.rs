//! OpenAPI operations of `/categories` and `/products`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use vouchsafe_domain::product::ProductId;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::WholeList;
use vouchsafe_wire::partner::categories::CategoryBody;
use vouchsafe_wire::partner::products::{ProductBody, ProductFilter};

use super::{CATALOGUE, unsigned_operation};
use crate::examples;
use crate::openapi::Operation;

pub fn list_categories(operation: Operation) -> Operation {
    let category = json!({
        "category_id": "gaming", "name": "Gaming", "parent_id": null, "product_count": 3,
    });
    unsigned_operation(operation, "listCategories")
        .describe(
            CATALOGUE,
            "List categories",
            "Lists the categories with at least one product that you can order, sorted by id.",
        )
        .list::<WholeList, CategoryBody>("The categories.", category)
        .conditional()
}

pub fn list_products(operation: Operation) -> Operation {
    unsigned_operation(operation, "listProducts")
        .describe(
            CATALOGUE,
            "List products",
            "Lists the products that you can order, sorted by id. Products are never removed: one that is no longer sold is \
             `DISCONTINUED`.",
        )
        .list::<ProductFilter, ProductBody<'_>>("A page of products.", product())
        .conditional()
}

pub fn get_product(operation: Operation) -> Operation {
    let mut product = product();
    product["stock"] = json!([
        { "denomination": 25, "availability": "IN_STOCK" },
        { "denomination": 50, "availability": "LOW_STOCK" },
    ]);
    unsigned_operation(operation, "getProduct")
        .describe(
            CATALOGUE,
            "Get a product",
            "Returns a product with the availability of each denomination, as of the last commit.",
        )
        .path_parameter("product_id", "Product id.", ProductId::schema())
        .conditional()
        .ok::<ProductBody<'_>>("The product.", product)
        .errors(&[Code::ProductNotFound])
}

fn product() -> Value {
    let mut product = examples::product();
    product["availability"] = "IN_STOCK".into();
    product
}
