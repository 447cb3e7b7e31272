//! Headers of every response of both listeners: `nosniff`, a cache policy, HSTS where the console has an
//! https URL.

use bytes::Bytes;
use hyper::Method;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::{ApiResponse, Client};
use vouchsafe_test_harness::{Instance, Listener, Operator, shared};

use crate::access::api_headers;

/// Methods and paths of the routes of a listener, with a value for each placeholder, and paths without a
/// route.
fn routes(listener: Listener) -> Vec<(Method, String)> {
    let document = listener.document().served();
    let mut routes = Vec::new();
    for (template, item) in document["paths"].as_object().unwrap() {
        let path = template.replace(['{', '}'], "x");
        for method in item.as_object().unwrap().keys() {
            routes.push((method.to_uppercase().parse().unwrap(), path.clone()));
        }
        routes.push((Method::TRACE, path));
    }
    for path in [
        "/",
        "/docs",
        "/no-such-route",
        "/api/v1/no-such-route",
        "/admin/v1/no-such-route",
    ] {
        routes.push((Method::GET, path.to_owned()));
    }
    routes
}

/// The pages of the console, its sign-in and its files.
fn console_routes() -> Vec<(Method, String)> {
    let pages = vouchsafe_console::paths().map(|path| path.replace(['{', '}'], "x"));
    let fixed = [
        "/sign-in",
        "/sign-in/link",
        "/sign-in/oidc",
        "/sign-in/callback",
        "/sign-out",
        "/account",
        "/live",
        "/assets/x",
    ];
    let paths = pages.chain(fixed.map(str::to_owned));
    paths
        .flat_map(|path| [Method::GET, Method::POST].map(|method| (method, path.clone())))
        .collect()
}

fn assert_headers(response: &ApiResponse, is_strict: bool, route: &str) {
    assert_eq!(
        response.header("x-content-type-options"),
        Some("nosniff"),
        "{route}: {response:?}"
    );
    let policy = response.header("cache-control").unwrap_or_default();
    let has_policy = [
        "no-store",
        "no-cache",
        "private, no-cache",
        "public, max-age=31536000, immutable",
    ]
    .contains(&policy);
    // Only what anybody may read, and what its client revalidates, is stored.
    assert!(has_policy, "{route}: {policy:?}");
    let is_public = policy == "no-store" || response.status.as_u16() < 400;
    assert!(is_public, "an error is never stored: {route}: {response:?}");
    let strict = response.header("strict-transport-security");
    assert_eq!(strict, is_strict.then_some("max-age=63072000"), "{route}");
}

/// Calls each route without and with credentials.
async fn assert_routes(origin: &str, routes: &[(Method, String)], credentials: &HeaderMap, is_strict: bool) {
    let mut client = Client::new(Origin::parse(origin).unwrap());
    for (method, path) in routes {
        // The feed is a stream, which does not end within a test.
        let credentials = (path != "/live").then(|| credentials.clone());
        for headers in [HeaderMap::new()].into_iter().chain(credentials) {
            let called = client.call(method.clone(), path, headers, Bytes::new());
            assert_headers(&called.await.unwrap(), is_strict, &format!("{method} {path}"));
        }
    }
}

#[tokio::test]
async fn every_response_of_the_partner_listener_has_the_headers() {
    let partner = Operator::of(shared()).add_partner("1").await;
    let origin = format!("http://{}", shared().http_address());
    assert_routes(&origin, &routes(Listener::Partner), &api_headers(&partner), false).await;
}

#[tokio::test]
async fn every_response_of_the_operator_listener_has_the_headers_and_hsts_with_an_https_console() {
    let service = Instance::start_with(&[("VOUCHSAFE_CONSOLE_URL", "https://console.example.com")]);
    let routes = [routes(Listener::Operator), console_routes()].concat();
    for (service, is_strict) in [(shared(), false), (&service, true)] {
        let bearer = HeaderValue::from_str(&format!("Bearer {}", service.operator_token())).unwrap();
        let credentials = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        // A write without a body changes nothing; a checkpoint and a sign-out need none.
        assert_routes(&service.admin_url(), &routes, &credentials, is_strict).await;
    }
}
