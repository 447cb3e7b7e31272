//! `GET /orders`: list of a partner's orders, newest first, in the representation of `GET
//! /orders/{order_id}`.

use actix_web::web;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::order::filter::{OrderFilter, OrderSearch};
use vouchsafe_wire::page::PageEntries;
use vouchsafe_wire::partner::orders::body::OrderBody;

use crate::api::error::ApiResult;
use crate::api::list_request::list_orders;
use crate::api::partner::PartnerState;
use crate::api::partner::authenticated_list::AuthenticatedList;

pub(in crate::api::partner) async fn list(
    service: web::Data<PartnerState>,
    AuthenticatedList { caller, page, filter }: AuthenticatedList<OrderFilter>,
) -> ApiResult {
    let search = OrderSearch {
        partner_id: Some(caller.partner_id()),
        filter,
        ..OrderSearch::default()
    };
    let push = |page: &mut PageEntries, order: &Order| Ok(page.push(&OrderBody::of(order)?)?);
    let orders = &service.store.orders;
    let fetch = async |before, step| orders.search(search.clone(), before, step).await;
    list_orders(&page, &search.filter, service.clock.now(), fetch, push).await
}
