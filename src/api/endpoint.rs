//! Endpoints: operations of the wire format, each with its handler.

use actix_web::dev::Handler;
use actix_web::http::Method;
use actix_web::{FromRequest, Resource, Responder, Route, web};
use vouchsafe_wire::operation::{self, Operation};

use super::routing::resource;

/// A method of a path.
pub(crate) struct Endpoint {
    pub(super) method: operation::Method,
    pub(super) path: &'static str,
    route: Route,
}

impl Endpoint {
    pub(crate) fn new<Access, F, Args>(operation: &operation::Route<Access>, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        Self {
            method: operation.method,
            path: operation.path,
            route: web::method(actix_method(operation.method)).to(handler),
        }
    }

    /// An endpoint that requires nothing of a caller.
    pub(crate) fn public<Q, R, F, Args>(operation: &Operation<Q, R, ()>, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        Self::new(&operation.route, handler)
    }

    /// Method and path below a prefix.
    #[cfg(test)]
    pub(crate) fn label(&self, prefix: &str) -> String {
        format!("{} {prefix}{}", <&str>::from(self.method), self.path)
    }

    /// Changes the route, for example to add middleware.
    pub(crate) fn map_route(self, change: impl FnOnce(Route) -> Route) -> Self {
        Self {
            route: change(self.route),
            ..self
        }
    }
}

fn actix_method(method: operation::Method) -> Method {
    match method {
        operation::Method::Get => Method::GET,
        operation::Method::Head => Method::HEAD,
        operation::Method::Post => Method::POST,
        operation::Method::Put => Method::PUT,
        operation::Method::Patch => Method::PATCH,
        operation::Method::Delete => Method::DELETE,
    }
}

/// The resources of the endpoints, in the order of the table: actix tries paths and methods in this order.
pub(crate) fn resources(endpoints: impl IntoIterator<Item = Endpoint>) -> impl Iterator<Item = Resource> {
    let mut by_path: Vec<Vec<Endpoint>> = Vec::new();
    for endpoint in endpoints {
        match by_path.iter_mut().find(|same| same[0].path == endpoint.path) {
            Some(same) => same.push(endpoint),
            None => by_path.push(vec![endpoint]),
        }
    }
    by_path.into_iter().map(resource_of)
}

/// Registers the endpoints outside of a scope.
pub(crate) fn register(config: &mut web::ServiceConfig, endpoints: impl IntoIterator<Item = Endpoint>) {
    for resource in resources(endpoints) {
        config.service(resource);
    }
}

/// The resource of the endpoints of one path.
fn resource_of(endpoints: Vec<Endpoint>) -> Resource {
    let mut methods: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.method.into()).collect();
    methods.sort_unstable();
    let empty = resource(endpoints[0].path, &methods.join(", "));
    endpoints
        .into_iter()
        .fold(empty, |resource, endpoint| resource.route(endpoint.route))
}
