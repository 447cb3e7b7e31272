//! `GET /actors`: live actors with mailbox depth, handling times, restarts and last error.

use actix_web::{HttpResponse, web};
use vouchsafe_wire::operator::actors::ActorsQuery;

use crate::api::list_request::ValidatedQuery;
use crate::live_event::list_actors;
use crate::service::Service;

/// `GET /actors`.
pub(super) async fn list(
    service: web::Data<Service>,
    ValidatedQuery(query): ValidatedQuery<ActorsQuery>,
) -> HttpResponse {
    HttpResponse::Ok().json(list_actors(&service, query))
}
