//! Endpoints: a handler with its OpenAPI operation. Routing and document are built from the same table.

use actix_web::dev::Handler;
use actix_web::http::Method;
use actix_web::{FromRequest, Resource, Responder, Route, web};
use utoipa::openapi::HttpMethod;

use vouchsafe_api_docs::openapi::Operation;

use super::routing::resource;

/// A method of a path.
pub(crate) struct Endpoint {
    pub(super) method: Method,
    pub(super) path: &'static str,
    route: Route,
    describe: fn(Operation) -> Operation,
}

/// A table of endpoints: `METHOD "path" => handler, description;`.
macro_rules! endpoints {
    ($($method:ident $path:literal => $handler:expr, $describe:expr;)+) => {
        vec![$($crate::api::endpoint::Endpoint::new(
            ::actix_web::http::Method::$method,
            $path,
            $handler,
            $describe,
        ),)+]
    };
}

pub(crate) use endpoints;

impl Endpoint {
    pub(crate) fn new<F, Args>(
        method: Method,
        path: &'static str,
        handler: F,
        describe: fn(Operation) -> Operation,
    ) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let route = web::method(method.clone()).to(handler);
        Self {
            method,
            path,
            route,
            describe,
        }
    }

    /// Changes the route, for example to add middleware.
    pub(crate) fn map_route(self, change: impl FnOnce(Route) -> Route) -> Self {
        Self {
            route: change(self.route),
            ..self
        }
    }

    /// Whether it changes nothing.
    pub(crate) fn is_read(&self) -> bool {
        self.method == Method::GET || self.method == Method::HEAD
    }

    /// The operation of the document, in a scope with this prefix.
    pub(crate) fn operation(&self, prefix: &str) -> Operation {
        let method = match self.method {
            Method::HEAD => HttpMethod::Head,
            Method::POST => HttpMethod::Post,
            Method::PUT => HttpMethod::Put,
            Method::PATCH => HttpMethod::Patch,
            Method::DELETE => HttpMethod::Delete,
            _ => HttpMethod::Get,
        };
        (self.describe)(Operation::new(method, format!("{prefix}{}", self.path)))
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
    let mut methods: Vec<&str> = endpoints
        .iter()
        .map(|endpoint| endpoint.method.as_str())
        .collect();
    methods.sort_unstable();
    let empty = resource(endpoints[0].path, &methods.join(", "));
    endpoints
        .into_iter()
        .fold(empty, |resource, endpoint| resource.route(endpoint.route))
}
