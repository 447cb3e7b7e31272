//! Contents of `/docs`: the rendered pages and the static files.

use std::collections::{BTreeMap, HashSet};

use maud::Markup;
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

/// Rows of a table: a file below `docs`, a title, its text.
macro_rules! operator_docs {
    ($($file:literal $title:expr;)+) => {
        [$(($file, $title, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/", $file))),)+]
    };
}

/// The guides of operators, which their listener serves besides those of partners: file, title, Markdown.
pub const OPERATOR_PAGES: [(&str, &str, &str); 24] = operator_docs! {
    "operations.md" "Overview";
    "operations/install.md" "Install";
    "operations/configure.md" "Configure";
    "operations/database-roles.md" "Database roles";
    "operations/high-availability.md" "High availability";
    "operations/managed-postgres.md" "Managed Postgres";
    "operations/upgrade.md" "Upgrade";
    "operations/backup-and-restore.md" "Backup and restore";
    "operations/master-key.md" "Master key";
    "operations/operators.md" "Operators";
    "operations/console.md" "Console";
    "operations/commands.md" "Commands";
    "operations/daily-work.md" "Daily work";
    "operations/personal-data.md" "Personal data";
    "operations/archive.md" "Archive";
    "operations/audit-export.md" "Audit export";
    "operations/reconciliation.md" "Reconciliation";
    "operations/monitoring.md" "Monitoring";
    "operations/runbooks.md" "Runbooks";
    "operations/capacity.md" "Capacity";
    "scale.md" "Scale";
    "vendor-protocol.md" "Vendor protocol";
    "security.md" "Security";
    "operator-errors.md" "Errors of the operator API";
};

/// Who reads a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    Partners,
    Operators,
}

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

/// Groups of the guides in the navigation.
const GUIDES: &str = "Guides";
const OPERATIONS: &str = "Operations";

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

/// The path below `docs` that a link of a file there leads to; it begins with `../` outside of `docs`.
fn resolve(file: &str, link: &str) -> String {
    let mut segments: Vec<_> = file.split('/').collect();
    segments.pop();
    for segment in link.split('/') {
        if segment == ".." && segments.last().is_some_and(|last| *last != "..") {
            segments.pop();
        } else {
            segments.push(segment);
        }
    }
    segments.join("/")
}

/// The URL path of a file below `docs`; `None` if the site of operators does not have it.
fn page_of(file: &str, operator_pages: &HashSet<&str>) -> Option<String> {
    match file.strip_prefix("partner/") {
        Some(guide) => Some(href(guide)),
        None => operator_pages.contains(file).then(|| href(file)),
    }
}

impl Site {
    /// Renders the guides of an audience and the API reference of an OpenAPI document.
    #[must_use]
    pub fn render(document: &Value, audience: Audience) -> Self {
        let mut links = reference::code_links(document);
        links.extend(error_links());
        let operator_pages: &[_] = match audience {
            Audience::Partners => &[],
            Audience::Operators => &OPERATOR_PAGES,
        };
        let served: HashSet<&str> = operator_pages.iter().map(|(file, _, _)| *file).collect();
        let guide = |group: &str, file: &str, name: &str, content: Markup| Page {
            path: slug(file).to_owned(),
            name: name.to_owned(),
            group: group.to_owned(),
            content,
            ..Page::default()
        };
        let guides = PAGES.iter().map(|(file, name, text)| {
            guide(
                GUIDES,
                file,
                name,
                markdown::render(text, &links, &|link| Some(href(link))),
            )
        });
        let operations = operator_pages.iter().map(|(file, name, text)| {
            let target = |link: &str| page_of(&resolve(file, link), &served);
            guide(OPERATIONS, file, name, markdown::render(text, &links, &target))
        });
        let reference = reference::pages(document, &links);
        let pages: Vec<Page> = guides.chain(operations).chain(reference).collect();
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
