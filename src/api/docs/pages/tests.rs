//! Tests of the documentation pages: links, self-containment, and agreement with the files and constants they show.

use std::collections::{BTreeSet, HashSet};

use actix_web::App;
use actix_web::dev::ServiceResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::IF_NONE_MATCH;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use serde_json::{Value, json};
use vouchsafe_actors::delivery::retry;
use vouchsafe_security::framing::API_PREFIX;

use super::layout::slug;
use super::site::{FILES, PAGES, STYLE};
use super::*;
use crate::api::docs::openapi::to_value;
use crate::api::partner::{DOCUMENTATION, document};
use crate::settings::Preview;

fn page(slug: &str) -> String {
    let file = DOCUMENTATION
        .file(slug)
        .unwrap_or_else(|| panic!("no page {slug:?}"));
    String::from_utf8(file.body.to_vec()).unwrap()
}

fn files() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    PAGES.into_iter().chain(FILES).chain([STYLE])
}

fn text(file: &str) -> &'static str {
    let entry = files().find(|(name, _, _)| *name == file);
    entry.unwrap_or_else(|| panic!("no file {file}")).2
}

/// The values of an attribute.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let beginning = format!(" {attribute}=\"");
    let after = html.split(beginning.as_str()).skip(1);
    after.filter_map(|rest| rest.split('"').next()).collect()
}

/// The links of a page without a target.
fn dead_links(site: &DocsSite, html: &str) -> Vec<String> {
    let has_target = |link: &&str| {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = match path.strip_prefix("/docs") {
            Some(path) => site
                .file(path.trim_start_matches('/'))
                .map(|file| file.body.to_vec()),
            None => path.is_empty().then(|| html.as_bytes().to_vec()),
        };
        let target = target.and_then(|bytes| String::from_utf8(bytes).ok());
        target.is_some_and(|html| anchor.is_empty() || values(&html, "id").contains(&anchor))
    };
    let links = values(html, "href").into_iter();
    links
        .filter(|link| !has_target(link))
        .map(ToOwned::to_owned)
        .collect()
}

#[test]
fn every_link_has_a_target() {
    for (file, _, _) in PAGES {
        let html = page(slug(file));
        assert!(
            values(&html, "href").len() > PAGES.len(),
            "{file} has fewer links than the navigation"
        );
        assert_eq!(dead_links(&DOCUMENTATION, &html), Vec::<String>::new(), "{file}");
        let ids = values(&html, "id");
        assert_eq!(
            ids.iter().collect::<HashSet<_>>().len(),
            ids.len(),
            "{file}: {ids:?}"
        );
    }
    let broken = [
        "/docs/nowhere",
        "/docs/signing#nowhere",
        "#nowhere",
        "https://elsewhere.test",
    ];
    let html: String = broken
        .iter()
        .map(|link| format!("<a href=\"{link}\">x</a>"))
        .collect();
    assert_eq!(dead_links(&DOCUMENTATION, &html), broken);
}

#[test]
fn pages_load_nothing_from_other_hosts() {
    for (file, _, _) in PAGES {
        let html = page(slug(file));
        for foreign in ["<script", " src=", " style=", "<style", "javascript:", "@import"] {
            assert!(!html.contains(foreign), "{file}: {foreign}");
        }
    }
    assert!(!text("style.css").contains("url("));
}

#[test]
fn pages_show_signers_and_receivers_verbatim() {
    for (page, file, fence) in [
        ("signing.md", "signers/sign.sh", "sh"),
        ("signing.md", "signers/sign.py", "python"),
        ("signing.md", "signers/sign.mjs", "js"),
        ("signing.md", "signers/Sign.java", "java"),
        ("signing.md", "signers/sign.rs", "rust"),
        ("webhooks.md", "receivers/verify.sh", "sh"),
        ("webhooks.md", "receivers/verify.py", "python"),
        ("webhooks.md", "receivers/verify.mjs", "js"),
        ("webhooks.md", "receivers/Verify.java", "java"),
        ("webhooks.md", "receivers/verify.rs", "rust"),
    ] {
        let shown = format!("[{file}]({file})\n\n```{fence}\n{}```\n", text(file));
        assert!(
            text(page).contains(&shown),
            "{page} does not show {file} verbatim"
        );
    }
    let vectors: Value = serde_json::from_str(text("signers/vectors.json")).unwrap();
    for field in ["secret", "timestamp", "method", "path", "body", "signature"] {
        let value = vectors[0][field].as_str().unwrap();
        assert!(
            text("signing.md").contains(&format!("| `{value}` |")),
            "signing.md does not show {field} of the first vector"
        );
    }
}

