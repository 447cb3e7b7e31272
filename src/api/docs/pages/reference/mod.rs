//! API reference, rendered from an OpenAPI 3.1 document: an overview, a page per endpoint and a page per schema.
//!
//! Text of the document is escaped, so it cannot inject HTML.

mod body;
mod document;
mod samples;
mod schema;

use maud::{Markup, html};
use serde_json::Value;

use super::layout::{Page, href, method_badge};
use super::markdown;
use document::{Document, Operation, Tag, entries, items, text};

/// Group of the overview in the navigation.
const OVERVIEW: &str = "API reference";

/// Path of the overview below `/docs/`.
const ROOT: &str = "reference";

/// Renders all pages of the reference, without the layout.
pub(super) fn pages(document: &Value) -> Vec<Page> {
    let document = Document::new(document);
    let operations = document.operations();
    let tags = document.tags(&operations);
    let mut pages = vec![Page {
        path: ROOT.to_owned(),
        name: "Endpoints".to_owned(),
        method: None,
        group: OVERVIEW.to_owned(),
        content: overview(&document, &operations, &tags),
        examples: None,
    }];
    for tag in &tags {
        let of_tag = operations_of_tag(&operations, tag.name);
        pages.extend(of_tag.map(|operation| endpoint(&document, operation)));
    }
    pages.extend(schema::pages(&document));
    pages
}

fn overview(document: &Document<'_>, operations: &[Operation<'_>], tags: &[Tag<'_>]) -> Markup {
    html! {
        h1 id="api-reference" { (document.text_at("/info/title")) }
        p.soft { "Version " (document.text_at("/info/version")) ", also as an " a href="/openapi.json" { "OpenAPI document" } }
        (prose(document.text_at("/info/description")))
        @for tag in tags {
            h2 id={ "tag-" (markdown::anchor_of(tag.name)) } { (tag.name) }
            (prose(tag.description))
            ul.endpoints {
                @for operation in operations_of_tag(operations, tag.name) {
                    li {
                        a href=(href(&path_of(operation))) { (operation.name()) }
                        (endpoint_line(operation))
                    }
                }
            }
        }
        (security_schemes(document))
    }
}

fn endpoint(document: &Document<'_>, operation: &Operation<'_>) -> Page {
    let value = operation.value;
    let is_success = |status: &str| status.starts_with('2');
    let content = html! {
        h1 id=(operation.anchor()) { (operation.name()) }
        (endpoint_line(operation))
        @if value["deprecated"] == true { p { strong { "Deprecated." } } }
        (prose(text(value, "description")))
        (required_security(document, operation))
        (parameters(document, operation))
        (body::request(document, &value["requestBody"]))
        @for (status, response) in entries(&value["responses"]).filter(|(status, _)| is_success(status)) {
            (body::success(document, status, response))
        }
        (body::errors(document, entries(&value["responses"]).filter(|(status, _)| !is_success(status))))
    };
    let examples = html! {
        h2 id="request" { "Request" }
        (samples::request(document, operation))
        @for (status, response) in entries(&value["responses"]).filter(|(status, _)| is_success(status)) {
            (body::response_example(document, status, response))
        }
    };
    Page {
        path: path_of(operation),
        name: operation.name().to_owned(),
        method: Some(operation.method),
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

/// Renders Markdown of the document.
fn prose(text: &str) -> Markup {
    markdown::render(text)
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

/// Renders a heading and a list, or nothing if the list is empty.
fn entry_section(level: u8, title: &str, list: Vec<Entry<'_>>) -> Markup {
    let id = markdown::anchor_of(title);
    html! {
        @if !list.is_empty() {
            @if level == 2 { h2 id=(id) { (title) } } @else { h3 { (title) } }
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
                        a href={ "/docs/reference#security-" (markdown::anchor_of(scheme)) } { (scheme) }
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
            meaning: schema::meaning(&parameter["schema"], text(parameter, "description")),
        });
        entry_section(2, title, list.collect())
    };
    html! {
        (section("path", "Path parameters"))
        (section("query", "Query parameters"))
        (section("header", "Headers"))
    }
}

fn security_schemes(document: &Document<'_>) -> Markup {
    html! {
        h2 id="security" { "Security" }
        ul.entries {
            @for (name, scheme) in entries(document.get("components/securitySchemes")) {
                @let scheme = document.resolve(scheme);
                li id={ "security-" (markdown::anchor_of(name)) } {
                    p { code { (name) } " " span.soft { (text(scheme, "in")) " " (text(scheme, "name")) (text(scheme, "scheme")) } }
                    (prose(text(scheme, "description")))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
