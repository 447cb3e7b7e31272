//! Endpoints below `/api/v1`, which reject credentials without the scope of their operation; lists are
//! compressed on request.

use actix_web::dev::Handler;
use actix_web::middleware::from_fn;
use actix_web::{FromRequest, Responder};
use vouchsafe_domain::api_scope::ApiScope;
use vouchsafe_wire::operation::{Method, Page};
use vouchsafe_wire::partner::operation::Operation;

use crate::api::endpoint::Endpoint;
use crate::api::middleware::api_scope;
use crate::api::middleware::compression::compress_list;

/// Binds an operation to its handler.
pub(super) fn bind<Q, R, F, Args>(operation: Operation<Q, R>, handler: F) -> Endpoint
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    let route = &operation.route;
    // A read of codes is signed, and recorded as a read even without its body.
    let endpoint = match route.method == Method::Get && route.access != ApiScope::Codes {
        true => Endpoint::with_head(route, handler),
        false => Endpoint::new(route, handler),
    };
    protect(endpoint, route.access)
}

/// Binds a list to its handler.
pub(super) fn bind_list<Q, T, F, Args>(operation: Operation<Q, Page<T>>, handler: F) -> Endpoint
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    bind(operation, handler).map_route(|route| route.wrap(from_fn(compress_list)))
}

/// A function of its own: the compiler makes a copy of [`bind`] for each handler.
fn protect(endpoint: Endpoint, scope: ApiScope) -> Endpoint {
    let require = api_scope::require(Some(scope));
    endpoint.map_route(|route| route.guard(require))
}
