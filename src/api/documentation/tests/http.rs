//! Tests of the documentation over HTTP: methods, headers, conditional requests, compression and unknown
//! paths.

use std::io::Read as _;

use actix_web::App;
use actix_web::dev::ServiceResponse;
use actix_web::http::header::{HeaderMap, IF_NONE_MATCH};
use actix_web::http::{Method, StatusCode};
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use flate2::read::GzDecoder;

use super::{DOCUMENTATION, home, page, routes};

async fn call(request: TestRequest) -> ServiceResponse {
    let app = init_service(
        App::new()
            .configure(|config| routes(config, &DOCUMENTATION))
            .configure(home),
    )
    .await;
    call_service(&app, request.to_request()).await
}

#[actix_web::test]
async fn file_is_served_with_etag_and_content_policy() {
    for (path, _) in DOCUMENTATION.files.iter() {
        let uri = format!("/docs/{path}");
        let uri = uri.trim_end_matches('/');
        let response = call(TestRequest::with_uri(uri)).await;
        assert_eq!(response.status(), StatusCode::OK, "{uri}");
        let header = |name: &str| response.headers().get(name).unwrap().to_str().unwrap().to_owned();
        let (etag, policy) = (header("etag"), header("content-security-policy"));
        assert_eq!(
            policy,
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'"
        );
        assert!(etag.starts_with("W/"), "{etag}");
        assert_eq!(header("vary"), "Accept-Encoding");
        assert_eq!(header("cache-control"), "no-cache");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert!(!read_body(response).await.is_empty());
        for (tag, status) in [(etag.as_str(), 304), ("\"x\"", 200), ("*", 304)] {
            let request = TestRequest::with_uri(uri).insert_header((IF_NONE_MATCH, tag));
            let response = call(request).await;
            assert_eq!(response.status().as_u16(), status, "{uri}: {tag}");
            // RFC 9110, 15.4.5: a 304 carries what a cache needs.
            for (name, value) in [
                ("etag", etag.as_str()),
                ("vary", "Accept-Encoding"),
                ("cache-control", "no-cache"),
            ] {
                assert_eq!(response.headers().get(name).unwrap(), value, "{uri}: {tag}");
            }
        }
    }
}

#[actix_web::test]
async fn unknown_page_is_404_within_the_layout_and_wrong_method_405() {
    for uri in [
        "/docs/nowhere",
        "/docs/README",
        "/docs/quick-start/",
        "/docs/../Cargo.toml",
    ] {
        let response = call(TestRequest::with_uri(uri)).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{uri}");
        assert_eq!(
            response.headers().get("content-type").unwrap(),
            "text/html; charset=utf-8"
        );
        assert!(
            response.headers().contains_key("content-security-policy"),
            "{uri}"
        );
        let html = String::from_utf8(read_body(response).await.to_vec()).unwrap();
        assert!(
            html.contains(">Page not found</h1>") && html.contains("href=\"/docs/signing\""),
            "{html}"
        );
        assert_eq!(super::dead_links(&DOCUMENTATION, &html), Vec::<String>::new());
    }
    // The overview is served with and without the trailing slash.
    assert_eq!(
        call(TestRequest::with_uri("/docs/")).await.status(),
        StatusCode::OK
    );
    assert_eq!(
        call(TestRequest::post().uri("/docs")).await.status(),
        StatusCode::METHOD_NOT_ALLOWED
    );
}

#[actix_web::test]
async fn root_leads_to_the_documentation() {
    for request in [TestRequest::get(), TestRequest::default().method(Method::HEAD)] {
        let response = call(request.uri("/")).await;
        assert_eq!(response.status(), StatusCode::TEMPORARY_REDIRECT);
        assert_eq!(response.headers().get("location").unwrap(), "/docs");
    }
    assert_eq!(call(TestRequest::post().uri("/")).await.status().as_u16(), 405);
}

/// The headers in the order of their names.
fn sorted(headers: &HeaderMap) -> Vec<(String, String)> {
    let pair = |(name, value): (
        &actix_web::http::header::HeaderName,
        &actix_web::http::header::HeaderValue,
    )| { (name.to_string(), value.to_str().unwrap().to_owned()) };
    let mut sorted: Vec<_> = headers.iter().map(pair).collect();
    sorted.sort();
    sorted
}

#[actix_web::test]
async fn head_has_the_status_and_headers_of_get() {
    let files = DOCUMENTATION.files.keys().map(|path| format!("/docs/{path}"));
    let others = ["/", "/docs", "/docs/nowhere", "/favicon.ico"].map(ToOwned::to_owned);
    for uri in files.chain(others) {
        let get = call(TestRequest::with_uri(&uri)).await;
        let head = call(TestRequest::with_uri(&uri).method(Method::HEAD)).await;
        assert_eq!(head.status(), get.status(), "{uri}");
        assert_eq!(sorted(head.headers()), sorted(get.headers()), "{uri}");
    }
}

#[actix_web::test]
async fn favicon_is_served_where_browsers_look_for_one() {
    let icon = call(TestRequest::with_uri("/favicon.ico")).await;
    assert_eq!(icon.headers().get("content-type").unwrap(), "image/svg+xml");
}

#[actix_web::test]
async fn body_is_compressed_for_clients_that_accept_it() {
    let plain = page("signing");
    for (accepted, is_compressed) in [
        (Some("gzip, deflate, br"), true),
        (Some("gzip;q=0"), false),
        (Some("identity"), false),
        (None, false),
    ] {
        let mut request = TestRequest::with_uri("/docs/signing");
        if let Some(accepted) = accepted {
            request = request.insert_header(("accept-encoding", accepted));
        }
        let response = call(request).await;
        let encoding = response.headers().get("content-encoding").cloned();
        assert_eq!(response.headers().get("vary").unwrap(), "Accept-Encoding");
        assert_eq!(encoding.is_some(), is_compressed, "{accepted:?}");
        let body = read_body(response).await;
        if is_compressed {
            let mut decoded = String::new();
            GzDecoder::new(&body[..]).read_to_string(&mut decoded).unwrap();
            assert_eq!(decoded, plain);
            assert!(
                body.len() * 3 < plain.len(),
                "{} of {} bytes",
                body.len(),
                plain.len()
            );
        } else {
            assert_eq!(body, plain);
        }
    }
}
