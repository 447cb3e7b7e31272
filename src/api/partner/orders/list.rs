//! `GET /orders`: list of a partner's orders, newest first, in the representation of `GET /orders/{order_id}`.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::order::filter::OrderFilter;
use vouchsafe_wire::partner::orders::body::OrderBody;

use crate::api::error::ApiError;
use crate::api::list_request::list_response;
use crate::api::partner::authenticated_list::AuthenticatedList;
use crate::service::Service;

pub(in crate::api::partner) async fn list(
    service: web::Data<Service>,
    AuthenticatedList { caller, page, filter }: AuthenticatedList<OrderFilter>,
) -> Result<HttpResponse, ApiError> {
    let orders = service
        .partner_store
        .orders
        .list(caller.partner_id(), filter, page.after()?, page.fetch_limit())
        .await?;
    let bodies: Vec<_> = orders.iter().map(OrderBody::of).collect::<Result<_, _>>()?;
    list_response(&page, bodies, OrderBody::order_id)
}
