//! Endpoints below `/admin/v1`: each with the role that it requires and its need of a second operator, in routing and in the OpenAPI
//! document.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::{Next, from_fn};
use actix_web::{Error, ResponseError as _};
use vouchsafe_api_docs::openapi::Operation;
use vouchsafe_api_docs::operator::{SecondOperator, require_role, require_second_operator};
use vouchsafe_domain::operator::Role;
use vouchsafe_wire::error_code::Code;

use crate::api::endpoint::Endpoint;
use crate::api::error::ApiError;
use crate::api::middleware::operator;

/// An endpoint for operators with at least this role.
pub(super) struct AdminEndpoint {
    pub(super) role: Role,
    pub(super) second: SecondOperator,
    pub(super) endpoint: Endpoint,
}

/// What a line without a need of a second operator may be.
pub(super) mod reads {
    use vouchsafe_api_docs::operator::SecondOperator;

    pub(in crate::api::operator) const GET: SecondOperator = SecondOperator::Never;
}

/// A table of endpoints: `METHOD "path" Role SECOND => handler, description;`. A line without a role does not compile, nor does a line
/// that is no read and does not state its need of a second operator.
macro_rules! admin_endpoints {
    (@second $method:ident) => {
        $crate::api::operator::endpoint::reads::$method
    };
    (@second $method:ident $second:expr) => {
        $second
    };
    ($($method:ident $path:literal $role:ident $([$second:expr])? => $handler:expr, $describe:expr;)+) => {
        vec![$($crate::api::operator::endpoint::AdminEndpoint {
            role: ::vouchsafe_domain::operator::Role::$role,
            second: admin_endpoints!(@second $method $($second)?),
            endpoint: $crate::api::endpoint::Endpoint::new(
                ::actix_web::http::Method::$method,
                $path,
                $handler,
                $describe,
            ),
        },)+]
    };
}

pub(super) use admin_endpoints;

impl AdminEndpoint {
    /// The endpoint that rejects operators below the role.
    pub(super) fn into_endpoint(self) -> Endpoint {
        let needed = self.role;
        let check = from_fn(move |request, next| operator::require_role(needed, request, next));
        let endpoint = match self.endpoint.is_read() {
            true => self.endpoint,
            false => self
                .endpoint
                .map_route(|route| route.wrap(from_fn(report_unknown_outcome))),
        };
        endpoint.map_route(|route| route.wrap(check))
    }

    pub(super) fn operation(&self, prefix: &str) -> Operation {
        let operation = require_role(self.endpoint.operation(prefix), self.role);
        let operation = require_second_operator(operation, self.second);
        match self.endpoint.is_read() {
            true => operation,
            false => operation.errors(&[Code::OutcomeUnknown]),
        }
    }
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
