//! Contents of `/docs`: the rendered pages and the static files.

use std::collections::BTreeMap;

use serde_json::Value;

use super::layout::{self, href, slug};
use super::outline::search_entries;
use super::page::Page;
use super::{markdown, reference};
use crate::TextFile;

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Rows of a table: a file below `docs/partner`, a title or content type, its text.
macro_rules! partner_docs {
    ($($file:literal $about:expr;)+) => {
        [$(($file, $about, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/partner/", $file))),)+]
    };
}

/// The pages in navigation order: file, title, Markdown.
pub const PAGES: [(&str, &str, &str); 17] = partner_docs! {
    "README.md" "Overview";
    "quick-start.md" "Quick start";
    "signing.md" "Signing";
    "idempotency.md" "Idempotency and retries";
    "orders.md" "Orders";
    "catalogue.md" "Catalogue";
    "money.md" "Money";
    "payouts.md" "Payouts";
    "lists.md" "Lists";
    "webhooks.md" "Webhooks and events";
    "errors.md" "Errors";
    "limits.md" "Limits";
    "load-tests.md" "Load tests";
    "certification.md" "Certification";
    "versioning.md" "Versioning";
    "changelog.md" "Changelog";
    "reconciliation.md" "Reconciliation (planned)";
};

/// Files served verbatim, besides the style sheet: path, content type, content.
pub const FILES: [(&str, &str, &str); 22] = partner_docs! {
    "signers/sign.sh" TEXT;
    "signers/sign.py" TEXT;
    "signers/sign.mjs" TEXT;
    "signers/Sign.java" TEXT;
    "signers/sign.php" TEXT;
    "signers/sign.go" TEXT;
    "signers/Sign.cs" TEXT;
    "signers/sign.rs" TEXT;
    "signers/k6.js" TEXT;
    "signers/wrk.lua" TEXT;
    "signers/vectors.json" JSON;
    "receivers/verify.sh" TEXT;
    "receivers/verify.py" TEXT;
    "receivers/verify.mjs" TEXT;
    "receivers/Verify.java" TEXT;
    "receivers/verify.php" TEXT;
    "receivers/verify.go" TEXT;
    "receivers/Verify.cs" TEXT;
    "receivers/verify.rs" TEXT;
    "receivers/receive.py" TEXT;
    "receivers/vectors.json" JSON;
    "vouchsafe.postman_collection.json" JSON;
};

/// The assets of the pages, files like [`FILES`].
pub const ASSETS: [(&str, &str, &str); 6] = [
    ("tokens.css", CSS, vouchsafe_ui::DESIGN_TOKENS),
    ("style.css", CSS, include_str!("style.css")),
    ("search.js", JAVASCRIPT, include_str!("search.js")),
    ("script.js", JAVASCRIPT, include_str!("script.js")),
    ("try.js", JAVASCRIPT, include_str!("try.js")),
    (FAVICON, SVG, include_str!("favicon.svg")),
];

/// The icon, also served where browsers look for one.
pub const FAVICON: &str = "favicon.svg";

/// The search index: an array of `[address, page, heading, text, keywords]`.
pub const SEARCH: &str = "search.json";

/// The page with a section for each error code.
const ERRORS: &str = "errors.md";

/// Group of the guides in the navigation.
const GUIDES: &str = "Guides";

/// All files below `/docs`.
#[derive(Debug)]
pub struct Site {
    /// Keyed by path below `/docs/`; the overview has the empty path.
    pub files: BTreeMap<String, TextFile>,
    /// The page for all other paths.
    pub not_found: TextFile,
}

/// The sections of the page on errors that a code such as `INVALID_CURSOR` leads to.
fn error_links() -> impl Iterator<Item = (String, String)> {
    let page = PAGES.iter().find(|(file, _, _)| *file == ERRORS);
    let lines = page.into_iter().flat_map(|(_, _, text)| text.lines());
    lines.filter_map(|line| {
        let code = line.strip_prefix("### ")?;
        Some((
            code.to_owned(),
            format!("{}#{}", href(ERRORS), markdown::anchor_of(code)),
        ))
    })
}

impl Site {
    /// Renders the guides and the API reference of an OpenAPI document.
    #[must_use]
    pub fn render(document: &Value) -> Self {
        let mut links = reference::code_links(document);
        links.extend(error_links());
        let guides = PAGES.iter().map(|(file, name, text)| Page {
            path: slug(file).to_owned(),
            name: (*name).to_owned(),
            group: GUIDES.to_owned(),
            content: markdown::render(text, &links),
            ..Page::default()
        });
        let pages: Vec<Page> = guides.chain(reference::pages(document, &links)).collect();
        let index = pages
            .iter()
            .flat_map(|page| search_entries(&href(&page.path), page));
        let index = Value::from_iter(index).to_string();
        let static_files = FILES.iter().chain(&ASSETS);
        let mut files: BTreeMap<_, _> = static_files
            .map(|(path, content_type, text)| ((*path).to_owned(), TextFile::new(content_type, *text)))
            .collect();
        files.insert(SEARCH.to_owned(), TextFile::new(JSON, index));
        files.extend(pages.iter().map(|page| {
            let html = layout::render(&pages, page).into_string();
            (page.path.clone(), TextFile::new(HTML, html))
        }));
        let not_found = layout::render_not_found(&pages).into_string();
        Self {
            files,
            not_found: TextFile::new(HTML, not_found),
        }
    }
}