fn retry_table() -> String {
    let format_duration = |seconds: u64| {
        let parts = [
            (seconds / 3_600, "h"),
            (seconds / 60 % 60, "min"),
            (seconds % 60, "s"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = parts.map(|(count, unit)| format!("{count} {unit}")).collect();
        parts.join(" ")
    };
    let longest = (1..).find(|attempts| retry::delay_after(*attempts) == retry::MAX_BACKOFF);
    let longest = longest.unwrap();
    let mut table = String::from("| After failed attempts | Gap |\n|---|---|\n");
    for attempts in 1..longest {
        let gap = format_duration(retry::delay_after(attempts).as_secs());
        table += &format!("| {attempts} | {gap} |\n");
    }
    table
        + &format!(
            "| {longest} and more | {} |\n",
            format_duration(retry::MAX_BACKOFF.as_secs())
        )
}

#[test]
fn webhooks_page_shows_the_retry_schedule() {
    let retry_table = retry_table();
    assert!(
        text("webhooks.md").contains(&retry_table),
        "webhooks.md does not have this table:\n{retry_table}"
    );
}

/// Method and path of each request of the Postman collection.
fn postman_requests() -> BTreeSet<(String, String)> {
    let collection: Value = serde_json::from_str(text("vouchsafe.postman_collection.json")).unwrap();
    let folders = collection["item"].as_array().unwrap();
    let items = folders
        .iter()
        .flat_map(|folder| folder["item"].as_array().unwrap());
    let request = |item: &Value| {
        let request = &item["request"];
        let url = request["url"].as_str().unwrap();
        let path = url
            .strip_prefix("{{base_url}}")
            .unwrap()
            .split('?')
            .next()
            .unwrap();
        let path = path.replace("{{", "{").replace("}}", "}");
        (request["method"].as_str().unwrap().to_owned(), path)
    };
    items.map(request).collect()
}

#[test]
fn overview_lists_every_request_of_the_postman_collection() {
    for (method, path) in postman_requests() {
        let line = format!("| `{method} {path}` |");
        assert!(
            text("README.md").contains(&line),
            "docs/partner/README.md has no {line}"
        );
    }
}

#[test]
fn postman_collection_covers_every_route() {
    let document = to_value(&document(Preview::Off));
    let routes = document["paths"].as_object().unwrap().iter();
    let routes = routes.filter_map(|(path, item)| Some((path.strip_prefix(API_PREFIX)?, item)));
    let routes = routes.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().keys();
        methods.map(move |method| (method.to_uppercase(), path.to_owned()))
    });
    assert_eq!(postman_requests(), routes.collect());
}

#[test]
fn site_with_openapi_document_has_a_reference_page() {
    let document = json!({ "info": { "title": "API" }, "paths": { "/x": { "get": {} } } });
    let site = DocsSite::new(Some(&document));
    let file = site.file("reference").unwrap();
    let html = String::from_utf8(file.body.to_vec()).unwrap();
    assert!(html.contains("id=\"get-x\""));
    assert_eq!(dead_links(&site, &html), Vec::<String>::new());
    assert!(DocsSite::new(None).file("reference").is_none());
    assert!(DOCUMENTATION.file("reference").is_some() && page("").contains("/docs/reference"));
}

async fn call(request: TestRequest) -> ServiceResponse {
    let app = init_service(App::new().configure(|config| routes(config, &DOCUMENTATION))).await;
    call_service(&app, request.to_request()).await
}

#[actix_web::test]
async fn file_is_served_with_etag_and_content_policy() {
    for path in files().map(|(file, _, _)| slug(file)) {
        let uri = format!("/docs/{path}");
        let uri = uri.trim_end_matches('/');
        let response = call(TestRequest::with_uri(uri)).await;
        assert_eq!(response.status(), StatusCode::OK, "{uri}");
        let header = |name: &str| response.headers().get(name).unwrap().to_str().unwrap().to_owned();
        let (etag, policy) = (header("etag"), header("content-security-policy"));
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(header("cache-control"), "no-cache");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert!(!read_body(response).await.is_empty());
        for (tag, status) in [(etag.as_str(), 304), ("\"x\"", 200), ("*", 304)] {
            let request = TestRequest::with_uri(uri).insert_header((IF_NONE_MATCH, tag));
            assert_eq!(call(request).await.status().as_u16(), status, "{uri}: {tag}");
        }
    }
}

#[actix_web::test]
async fn unknown_page_is_404_and_wrong_method_405() {
    for uri in [
        "/docs/",
        "/docs/nowhere",
        "/docs/README",
        "/docs/quick-start/",
        "/docs/../Cargo.toml",
    ] {
        let status = call(TestRequest::with_uri(uri)).await.status().as_u16();
        // The overview is served with and without the trailing slash.
        assert_eq!(status, if uri == "/docs/" { 200 } else { 404 }, "{uri}");
    }
    assert_eq!(
        call(TestRequest::post().uri("/docs")).await.status(),
        StatusCode::METHOD_NOT_ALLOWED
    );
}
