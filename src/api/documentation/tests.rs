//! Tests of the documentation pages: links, headings, self-containment, and agreement with the files and
//! constants they show.

mod http;

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;
use vouchsafe_actors::delivery::retry;

use vouchsafe_api_docs::pages::{ASSETS, FILES, OPERATOR_PAGES, PAGES, SEARCH};

use super::*;
use crate::api::operator;
use crate::api::partner::{DOCUMENTATION, document};
use crate::api::static_file::StaticFile;
use crate::settings::Preview;

fn page(slug: &str) -> String {
    let file = DOCUMENTATION
        .files
        .get(slug)
        .unwrap_or_else(|| panic!("no page {slug:?}"));
    String::from_utf8(file.body.to_vec()).unwrap()
}

fn files() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    PAGES.into_iter().chain(FILES).chain(ASSETS)
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
        // Served outside of the site
        if ["/openapi.json", "/schemas/"].contains(link) {
            return true;
        }
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = match path.strip_prefix("/docs") {
            Some(path) => site
                .files
                .get(path.trim_start_matches('/'))
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

/// All rendered pages of partners: path and HTML.
fn rendered() -> impl Iterator<Item = (&'static str, String)> {
    rendered_of(&DOCUMENTATION)
}

fn rendered_of(site: &'static DocsSite) -> impl Iterator<Item = (&'static str, String)> {
    let is_page = |file: &(&String, &StaticFile)| file.1.content_type.starts_with("text/html");
    let all = site.files.iter().filter(is_page);
    all.map(|(path, file)| (path.as_str(), String::from_utf8(file.body.to_vec()).unwrap()))
}

#[test]
fn every_link_has_a_target() {
    for (path, html) in rendered() {
        assert!(
            values(&html, "href").len() > PAGES.len(),
            "{path} has fewer links than the navigation"
        );
        assert_eq!(dead_links(&DOCUMENTATION, &html), Vec::<String>::new(), "{path}");
        let ids = values(&html, "id");
        assert_eq!(
            ids.iter().collect::<HashSet<_>>().len(),
            ids.len(),
            "{path}: {ids:?}"
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
fn operators_have_every_guide_of_theirs_with_working_links() {
    let site: &DocsSite = &operator::DOCUMENTATION;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operations");
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = format!("operations/{}", entry.unwrap().file_name().into_string().unwrap());
        assert!(OPERATOR_PAGES.iter().any(|(name, _, _)| *name == file), "{file}");
        assert!(!DOCUMENTATION.files.contains_key(file.trim_end_matches(".md")));
    }
    for (path, html) in rendered_of(&operator::DOCUMENTATION) {
        let mut dead = dead_links(site, &html);
        dead.retain(|link| !link.starts_with("https://"));
        assert_eq!(dead, Vec::<String>::new(), "{path}");
    }
}

#[test]
fn pages_load_nothing_from_other_hosts() {
    for (path, html) in rendered() {
        let (scripts, more) = (values(&html, "src"), ["/docs/try.js"]);
        let of_page: &[&str] = if path == "try" { &more } else { &[] };
        assert_eq!(
            scripts,
            [&["/docs/search.js", "/docs/script.js"], of_page].concat(),
            "{path}"
        );
        for foreign in [
            "<script>",
            " style=",
            "<style",
            "javascript:",
            "@import",
            " onclick=",
        ] {
            assert!(!html.contains(foreign), "{path}: {foreign}");
        }
    }
    assert!(!text("style.css").contains("url("));
    assert!(!text("script.js").contains("://"));
}

#[test]
fn pages_show_signers_and_receivers_verbatim() {
    for (page, file, fence) in [
        ("signing.md", "signers/sign.sh", "sh"),
        ("signing.md", "signers/sign.py", "python"),
        ("signing.md", "signers/sign.mjs", "js"),
        ("signing.md", "signers/Sign.java", "java"),
        ("signing.md", "signers/sign.rs", "rust"),
        ("load-tests.md", "signers/k6.js", "js"),
        ("load-tests.md", "signers/wrk.lua", "lua"),
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
    let routes = routes.flat_map(|(path, item)| {
        let below_the_base_url = item
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, operation)| operation["servers"].is_null());
        below_the_base_url.map(move |(method, _)| (method.to_uppercase(), path.to_owned()))
    });
    assert_eq!(postman_requests(), routes.collect());
}

#[test]
fn every_endpoint_has_a_page_with_its_request() {
    let document = to_value(&document(Preview::Off));
    let overview = page("reference");
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let slug = format!("reference/{}", operation["operationId"].as_str().unwrap());
            let html = page(&slug);
            let summary = operation["summary"].as_str().unwrap();
            assert!(html.contains(&format!(">{summary}</h1>")), "{slug}");
            assert!(html.contains("curl -sS"), "{slug}");
            assert!(html.contains(&format!("<code>{path}</code>")), "{method} {path}");
            assert!(overview.contains(&format!("href=\"/docs/{slug}\"")), "{slug}");
        }
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(
            page(&format!("reference/schemas/{name}")).contains("<h1"),
            "{name}"
        );
    }
}

