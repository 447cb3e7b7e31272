//! Operations on categories and products.

use vouchsafe_domain::category::Category;
use vouchsafe_domain::operator::Role;
use vouchsafe_domain::product::Product;
use vouchsafe_domain::product_search::ProductSearch;

use crate::column::col;
use crate::error_code::Code;
use crate::filter::NoFilter;
use crate::operation::{Page, operations};
use crate::operator::categories::CategoryRequest;
use crate::operator::operation::SecondOperator::Never;
use crate::operator::operation::{Operation, OperatorAccess, delete, get, put};
use crate::operator::products::ProductRequest;
use crate::operator::products::content::ProductTranslationRequest;

operations! {
    OperatorAccess;
    LIST_CATEGORIES: Operation<NoFilter, Page<Category>> =
        get("/categories", Role::Viewer, "listCategories", "List categories")
            .columns(&[
                col("Category", "category_id"),
                col("Name", "name").text(16),
                col("Parent", "parent_id"),
            ]);
    PUT_CATEGORY: Operation<CategoryRequest, Category> =
        put("/categories/{category_id}", Role::Admin, Never, "putCategory", "Create or replace a category");
    LIST_PRODUCTS: Operation<ProductSearch, Page<Product>> =
        get("/products", Role::Viewer, "listProducts", "List products")
            .columns(&[
                col("Product", "product_id"),
                col("Name", "name").text(16),
                col("Brand", "brand").text(10),
                col("Category", "category_id").at(5),
                col("Vendor", "vendor").at(8),
                col("Currency", "currency").at(2),
                col("Denominations", "denominations").text(14).at(3),
                col("Discontinued", "discontinued"),
                col("Route", "route").at(4).terminal_only(),
            ]);
    GET_PRODUCT: Operation<(), Product> =
        get("/products/{product_id}", Role::Viewer, "getProduct", "Get a product").errors(&[Code::ProductNotFound]);
    PUT_PRODUCT: Operation<ProductRequest, Product> =
        put("/products/{product_id}", Role::Admin, Never, "putProduct", "Create or replace a product");
    PUT_PRODUCT_TRANSLATION: Operation<ProductTranslationRequest, Product> = put(
        "/products/{product_id}/translations/{language}",
        Role::Admin,
        Never,
        "putProductTranslation",
        "Create or replace the texts of a product in a language",
    )
            .errors(&[Code::ProductNotFound]);
    DELETE_PRODUCT_TRANSLATION: Operation<(), ()> = delete(
        "/products/{product_id}/translations/{language}",
        Role::Admin,
        Never,
        "deleteProductTranslation",
        "Delete the texts of a product in a language",
    )
            .errors(&[Code::ProductNotFound, Code::ValidationFailed]);
}
