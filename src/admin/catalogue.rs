//! `/categories` and `/products`: what can be ordered at all.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use utoipa::ToSchema;
use vouchsafe_actors::domain::product::{ProductId, check_slug};

use super::body::{Json, name};
use super::change;
use super::operator::{Operator, Role};
use super::products::PutRequest;
use crate::errors::{ApiError, Code};
use crate::http::Page;
use crate::service::Service;
use crate::store::{Category, PutCategory, PutProduct, ShownProduct};

/// What a category is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CategoryRequest {
    /// What it is called.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// What it is a part of.
    #[serde(default)]
    parent_id: Option<String>,
}

/// `GET /categories`.
pub(super) async fn list_categories(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &[])?;
    let all = service.store.list_categories().await?.into_iter();
    let after = page.after::<String>()?;
    let rest = all.filter(|category| after.as_ref().is_none_or(|after| category.category_id > *after));
    Ok(page.answer(rest.take(page.fetch()).collect(), |category| {
        category.category_id.clone()
    }))
}

/// `PUT /categories/{category_id}`: 201 when it is new, 200 when it was there.
pub(super) async fn put_category(
    service: web::Data<Service>,
    operator: Operator,
    category_id: web::Path<String>,
    Json(request): Json<CategoryRequest>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    let category_id = category_id.into_inner();
    check_slug(&category_id).map_err(|error| ApiError::invalid("category_id", error.to_string()))?;
    if let Some(parent_id) = &request.parent_id {
        check_slug(parent_id).map_err(|error| ApiError::invalid("parent_id", error.to_string()))?;
    }
    let category = Category {
        category_id,
        name: name("name", &request.name)?,
        parent_id: request.parent_id,
    };
    match service.store.put_category(category.clone(), by).await? {
        PutCategory::Created => Ok(HttpResponse::Created().json(category)),
        PutCategory::Replaced => Ok(HttpResponse::Ok().json(category)),
        PutCategory::ParentNotFound => Err(ApiError::invalid("parent_id", "there is no such category")),
        PutCategory::Cycle => Err(ApiError::invalid(
            "parent_id",
            "the category would be a part of itself",
        )),
    }
}

/// `GET /products`.
pub(super) async fn list_products(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &[])?;
    let products = service.store.list_products(page.after()?, page.fetch()).await?;
    let shown = products.iter().map(ShownProduct::of).collect();
    Ok(page.answer(shown, |product| product.product_id().to_string()))
}

/// `GET /products/{product_id}`.
pub(super) async fn get_product(
    service: web::Data<Service>,
    _operator: Operator,
    product_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let product_id: ProductId = product_id.parse().map_err(|_| no_product())?;
    let product = service
        .store
        .find_product(product_id)
        .await?
        .ok_or_else(no_product)?;
    Ok(HttpResponse::Ok().json(ShownProduct::of(&product)))
}

/// `PUT /products/{product_id}`: 201 when it is new, 200 when it was there.
pub(super) async fn put_product(
    service: web::Data<Service>,
    operator: Operator,
    product_id: web::Path<String>,
    Json(request): Json<PutRequest>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    let product_id: ProductId =
        product_id
            .parse()
            .map_err(|error: vouchsafe_actors::domain::product::InvalidSlug| {
                ApiError::invalid("product_id", error.to_string())
            })?;
    let product = request.into_product(product_id, service.clock.now())?;
    let put = change::make(&service, |service| async move {
        let put = service.store.put_product(product, by).await?;
        if let PutProduct::Created(product) | PutProduct::Replaced(product) = &put {
            service.catalogue.put(product.clone());
        }
        Ok(put)
    });
    match put.await? {
        PutProduct::Created(product) => Ok(HttpResponse::Created().json(ShownProduct::of(&product))),
        PutProduct::Replaced(product) => Ok(HttpResponse::Ok().json(ShownProduct::of(&product))),
        PutProduct::CategoryNotFound => Err(ApiError::invalid(
            "category_id",
            "there is no such category; PUT it first",
        )),
        PutProduct::VendorNotFound => Err(ApiError::invalid(
            "vendor",
            "there is no such vendor; PUT it first, with the adapter manual where operators bring the vouchers in",
        )),
        PutProduct::CurrencyFixed => Err(ApiError::invalid(
            "currency",
            "cannot change, as face values would mean something else; make another product",
        )),
        PutProduct::BrandFixed => Err(ApiError::invalid(
            "brand",
            "cannot change, as stock of the product was imported",
        )),
    }
}

pub(super) fn no_product() -> ApiError {
    ApiError::new(
        Code::ProductNotFound,
        "there is no such product; GET /admin/v1/products lists them",
    )
}
