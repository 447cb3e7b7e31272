//! What every page has round its content: head, navigation, and a way past it.

use maud::{DOCTYPE, Markup, html};

use super::book::slug;

/// A page in the navigation.
#[derive(Debug)]
pub(super) struct Entry {
    slug: &'static str,
    name: &'static str,
}

impl Entry {
    pub(super) fn new(slug: &'static str, name: &'static str) -> Self {
        Self { slug, name }
    }
}

/// The same for all pages of a listener.
#[derive(Debug)]
pub(super) struct Layout {
    entries: Vec<Entry>,
}

impl Layout {
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        Self { entries }
    }

    /// The whole page.
    pub(super) fn page(&self, slug: &str, name: &str, content: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (name) " · Vouchsafe" }
                    link rel="stylesheet" href="/docs/style.css";
                }
                body {
                    a.skip href="#content" { "To the content" }
                    nav aria-label="Pages" {
                        p.home { a href="/docs" { "Vouchsafe" } " for partners" }
                        (self.list(slug))
                    }
                    main id="content" { (content) }
                }
            }
        }
    }

    fn list(&self, slug: &str) -> Markup {
        html! {
            ul {
                @for entry in &self.entries {
                    li {
                        a href=(address(entry.slug)) aria-current=[(entry.slug == slug).then_some("page")] {
                            (entry.name)
                        }
                    }
                }
            }
        }
    }
}

/// Where a page, or a file beside the pages, is served; `file` is its path below `docs/partner`.
pub(super) fn address(file: &str) -> String {
    match slug(file) {
        "" => "/docs".to_owned(),
        slug => format!("/docs/{slug}"),
    }
}
