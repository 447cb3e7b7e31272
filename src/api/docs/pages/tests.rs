//! Tests of the documentation pages: links, self-containment, and agreement with the files and constants they show.

use std::collections::HashSet;

use actix_web::App;
use actix_web::dev::ServiceResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::IF_NONE_MATCH;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use serde_json::{Value, json};
use vouchsafe_actors::delivery::retry;

use super::layout::slug;
use super::site::{FILES, PAGES};
use super::*;

fn page(slug: &str) -> String {
    let file = PARTNER_DOCS
        .file(slug)
        .unwrap_or_else(|| panic!("no page {slug:?}"));
    String::from_utf8(file.body.to_vec()).unwrap()
}

fn text(file: &str) -> &'static str {
    let entry = PAGES.iter().chain(&FILES).find(|(name, _, _)| *name == file);
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
        assert_eq!(dead_links(&PARTNER_DOCS, &html), Vec::<String>::new(), "{file}");
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
    assert_eq!(dead_links(&PARTNER_DOCS, &html), broken);
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
    for (file, fence) in [
        ("signers/sign.sh", "sh"),
        ("signers/sign.py", "python"),
        ("signers/sign.mjs", "js"),
        ("signers/Sign.java", "java"),
        ("signers/sign.rs", "rust"),
    ] {
        let shown = format!("[{file}]({file})\n\n```{fence}\n{}```\n", text(file));
        assert!(
            text("signing.md").contains(&shown),
            "signing.md does not show {file} verbatim"
        );
    }
    for (file, fence) in [
        ("receivers/verify.sh", "sh"),
        ("receivers/verify.py", "python"),
        ("receivers/verify.mjs", "js"),
        ("receivers/Verify.java", "java"),
        ("receivers/verify.rs", "rust"),
    ] {
        let shown = format!("[{file}]({file})\n\n```{fence}\n{}```\n", text(file));
        assert!(
            text("webhooks.md").contains(&shown),
            "webhooks.md does not show {file} verbatim"
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

#[test]
fn overview_lists_every_request_of_the_postman_collection() {
    let collection: Value = serde_json::from_str(text("vouchsafe.postman_collection.json")).unwrap();
    let folders = collection["item"].as_array().unwrap();
    let requests = folders
        .iter()
        .flat_map(|folder| folder["item"].as_array().unwrap());
    let mut count = 0;
    for request in requests.map(|item| &item["request"]) {
        let url = request["url"].as_str().unwrap();
        let path = url
            .strip_prefix("{{base_url}}")
            .unwrap()
            .split('?')
            .next()
            .unwrap();
        let path = path.replace("{{", "{").replace("}}", "}");
        let line = format!("| `{} {path}` |", request["method"].as_str().unwrap());
        assert!(
            text("README.md").contains(&line),
            "docs/partner/README.md has no {line}"
        );
        count += 1;
    }
    assert!(count > 5);
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
    assert!(PARTNER_DOCS.file("reference").is_some() && page("").contains("/docs/reference"));
}

async fn call(request: TestRequest) -> ServiceResponse {
    let app = init_service(App::new().configure(|config| routes(config, &PARTNER_DOCS))).await;
    call_service(&app, request.to_request()).await
}

#[actix_web::test]
async fn file_is_served_with_etag_and_content_policy() {
    let pages = PAGES.iter().map(|(file, _, _)| slug(file));
    for path in pages.chain(FILES.iter().map(|(file, _, _)| *file)) {
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
