//! Endpoints: operations of the wire format, each with its handler.

use actix_web::dev::Handler;
use actix_web::http::Method;
use actix_web::{FromRequest, Resource, Responder, Route, guard, web};
use vouchsafe_wire::operation::{self, Operation};

use super::routing::resource;

/// A method of a path.
pub(crate) struct Endpoint {
    pub(super) method: operation::Method,
    pub(super) path: &'static str,
    /// Whether it also serves HEAD.
    has_head: bool,
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
            has_head: false,
            route: web::method(actix_method(operation.method)).to(handler),
        }
    }

    /// An endpoint for GET that also serves HEAD, with the headers of GET: actix sends no body.
    pub(crate) fn with_head<Access, F, Args>(operation: &operation::Route<Access>, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let is_read = guard::Any(guard::Get()).or(guard::Head());
        Self {
            method: operation.method,
            path: operation.path,
            has_head: true,
            route: web::route().guard(is_read).to(handler),
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
    if endpoints.iter().any(|endpoint| endpoint.has_head) {
        methods.push(operation::Method::Head.into());
    }
    methods.sort_unstable();
    let empty = resource(endpoints[0].path, &methods.join(", "));
    endpoints
        .into_iter()
        .fold(empty, |resource, endpoint| resource.route(endpoint.route))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::ALLOW;
    use actix_web::test::{TestRequest, call_service, init_service};
    use actix_web::{App, HttpResponse};
    use vouchsafe_wire::health::GET_HEALTH;

    use super::*;

    #[actix_web::test]
    async fn head_is_served_and_allowed_with_get() {
        let endpoint = Endpoint::with_head(&GET_HEALTH.route, async || HttpResponse::Ok().body("body"));
        let app = init_service(App::new().configure(|config| register(config, [endpoint]))).await;
        for (method, status) in [(Method::GET, 200), (Method::HEAD, 200), (Method::POST, 405)] {
            let request = TestRequest::with_uri("/healthz")
                .method(method.clone())
                .to_request();
            let response = call_service(&app, request).await;
            assert_eq!(response.status(), status, "{method}");
            let allow = response.headers().get(ALLOW).map(|allow| allow.to_str().unwrap());
            assert_eq!(allow, (status == 405).then_some("GET, HEAD"));
        }
    }
}
