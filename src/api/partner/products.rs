//! `/products`: the partner's catalogue with availability.

use std::collections::BTreeSet;

use actix_web::http::header::{ACCEPT_LANGUAGE, CONTENT_LANGUAGE, HeaderValue, VARY};
use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_domain::language::{AcceptedLanguages, Language};
use vouchsafe_domain::product::{Product, ProductId};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::products::{ProductBody, ProductFilter};

use crate::api::error::{ApiError, ApiResult};
use crate::api::etag;
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::api::partner::PartnerState;
use crate::api::partner::authenticated_list::AuthenticatedList;

pub(super) async fn list(
    service: web::Data<PartnerState>,
    AuthenticatedList { caller, page, filter }: AuthenticatedList<ProductFilter>,
    request: HttpRequest,
) -> ApiResult {
    let assortment = service.catalogue.assortment_for(caller.partner.scope.as_ref());
    let mut products: Vec<&Product> = assortment
        .products()
        .filter(|product| filter.is_match(product))
        .collect();
    products.sort_by(|a, b| a.product_id.cmp(&b.product_id));
    if let Some(after) = page.after::<ProductId>()? {
        products.retain(|product| product.product_id > after);
    }
    products.truncate(page.fetch_limit());
    let free = service.store.stock.count_free(&products).await?;
    let accepted = accepted_languages(&request);
    let bodies: Vec<_> = products
        .into_iter()
        .map(|product| ProductBody::of(product, &free, &accepted))
        .collect();
    let languages = bodies.iter().map(|body| body.language).collect();
    let page_body = page.body(bodies, |body: &ProductBody<'_>| body.product_id.to_string())?;
    etag::conditional_response(&request, &page_body).map(|response| in_languages(response, &languages))
}

pub(super) async fn get(
    service: web::Data<PartnerState>,
    caller: AuthenticatedCaller,
    product_id: web::Path<String>,
    request: HttpRequest,
) -> ApiResult {
    let not_found = || {
        ApiError::new(
            Code::ProductNotFound,
            "no such product; GET /products lists the products you can order",
        )
    };
    let product_id = product_id.parse().map_err(|_| not_found())?;
    let assortment = service.catalogue.assortment_for(caller.partner.scope.as_ref());
    let product = assortment.get(&product_id).ok_or_else(not_found)?;
    let free = service.store.stock.count_free(&[product]).await?;
    let body = ProductBody::with_stock(product, &free, &accepted_languages(&request));
    etag::conditional_response(&request, &body)
        .map(|response| in_languages(response, &BTreeSet::from([body.language])))
}

fn accepted_languages(request: &HttpRequest) -> AcceptedLanguages {
    let lines = request.headers().get_all(ACCEPT_LANGUAGE);
    AcceptedLanguages::parse(lines.filter_map(|line| line.to_str().ok()))
}

/// Adds the languages of the texts. Caches keep a response for each `Accept-Language`.
fn in_languages(mut response: HttpResponse, languages: &BTreeSet<&Language>) -> HttpResponse {
    let names: Vec<_> = languages.iter().map(|language| language.as_str()).collect();
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("Accept-Language"));
    if let (false, Ok(names)) = (names.is_empty(), HeaderValue::from_str(&names.join(", "))) {
        headers.insert(CONTENT_LANGUAGE, names);
    }
    response
}
