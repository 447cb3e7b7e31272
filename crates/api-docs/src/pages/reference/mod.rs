//! API reference, rendered from an OpenAPI 3.1 document: an overview, a page per endpoint, per webhook event
//! and per schema.
//!
//! Text of the document is escaped, so it cannot inject HTML.

mod body;
mod document;
mod events;
mod samples;
mod schema;
mod try_it;

use maud::{Markup, html};
use serde_json::Value;

use super::layout::{heading, href, method_badge};
use super::markdown::{CodeLinks, anchor_of};
use super::page::Page;
use document::{Document, Operation, Tag, entries, items, text};

/// Name of the overview.
const OVERVIEW: &str = "API reference";

/// Path of the overview below `/docs/`.
const ROOT: &str = "reference";

/// The pages that code in a text can name: the overview by its address, `GET /orders`, `order.delivered`.
pub(super) fn code_links(document: &Value) -> CodeLinks {
    let no_links = CodeLinks::new();
    let document = Document::new(document, &no_links);
    let mut links = events::code_links(&document);
    links.insert(href(ROOT), href(ROOT));
    let link = |operation: &Operation<'_>| (operation.request_line(), href(&path_of(operation)));
    links.extend(document.operations().iter().map(link));
    links
}

/// Renders all pages of the reference, without the layout.
pub(super) fn pages(document: &Value, links: &CodeLinks) -> Vec<Page> {
    let document = Document::new(document, links);
    let operations = document.operations();
    let tags = document.tags(&operations);
    let mut pages = vec![Page {
        path: ROOT.to_owned(),
        name: OVERVIEW.to_owned(),
        group: OVERVIEW.to_owned(),
        content: overview(&document, &operations, &tags),
        ..Page::default()
    }];
    pages.extend(try_it::page(&document));
    for tag in &tags {
        let of_tag = operations_of_tag(&operations, tag.name);
        pages.extend(of_tag.map(|operation| endpoint(&document, operation)));
    }
    pages.extend(events::pages(&document));
    pages.extend(schema::pages(&document));
    pages
}

fn overview(document: &Document<'_>, operations: &[Operation<'_>], tags: &[Tag<'_>]) -> Markup {
    html! {
        h1 id="api-reference" { (document.text_at("/info/title")) }
        p.soft { "Version " (document.text_at("/info/version")) ", also as an " a href="/openapi.json" { "OpenAPI document" } }
        (document.prose(document.text_at("/info/description")))
        @for tag in tags {
            (heading(2, &format!("tag-{}", anchor_of(tag.name)), &html! { (tag.name) }))
            (document.prose(tag.description))
            ul.endpoints {
                @for operation in operations_of_tag(operations, tag.name) {
                    li {
                        a href=(href(&path_of(operation))) { (operation.name()) }
                        (endpoint_line(operation))
                    }
                }
            }
        }
        (events::list(document))
        (security_schemes(document))
    }
}

fn endpoint(document: &Document<'_>, operation: &Operation<'_>) -> Page {
    let value = operation.value;
    let (successes, others): (Vec<_>, Vec<_>) = document
        .responses(operation)
        .partition(|response| response.status.starts_with('2'));
    let content = html! {
        h1 id=(operation.anchor()) { (operation.name()) }
        (endpoint_line(operation))
        @if value["deprecated"] == true { p { strong { "Deprecated." } } }
        (document.prose(text(value, "description")))
        (required_security(document, operation))
        (parameters(document, operation))
        (body::request(document, &value["requestBody"]))
        (body::successes(document, &successes))
        (body::table(document, "Errors and other responses", &others))
        (body::headers(document, &successes))
    };
    let examples = html! {
        h2 id="request" { "Request" }
        (samples::request(document, operation))
        @for response in &successes { (body::response_example(document, response)) }
    };
    Page {
        path: path_of(operation),
        name: operation.name().to_owned(),
        method: Some(operation.method),
        keywords: operation.request_line(),
        group: operation.tag().to_owned(),
        content,
        examples: Some(examples),
    }
}

fn path_of(operation: &Operation<'_>) -> String {
    format!("{ROOT}/{}", operation.id())
}

fn endpoint_line(operation: &Operation<'_>) -> Markup {
    html! { p.endpoint { (method_badge(operation.method)) " " code { (operation.path) } } }
}

fn operations_of_tag<'o, 'a>(
    operations: &'o [Operation<'a>],
    tag: &'o str,
) -> impl Iterator<Item = &'o Operation<'a>> {
    operations.iter().filter(move |operation| operation.tag() == tag)
}

/// A described name: a field, parameter, header or status.
struct Entry<'a> {
    name: &'a str,
    is_required: bool,
    kind: Markup,
    meaning: Markup,
}

/// Renders a list of described names.
fn entry_list<'a>(list: impl Iterator<Item = Entry<'a>>) -> Markup {
    html! {
        ul.entries {
            @for entry in list {
                li {
                    p { code { (entry.name) } " " span.soft { (entry.kind) } (schema::required(entry.is_required)) }
                    (entry.meaning)
                }
            }
        }
    }
}

/// Renders a heading and a list, required entries first, or nothing if the list is empty.
fn entry_section(title: &str, mut list: Vec<Entry<'_>>) -> Markup {
    list.sort_by_key(|entry| !entry.is_required);
    html! {
        @if !list.is_empty() {
            (heading(2, &anchor_of(title), &html! { (title) }))
            (entry_list(list.into_iter()))
        }
    }
}

/// Renders the security requirements of an operation; an empty requirement means none.
fn required_security(document: &Document<'_>, operation: &Operation<'_>) -> Markup {
    let security = document.security(operation);
    let alternatives: Vec<Vec<&str>> = items(security)
        .map(|alternative| entries(alternative).map(|(scheme, _)| scheme).collect())
        .collect();
    html! {
        @if alternatives.iter().any(|alternative| !alternative.is_empty()) {
            p.soft {
                "Requires "
                @for (index, alternative) in alternatives.iter().enumerate() {
                    @if index > 0 { ", or " }
                    @if alternative.is_empty() { "nothing" }
                    @for (index, scheme) in alternative.iter().enumerate() {
                        @if index > 0 { " and " }
                        a href={ "/docs/reference#security-" (anchor_of(scheme)) } { (scheme) }
                    }
                }
                "."
            }
        }
    }
}

fn parameters(document: &Document<'_>, operation: &Operation<'_>) -> Markup {
    let all = document.parameters(operation);
    let section = |location: &str, title: &str| {
        let of_location = all.iter().filter(|parameter| text(parameter, "in") == location);
        let list = of_location.map(|parameter| Entry {
            name: text(parameter, "name"),
            is_required: parameter["required"] == true,
            kind: schema::type_name(&parameter["schema"]),
            meaning: schema::meaning(document, &parameter["schema"], text(parameter, "description")),
        });
        entry_section(title, list.collect())
    };
    html! {
        (section("path", "Path parameters"))
        (section("query", "Query parameters"))
        (section("header", "Headers"))
    }
}

fn security_schemes(document: &Document<'_>) -> Markup {
    html! {
        (heading(2, "security", &html! { "Security" }))
        ul.entries {
            @for (name, scheme) in entries(document.get("components/securitySchemes")) {
                @let scheme = document.resolve(scheme);
                li id={ "security-" (anchor_of(name)) } {
                    p { code { (name) } " " span.soft { (text(scheme, "in")) " " (text(scheme, "name")) (text(scheme, "scheme")) } }
                    (document.prose(text(scheme, "description")))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
