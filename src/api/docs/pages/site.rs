//! Contents of `/docs`: the rendered pages and the static files.

use std::collections::BTreeMap;

use actix_web::http::header::EntityTag;
use bytes::Bytes;
use serde_json::Value;

use super::layout::{Layout, NavEntry, slug};
use super::{markdown, reference};
use crate::api::etag::entity_tag;

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const CSS: &str = "text/css; charset=utf-8";

/// Rows of a table: a file below `docs/partner`, a title or content type, its text.
macro_rules! partner_docs {
    ($($file:literal $about:expr;)+) => {
        [$(($file, $about, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/partner/", $file))),)+]
    };
}

/// The pages in navigation order: file, title, Markdown.
pub(super) const PAGES: [(&str, &str, &str); 13] = partner_docs! {
    "README.md" "Overview";
    "quick-start.md" "Quick start";
    "signing.md" "Signing";
    "idempotency.md" "Idempotency and retries";
    "orders.md" "Orders";
    "lists.md" "Lists";
    "payouts.md" "Payouts";
    "webhooks.md" "Webhooks and events";
    "errors.md" "Errors";
    "limits.md" "Limits";
    "certification.md" "Certification";
    "versioning.md" "Versioning";
    "reconciliation.md" "Reconciliation (planned)";
};

/// Files served verbatim, besides the style sheet: path, content type, content.
pub(super) const FILES: [(&str, &str, &str); 14] = partner_docs! {
    "signers/sign.sh" TEXT;
    "signers/sign.py" TEXT;
    "signers/sign.mjs" TEXT;
    "signers/Sign.java" TEXT;
    "signers/sign.rs" TEXT;
    "signers/vectors.json" JSON;
    "receivers/verify.sh" TEXT;
    "receivers/verify.py" TEXT;
    "receivers/verify.mjs" TEXT;
    "receivers/Verify.java" TEXT;
    "receivers/verify.rs" TEXT;
    "receivers/receive.py" TEXT;
    "receivers/vectors.json" JSON;
    "vouchsafe.postman_collection.json" JSON;
};

/// The style sheet, a file like [`FILES`].
pub(super) const STYLE: (&str, &str, &str) = ("style.css", CSS, include_str!("style.css"));

/// A file in its served form.
#[derive(Debug)]
pub(super) struct StaticFile {
    pub(super) content_type: &'static str,
    pub(super) etag: EntityTag,
    pub(super) body: Bytes,
}

impl StaticFile {
    fn new(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self {
            content_type,
            etag: entity_tag(&body),
            body,
        }
    }
}

/// All files below `/docs`.
#[derive(Debug)]
pub(crate) struct DocsSite {
    files: BTreeMap<String, StaticFile>,
}

impl DocsSite {
    /// Renders all pages, and the API reference if there is an OpenAPI document.
    pub(crate) fn new(document: Option<&Value>) -> Self {
        let mut entries: Vec<NavEntry> = PAGES
            .iter()
            .map(|(file, name, _)| NavEntry::new(slug(file), name))
            .collect();
        entries.extend(document.map(|_| NavEntry::new("reference", "API reference")));
        let layout = Layout::new(entries);
        let pages = PAGES
            .iter()
            .map(|(file, name, text)| (slug(file), layout.page(slug(file), name, &markdown::render(text))));
        let reference = document.map(|document| {
            let content = reference::page(document);
            ("reference", layout.page("reference", "API reference", &content))
        });
        let rendered = pages
            .chain(reference)
            .map(|(path, page)| (path.to_owned(), StaticFile::new(HTML, page.into_string())));
        let static_files = FILES
            .iter()
            .chain([&STYLE])
            .map(|(path, content_type, text)| ((*path).to_owned(), StaticFile::new(content_type, *text)));
        Self {
            files: rendered.chain(static_files).collect(),
        }
    }

    /// The file at a path below `/docs/`; the empty path is the overview.
    pub(super) fn file(&self, path: &str) -> Option<&StaticFile> {
        self.files.get(path)
    }
}
