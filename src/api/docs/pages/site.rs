//! Contents of `/docs`: the rendered pages and the static files.

use std::collections::BTreeMap;

use actix_web::http::header::EntityTag;
use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::layout::{Layout, NavEntry, slug};
use super::{markdown, reference};

/// Bytes of the hash in an entity tag: enough to rule out collisions.
const ETAG_BYTES: usize = 16;

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const CSS: &str = "text/css; charset=utf-8";

macro_rules! partner_docs {
    ($file:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/partner/", $file))
    };
}

/// The pages in navigation order: file, title, Markdown.
pub(super) const PAGES: [(&str, &str, &str); 13] = [
    ("README.md", "Overview", partner_docs!("README.md")),
    ("quick-start.md", "Quick start", partner_docs!("quick-start.md")),
    ("signing.md", "Signing", partner_docs!("signing.md")),
    (
        "idempotency.md",
        "Idempotency and retries",
        partner_docs!("idempotency.md"),
    ),
    ("orders.md", "Orders", partner_docs!("orders.md")),
    ("lists.md", "Lists", partner_docs!("lists.md")),
    ("payouts.md", "Payouts", partner_docs!("payouts.md")),
    ("webhooks.md", "Webhooks and events", partner_docs!("webhooks.md")),
    ("errors.md", "Errors", partner_docs!("errors.md")),
    ("limits.md", "Limits", partner_docs!("limits.md")),
    (
        "certification.md",
        "Certification",
        partner_docs!("certification.md"),
    ),
    ("versioning.md", "Versioning", partner_docs!("versioning.md")),
    (
        "reconciliation.md",
        "Reconciliation (planned)",
        partner_docs!("reconciliation.md"),
    ),
];

/// Files served verbatim: path, content type, content.
pub(super) const FILES: [(&str, &str, &str); 15] = [
    ("style.css", CSS, include_str!("style.css")),
    ("signers/sign.sh", TEXT, partner_docs!("signers/sign.sh")),
    ("signers/sign.py", TEXT, partner_docs!("signers/sign.py")),
    ("signers/sign.mjs", TEXT, partner_docs!("signers/sign.mjs")),
    ("signers/Sign.java", TEXT, partner_docs!("signers/Sign.java")),
    ("signers/sign.rs", TEXT, partner_docs!("signers/sign.rs")),
    (
        "signers/vectors.json",
        JSON,
        partner_docs!("signers/vectors.json"),
    ),
    ("receivers/verify.sh", TEXT, partner_docs!("receivers/verify.sh")),
    ("receivers/verify.py", TEXT, partner_docs!("receivers/verify.py")),
    (
        "receivers/verify.mjs",
        TEXT,
        partner_docs!("receivers/verify.mjs"),
    ),
    (
        "receivers/Verify.java",
        TEXT,
        partner_docs!("receivers/Verify.java"),
    ),
    ("receivers/verify.rs", TEXT, partner_docs!("receivers/verify.rs")),
    (
        "receivers/receive.py",
        TEXT,
        partner_docs!("receivers/receive.py"),
    ),
    (
        "receivers/vectors.json",
        JSON,
        partner_docs!("receivers/vectors.json"),
    ),
    (
        "vouchsafe.postman_collection.json",
        JSON,
        partner_docs!("vouchsafe.postman_collection.json"),
    ),
];

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
        let hash = hex::encode(&Sha256::digest(&body)[..ETAG_BYTES]);
        Self {
            content_type,
            etag: EntityTag::new_strong(hash),
            body,
        }
    }
}

/// All files below `/docs`.
#[derive(Debug)]
pub struct DocsSite {
    files: BTreeMap<String, StaticFile>,
}

impl DocsSite {
    /// Renders all pages, and the API reference if there is an OpenAPI document.
    #[must_use]
    pub fn new(document: Option<&Value>) -> Self {
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
