//! `/categories`: the shelves on which this partner finds something to order.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::Caller;
use super::etag;
use super::list::Page;
use crate::errors::ApiError;
use crate::service::Service;

/// A shelf of the catalogue.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Category)]
pub(super) struct CategoryBody {
    /// Its id.
    category_id: String,
    /// What it is called.
    name: String,
    /// What it is a part of.
    #[schema(required)]
    parent_id: Option<String>,
    /// How many products in it this partner may order.
    product_count: usize,
}

/// `GET /categories`.
///
/// # Errors
/// `VALIDATION_FAILED` and `INVALID_CURSOR`.
pub async fn list(
    service: web::Data<Service>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &[])?;
    let after = page.after::<String>()?;
    let assortment = service.catalogue.of(&caller.partner);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for product in assortment.products() {
        *counts.entry(&product.category_id).or_default() += 1;
    }
    let categories = service.store.list_categories().await?;
    let shown = categories.into_iter().filter_map(|category| {
        let product_count = *counts.get(category.category_id.as_str())?;
        let comes = after.as_ref().is_none_or(|after| category.category_id > *after);
        comes.then_some(CategoryBody {
            category_id: category.category_id,
            name: category.name,
            parent_id: category.parent_id,
            product_count,
        })
    });
    let shown = shown.take(page.fetch()).collect();
    let envelope = page.envelope(shown, |body: &CategoryBody| body.category_id.clone());
    etag::answer(&request, &envelope)
}
