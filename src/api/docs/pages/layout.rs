//! HTML layout of the documentation pages: head, navigation and skip link.

use maud::{DOCTYPE, Markup, html};

/// A page in the navigation.
#[derive(Debug)]
pub(super) struct NavEntry {
    slug: &'static str,
    name: &'static str,
}

impl NavEntry {
    pub(super) fn new(slug: &'static str, name: &'static str) -> Self {
        Self { slug, name }
    }
}

#[derive(Debug)]
pub(super) struct Layout {
    entries: Vec<NavEntry>,
}

impl Layout {
    pub(super) fn new(entries: Vec<NavEntry>) -> Self {
        Self { entries }
    }

    /// Renders a page with its layout.
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
                    a.skip href="#content" { "Skip to content" }
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
                        a href=(href(entry.slug)) aria-current=[(entry.slug == slug).then_some("page")] {
                            (entry.name)
                        }
                    }
                }
            }
        }
    }
}

/// The URL path of a file below `docs/partner`.
pub(super) fn href(file: &str) -> String {
    match slug(file) {
        "" => "/docs".to_owned(),
        slug => format!("/docs/{slug}"),
    }
}

/// The path of a page below `/docs/`: its file name without `.md`, empty for the overview.
pub(super) fn slug(file: &str) -> &str {
    let name = file.strip_suffix(".md").unwrap_or(file);
    if name == "README" { "" } else { name }
}
