//! HTML layout of the documentation pages: head, search, navigation, outline and content.

use maud::{DOCTYPE, Markup, html};

use super::outline::{Section, sections};

/// A page of the site.
pub(super) struct Page {
    /// Path below `/docs/`; empty for the overview.
    pub(super) path: String,
    pub(super) name: String,
    /// HTTP method of an endpoint's page.
    pub(super) method: Option<&'static str>,
    /// Group in the navigation. Pages of a group follow each other.
    pub(super) group: String,
    pub(super) content: Markup,
    /// Examples in the right column.
    pub(super) examples: Option<Markup>,
}

/// Renders a page with its layout.
pub(super) fn render(pages: &[Page], page: &Page) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (page.name) " · Vouchsafe" }
                link rel="icon" href="/docs/favicon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/docs/style.css";
                script src="/docs/script.js" defer {}
            }
            body.with-examples[page.examples.is_some()] {
                a.skip href="#content" { "Skip to content" }
                header {
                    a.home href="/docs" { "Vouchsafe " span { "docs" } }
                    // The script shows the search.
                    search hidden {
                        input #search type="search" placeholder="Search ( / )" aria-label="Search" autocomplete="off" spellcheck="false";
                        div #results hidden {}
                    }
                }
                nav.pages aria-label="Pages" {
                    details { summary { "Menu" } (navigation(pages, page)) }
                }
                (outline(&page.content))
                main id="content" {
                    article { (page.content) }
                    @if let Some(examples) = &page.examples { div.examples { (examples) } }
                }
            }
        }
    }
}

/// Renders the list of all pages. The groups of guides and of the current page are open.
fn navigation(pages: &[Page], current: &Page) -> Markup {
    html! {
        @for group in pages.chunk_by(|one, next| one.group == next.group) {
            @let name = group[0].group.as_str();
            details open[name == pages[0].group || name == current.group] {
                summary { (name) }
                ul {
                    @for page in group {
                        li {
                            a href=(href(&page.path)) aria-current=[(page.path == current.path).then_some("page")] {
                                (page.name)
                                @if let Some(method) = page.method { " " (method_badge(method)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders links to the sections of a page with more than one.
fn outline(content: &Markup) -> Markup {
    let is_shown = |section: &Section| (2..=3).contains(&section.level);
    let sections: Vec<_> = sections(&content.0).into_iter().filter(is_shown).collect();
    html! {
        @if sections.len() > 1 {
            nav.outline aria-label="On this page" {
                details {
                    summary { "On this page" }
                    ul {
                        @for section in &sections {
                            li.sub[section.level == 3] { a href={ "#" (section.id) } { (section.title) } }
                        }
                    }
                }
            }
        }
    }
}

/// Renders an HTTP method.
pub(super) fn method_badge(method: &str) -> Markup {
    html! { span class={ "method " (method) } { (method.to_uppercase()) } }
}

/// The URL path of a page or of a file below `docs/partner`.
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
