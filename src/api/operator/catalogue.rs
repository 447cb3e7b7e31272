//! `/categories` and `/products`: the catalogue.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::language::{InvalidLanguage, Language};
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::product_search::ProductSearch;
use vouchsafe_store::{PutCategoryOutcome, PutProductOutcome};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::catalogue;
use vouchsafe_wire::operator::categories::CategoryRequest;
use vouchsafe_wire::operator::products::ProductRequest;
use vouchsafe_wire::operator::products::content::{MAX_TRANSLATIONS, ProductTranslationRequest};

use super::body::Json;
use super::config_change;
use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, list_response, sorted_list_response};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::endpoint::bind;

pub(super) fn endpoints() -> [Endpoint; catalogue::OPERATIONS.len()] {
    [
        bind(catalogue::LIST_CATEGORIES, list_categories),
        bind(catalogue::PUT_CATEGORY, put_category),
        bind(catalogue::LIST_PRODUCTS, list_products),
        bind(catalogue::GET_PRODUCT, get_product),
        bind(catalogue::PUT_PRODUCT, put_product),
        bind(catalogue::PUT_PRODUCT_TRANSLATION, put_translation),
        bind(catalogue::DELETE_PRODUCT_TRANSLATION, delete_translation),
    ]
}

/// `GET /categories`.
async fn list_categories(
    service: web::Data<OperatorState>,
    ListRequest { page, .. }: ListRequest,
) -> ApiResult {
    let categories = service.store.categories.list().await?;
    sorted_list_response(&page, categories, |category| category.category_id.clone())
}

/// `PUT /categories/{category_id}`: 201 if created, 200 if replaced.
async fn put_category(
    service: web::Data<OperatorState>,
    operator: Operator,
    category_id: web::Path<String>,
    Json(request): Json<CategoryRequest>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let category = request.into_category(&category_id)?;
    match service.store.categories.put(category.clone(), actor).await? {
        PutCategoryOutcome::Created => Ok(HttpResponse::Created().json(category)),
        PutCategoryOutcome::Replaced => Ok(HttpResponse::Ok().json(category)),
        PutCategoryOutcome::ParentNotFound => Err(ApiError::invalid_field("parent_id", "no such category")),
        PutCategoryOutcome::Cycle => Err(ApiError::invalid_field(
            "parent_id",
            "the category would be its own ancestor",
        )),
    }
}

/// `GET /products`.
async fn list_products(
    service: web::Data<OperatorState>,
    ListRequest { page, filter }: ListRequest<ProductSearch>,
) -> ApiResult {
    let products = &service.store.products;
    let products = products.list(filter, page.after()?, page.fetch_limit());
    list_response(&page, products.await?, |product| product.product_id.clone())
}

/// `GET /products/{product_id}`.
async fn get_product(service: web::Data<OperatorState>, product_id: web::Path<String>) -> ApiResult {
    let product_id: ProductId = product_id.parse().map_err(|_| product_not_found())?;
    let product = service
        .store
        .products
        .find(product_id)
        .await?
        .ok_or_else(product_not_found)?;
    Ok(HttpResponse::Ok().json(product))
}

/// `PUT /products/{product_id}`: 201 if created, 200 if replaced.
async fn put_product(
    service: web::Data<OperatorState>,
    operator: Operator,
    product_id: web::Path<String>,
    Json(request): Json<ProductRequest>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let product_id: ProductId =
        product_id
            .parse()
            .map_err(|error: vouchsafe_domain::product::InvalidSlug| {
                ApiError::invalid_field("product_id", error.to_string())
            })?;
    let product = request.into_product(product_id, &service.catalogue.current(), service.clock.now())?;
    let put = config_change::apply(&service, |service| async move {
        let put = service.store.products.put(product, actor).await?;
        if let PutProductOutcome::Created(product) | PutProductOutcome::Replaced(product) = &put {
            service.catalogue.put(product.clone());
        }
        Ok(put)
    });
    match put.await? {
        PutProductOutcome::Created(product) => Ok(HttpResponse::Created().json(product)),
        PutProductOutcome::Replaced(product) => Ok(HttpResponse::Ok().json(product)),
        PutProductOutcome::CategoryNotFound => Err(ApiError::invalid_field(
            "category_id",
            "no such category; create it first",
        )),
        PutProductOutcome::VendorNotFound => Err(ApiError::invalid_field(
            "vendor",
            "no such vendor; create it first, with the adapter `manual` if you supply the vouchers",
        )),
        PutProductOutcome::CurrencyFixed => Err(ApiError::invalid_field(
            "currency",
            "cannot change, because the denominations would change their meaning; create another product",
        )),
        PutProductOutcome::CodeCaseFixed => Err(ApiError::invalid_field(
            "code_case",
            "cannot change after stock of the brand was imported",
        )),
        PutProductOutcome::BrandFixed => Err(ApiError::invalid_field(
            "brand",
            "cannot change after stock of the product was imported",
        )),
    }
}

/// `PUT /products/{product_id}/translations/{language}`.
async fn put_translation(
    service: web::Data<OperatorState>,
    operator: Operator,
    path: web::Path<(String, String)>,
    Json(request): Json<ProductTranslationRequest>,
) -> ApiResult {
    let (product_id, language) = parse_translation_path(&path)?;
    let translation = request.into_translation(language);
    let actor = operator.audit_actor();
    let known = service.store.products.find(product_id.clone()).await?;
    let known = known.ok_or_else(product_not_found)?;
    if known.content.language == translation.language {
        return Err(ApiError::invalid_field(
            "language",
            "is the language of the product itself; change the product",
        ));
    }
    let count = known
        .languages()
        .filter(|language| **language != translation.language)
        .count();
    if count > MAX_TRANSLATIONS {
        let message = format!("expected at most {MAX_TRANSLATIONS} languages besides that of the product");
        return Err(ApiError::invalid_field("language", message));
    }
    let changed = config_change::apply(&service, |service| async move {
        let products = &service.store.products;
        let product = products.put_translation(product_id, translation, actor).await?;
        if let Some(product) = &product {
            service.catalogue.put(product.clone());
        }
        Ok(product)
    });
    let product = changed.await?.ok_or_else(product_not_found)?;
    Ok(HttpResponse::Ok().json(product))
}

/// `DELETE /products/{product_id}/translations/{language}`.
async fn delete_translation(
    service: web::Data<OperatorState>,
    operator: Operator,
    path: web::Path<(String, String)>,
) -> ApiResult {
    let (product_id, language) = parse_translation_path(&path)?;
    let actor = operator.audit_actor();
    let changed = config_change::apply(&service, |service| async move {
        let products = &service.store.products;
        let product = products.delete_translation(product_id, language, actor).await?;
        if let Some(product) = &product {
            service.catalogue.put(product.clone());
        }
        Ok(product)
    });
    changed.await?.ok_or_else(product_not_found)?;
    Ok(HttpResponse::NoContent().finish())
}

fn parse_translation_path(
    (product_id, language): &(String, String),
) -> Result<(ProductId, Language), ApiError> {
    let language = language
        .parse()
        .map_err(|error: InvalidLanguage| ApiError::invalid_field("language", error.to_string()))?;
    let product_id = product_id.parse().map_err(|_| product_not_found())?;
    Ok((product_id, language))
}

pub(super) fn product_not_found() -> ApiError {
    ApiError::new(
        Code::ProductNotFound,
        "no such product; GET /admin/v1/products lists all",
    )
}
