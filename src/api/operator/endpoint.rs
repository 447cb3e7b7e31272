//! Endpoints below `/admin/v1`, which reject operators below the role of their operation.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Handler, ServiceRequest, ServiceResponse};
use actix_web::middleware::{Next, from_fn};
use actix_web::{Error, FromRequest, Responder, ResponseError as _};
use vouchsafe_wire::operator::operation::{Operation, Route};

use crate::api::endpoint::Endpoint;
use crate::api::error::ApiError;
use crate::api::middleware::operator;
use crate::api::operator::csv_export::export_list;
use crate::api::operator::list_count::count_list;

/// Binds an operation to its handler.
pub(super) fn bind<Q, R, F, Args>(operation: Operation<Q, R>, handler: F) -> Endpoint
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    protect(Endpoint::new(&operation.route, handler), &operation.route)
}

/// A function of its own: the compiler makes a copy of [`bind`] for each handler.
fn protect(endpoint: Endpoint, operation: &Route) -> Endpoint {
    let needed = operation.access.role;
    let check = from_fn(move |request, next| operator::require_role(needed, request, next));
    let operation = *operation;
    let endpoint = match operation.method.is_read() {
        true if operation.is_list => {
            let export = from_fn(move |request, next| export_list(operation, request, next));
            endpoint.map_route(|route| route.wrap(from_fn(count_list)).wrap(export))
        }
        true => endpoint,
        false => endpoint.map_route(|route| route.wrap(from_fn(report_unknown_outcome))),
    };
    endpoint.map_route(|route| route.wrap(check))
}

/// Tells an operator that a change may have been made: repeating it could make it twice.
async fn report_unknown_outcome(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let response = next.call(request).await?;
    let error = response
        .response()
        .error()
        .and_then(|error| error.as_error::<ApiError>());
    if !error.is_some_and(|error| error.may_be_written) {
        return Ok(response.map_into_boxed_body());
    }
    let (request, _) = response.into_parts();
    let response = ApiError::outcome_unknown().error_response();
    Ok(ServiceResponse::new(request, response))
}
