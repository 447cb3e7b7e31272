//! HTML layout of the documentation pages: head, search, navigation, outline, content and links to the
//! neighbours.

use maud::{DOCTYPE, Markup, html};

use super::outline::{Section, sections};
use super::page::Page;

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
                link rel="stylesheet" href="/docs/tokens.css";
                link rel="stylesheet" href="/docs/style.css";
                script src="/docs/search.js" defer {}
                script src="/docs/script.js" defer {}
            }
            body {
                a.skip href="#content" { "Skip to content" }
                header {
                    // Narrow windows show the navigation as a popover: it needs no script, and Escape closes
                    // it.
                    button.menu type="button" popovertarget="menu" { "Menu" }
                    a.home href="/docs" { "Vouchsafe " span { "docs" } }
                    // The script shows search and theme.
                    search hidden {
                        input #search type="search" placeholder="Search" aria-label="Search the documentation"
                            aria-keyshortcuts="/" autocomplete="off" spellcheck="false" enterkeyhint="search";
                        kbd aria-hidden="true" { "/" }
                        div #results hidden {}
                    }
                    button #theme type="button" hidden {}
                }
                nav #menu.pages popover aria-label="Pages" { (navigation(pages, page)) }
                main id="content" class=[page.examples.is_some().then_some("with-examples")] {
                    (outline(&page.content))
                    article {
                        @if !page.group.is_empty() { p.group { (page.group) } }
                        (page.content)
                    }
                    @if let Some(examples) = &page.examples { div.examples { (examples) } }
                    (neighbours(pages, page))
                }
                // Read out by screen readers when its text changes.
                div #status role="status" {}
            }
        }
    }
}

/// Renders the page for paths without a page.
pub(super) fn render_not_found(pages: &[Page]) -> Markup {
    let page = Page {
        // No page has this path.
        path: "404".to_owned(),
        name: "Page not found".to_owned(),
        content: html! {
            h1 id="page-not-found" { "Page not found" }
            p { "The documentation has no page at this address. Search for it, or begin with one of these:" }
            ul {
                li { a href="/docs" { "Overview" } }
                li { a href="/docs/quick-start" { "Quick start" } }
                li { a href="/docs/reference" { "API reference" } }
            }
        },
        ..Page::default()
    };
    render(pages, &page)
}

/// Renders the list of all pages. The groups of guides and of the current page are open; a single page needs
/// no group.
fn navigation(pages: &[Page], current: &Page) -> Markup {
    let link = |page: &Page| {
        html! {
            a href=(href(&page.path)) aria-current=[(page.path == current.path).then_some("page")] {
                span { (breakable(&page.name)) }
                @if let Some(method) = page.method { " " (method_badge(method)) }
            }
        }
    };
    html! {
        @for group in pages.chunk_by(|one, next| one.group == next.group) {
            @let name = group[0].group.as_str();
            @if group.len() == 1 {
                p { (link(&group[0])) }
            } @else {
                details open[name == pages[0].group || name == current.group] {
                    summary { (name) }
                    ul { @for page in group { li { (link(page)) } } }
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
                details open {
                    summary { "On this page" }
                    ul {
                        @for section in &sections {
                            li.sub[section.level == 3] { a href={ "#" (section.id) } { (breakable(&section.title)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Renders links to the previous and the next page.
fn neighbours(pages: &[Page], page: &Page) -> Markup {
    let at = pages.iter().position(|other| other.path == page.path);
    let previous = at.and_then(|at| pages.get(at.checked_sub(1)?));
    let next = at.and_then(|at| pages.get(at + 1));
    html! {
        @if previous.is_some() || next.is_some() {
            nav.neighbours aria-label="Previous and next page" {
                @if let Some(page) = previous { a rel="prev" href=(href(&page.path)) { span { "Previous" } (page.name) } }
                @if let Some(page) = next { a rel="next" href=(href(&page.path)) { span { "Next" } (page.name) } }
            }
        }
    }
}

/// Renders a name that may break after its underscores.
pub(super) fn breakable(name: &str) -> Markup {
    html! { @for part in name.split_inclusive('_') { (part) @if part.ends_with('_') { wbr; } } }
}

/// Renders a heading that links to itself.
pub(super) fn heading(level: u8, id: &str, title: &Markup) -> Markup {
    let title = html! { a href={ "#" (id) } { (title) } };
    match level {
        1 => html! { h1 id=(id) { (title) } },
        2 => html! { h2 id=(id) { (title) } },
        _ => html! { h3 id=(id) { (title) } },
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
