//! Endpoints below `/admin/v1`: each with the role that it requires, in routing and in the OpenAPI document.

use actix_web::middleware::from_fn;
use vouchsafe_api_docs::openapi::Operation;
use vouchsafe_api_docs::operator::require_role;
use vouchsafe_domain::operator::Role;

use crate::api::endpoint::Endpoint;
use crate::api::middleware::operator;

/// An endpoint for operators with at least this role.
pub(super) struct AdminEndpoint {
    pub(super) role: Role,
    pub(super) endpoint: Endpoint,
}

/// A table of endpoints: `METHOD "path" Role => handler, description;`. A line without a role does not compile.
macro_rules! admin_endpoints {
    ($($method:ident $path:literal $role:ident => $handler:expr, $describe:expr;)+) => {
        vec![$($crate::api::operator::endpoint::AdminEndpoint {
            role: ::vouchsafe_domain::operator::Role::$role,
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
        self.endpoint.map_route(|route| route.wrap(check))
    }

    pub(super) fn operation(&self, prefix: &str) -> Operation {
        require_role(self.endpoint.operation(prefix), self.role)
    }
}
