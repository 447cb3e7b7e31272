//! Endpoints below `/api/v1`: each with the scope that it requires, in routing and in the OpenAPI document.

use vouchsafe_api_docs::openapi::Operation;
use vouchsafe_api_docs::partner::require_scope;
use vouchsafe_domain::api_scope::ApiScope;

use crate::api::endpoint::Endpoint;
use crate::api::middleware::api_scope;

/// An endpoint for credentials with this scope.
pub(super) struct PartnerEndpoint {
    pub(super) scope: ApiScope,
    pub(super) endpoint: Endpoint,
}

/// A table of endpoints: `METHOD "path" SCOPE => handler, description;`. A line without a scope does not compile.
macro_rules! partner_endpoints {
    ($($method:ident $path:literal $scope:expr => $handler:expr, $describe:expr;)+) => {
        vec![$($crate::api::partner::endpoint::PartnerEndpoint {
            scope: $scope,
            endpoint: $crate::api::endpoint::Endpoint::new(
                ::actix_web::http::Method::$method,
                $path,
                $handler,
                $describe,
            ),
        },)+]
    };
}

pub(super) use partner_endpoints;

impl PartnerEndpoint {
    /// The endpoint that rejects credentials without the scope.
    pub(super) fn into_endpoint(self) -> Endpoint {
        let require = api_scope::require(Some(self.scope));
        self.endpoint.map_route(|route| route.guard(require))
    }

    pub(super) fn operation(&self, prefix: &str) -> Operation {
        require_scope(self.endpoint.operation(prefix), Some(self.scope))
    }
}
