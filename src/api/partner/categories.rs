//! `GET /categories`: categories with at least one product that the partner can order.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, web};
use vouchsafe_wire::filter::WholeList;
use vouchsafe_wire::partner::categories::CategoryBody;

use crate::api::error::ApiResult;
use crate::api::etag;
use crate::api::partner::PartnerState;
use crate::api::partner::authenticated_list::AuthenticatedList;

pub(super) async fn list(
    service: web::Data<PartnerState>,
    AuthenticatedList { caller, page, .. }: AuthenticatedList<WholeList>,
    request: HttpRequest,
) -> ApiResult {
    let after = page.after::<String>()?;
    let assortment = service.catalogue.assortment_for(caller.partner.scope.as_ref());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for product in assortment.products() {
        *counts.entry(&product.category_id).or_default() += 1;
    }
    let categories = service.store.categories.list().await?;
    let bodies = categories.into_iter().filter_map(|category| {
        let product_count = *counts.get(category.category_id.as_str())?;
        let is_after_cursor = after.as_ref().is_none_or(|after| category.category_id > *after);
        is_after_cursor.then(|| CategoryBody::of(category, product_count))
    });
    let bodies = bodies.take(page.fetch_limit()).collect();
    let page_body = page.body(bodies, |body: &CategoryBody| body.category_id.clone())?;
    etag::conditional_response(&request, &page_body)
}
