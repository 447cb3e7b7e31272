//! Which files are there below `/docs`, and what is in them?

use std::collections::BTreeMap;

use actix_web::http::header::EntityTag;
use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::layout::{Entry, Layout};
use super::{markdown, reference};

/// Bytes of the hash that names a state of a file: enough that no two states share it.
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

/// The pages in the order in which they are read: file, name in the navigation, text.
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

/// What is served as it is: file, content type, text.
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

/// A file, ready to be sent.
#[derive(Debug)]
pub(super) struct File {
    pub(super) content_type: &'static str,
    pub(super) etag: EntityTag,
    pub(super) body: Bytes,
}

impl File {
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

/// Everything below `/docs`.
#[derive(Debug)]
pub struct Book {
    files: BTreeMap<String, File>,
}

impl Book {
    /// All pages; with the API reference, where there is an OpenAPI document of the listener.
    #[must_use]
    pub fn new(document: Option<&Value>) -> Self {
        let mut entries: Vec<Entry> = PAGES
            .iter()
            .map(|(file, name, _)| Entry::new(slug(file), name))
            .collect();
        entries.extend(document.map(|_| Entry::new("reference", "API reference")));
        let layout = Layout::new(entries);
        let pages = PAGES
            .iter()
            .map(|(file, name, text)| (slug(file), layout.page(slug(file), name, &markdown::render(text))));
        let reference = document.map(|document| {
            let content = reference::page(document);
            ("reference", layout.page("reference", "API reference", &content))
        });
        let made = pages
            .chain(reference)
            .map(|(path, page)| (path.to_owned(), File::new(HTML, page.into_string())));
        let plain = FILES
            .iter()
            .map(|(path, content_type, text)| ((*path).to_owned(), File::new(content_type, *text)));
        Self {
            files: made.chain(plain).collect(),
        }
    }

    /// The file of a path below `/docs/`; the empty one is the overview.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }
}

/// What a page is called below `/docs/`: its file without `.md`, and nothing for the overview.
pub(super) fn slug(file: &str) -> &str {
    let name = file.strip_suffix(".md").unwrap_or(file);
    if name == "README" { "" } else { name }
}