#[test]
fn search_index_has_every_page() {
    let index: Value = serde_json::from_slice(&DOCUMENTATION.files.get(SEARCH).unwrap().body).unwrap();
    let entries = index.as_array().unwrap();
    for (path, _) in rendered() {
        let address = format!("/docs/{path}");
        let address = address.trim_end_matches('/');
        let entry = entries.iter().find(|entry| entry[0] == address);
        let entry = entry.unwrap_or_else(|| panic!("{address} is not in the search index"));
        assert!(!entry[1].as_str().unwrap().is_empty(), "{address}");
    }
    let signers = entries
        .iter()
        .find(|entry| entry[0] == "/docs/signing#signers")
        .unwrap();
    assert_eq!([&signers[1], &signers[2]], ["Signing", "Signers"]);
}

#[test]
fn headings_do_not_skip_a_level() {
    for (path, html) in rendered() {
        let levels = html
            .split("<h")
            .skip(1)
            .filter_map(|rest| rest.split([' ', '>']).next()?.parse::<u8>().ok());
        let levels: Vec<u8> = levels.collect();
        assert_eq!(levels[0], 1, "{path}");
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{path}");
        assert!(
            levels.windows(2).all(|pair| pair[1] <= pair[0] + 1),
            "{path}: {levels:?}"
        );
    }
}

#[test]
fn every_column_of_a_table_has_a_heading() {
    for (path, html) in rendered() {
        assert!(!html.contains("<th></th>"), "{path}");
    }
}

#[test]
fn guides_link_endpoints_and_error_codes() {
    for (slug, link) in [
        (
            "",
            "<a href=\"/docs/reference/placeOrder\"><code>POST /orders</code></a>",
        ),
        ("", "<a href=\"/docs/reference\"><code>/docs/reference</code></a>"),
        (
            "webhooks",
            "<a href=\"/docs/reference/events/order.delivered\"><code>order.delivered</code></a>",
        ),
        (
            "orders",
            "<a href=\"/docs/errors#insufficient_inventory\"><code>INSUFFICIENT_INVENTORY</code></a>",
        ),
        (
            "reference/placeOrder",
            "<a href=\"/docs/errors#insufficient_funds\"><code>INSUFFICIENT_<wbr>FUNDS</code></a>",
        ),
    ] {
        assert!(page(slug).contains(link), "{slug} has no {link}");
    }
}

#[test]
fn signers_and_receivers_are_tabs() {
    for slug in ["signing", "webhooks"] {
        let html = page(slug);
        for language in ["sh", "python", "js", "java", "rust"] {
            assert!(
                html.contains(&format!("<div class=\"tab\" data-language=\"{language}\">")),
                "{slug}: {language}"
            );
        }
    }
}

#[test]
fn pages_lead_to_their_neighbours() {
    let html = page("signing");
    for link in [
        "rel=\"prev\" href=\"/docs/quick-start\"",
        "rel=\"next\" href=\"/docs/idempotency\"",
    ] {
        assert!(html.contains(link), "{link}");
    }
    assert!(!page("").contains("rel=\"prev\""));
}
