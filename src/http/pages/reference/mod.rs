//! The API reference: an OpenAPI 3.1 document as a page for people.
//!
//! Rule: what the document says of a route is on the page, and it is text there, never HTML.

mod body;
mod document;
mod schema;

use maud::{Markup, html};
use serde_json::Value;

use super::markdown;
use document::{Document, Operation, entries, items, text};

/// The content of the page; the layout is put round it.
#[must_use]
pub fn page(document: &Value) -> Markup {
    let document = Document::new(document);
    let operations = document.operations();
    let tags = document.tags(&operations);
    html! {
        h1 id="api-reference" { (document.at("/info/title")) }
        p.soft { "Version " (document.at("/info/version")) }
        (prose(document.at("/info/description")))
        @for tag in &tags {
            h3 { (tag.name) }
            ul {
                @for operation in grouped(&operations, tag.name) {
                    li { a href={ "#" (operation.anchor()) } { (line(operation)) } " " (text(operation.value, "summary")) }
                }
            }
        }
        @for tag in &tags {
            h2 id={ "tag-" (markdown::anchor_of(tag.name)) } { (tag.name) }
            (prose(tag.description))
            @for operation in grouped(&operations, tag.name) { (shown(&document, operation)) }
        }
        (schemes(&document))
        (schema::all(&document))
    }
}

fn grouped<'o, 'a>(operations: &'o [Operation<'a>], tag: &'o str) -> impl Iterator<Item = &'o Operation<'a>> {
    operations.iter().filter(move |operation| operation.tag() == tag)
}

/// Markdown of the document.
fn prose(text: &str) -> Markup {
    markdown::render(text)
}

fn line(operation: &Operation<'_>) -> Markup {
    html! { code { span.method { (operation.method.to_uppercase()) } " " (operation.path) } }
}

fn shown(document: &Document<'_>, operation: &Operation<'_>) -> Markup {
    let value = operation.value;
    html! {
        h3 id=(operation.anchor()) { (line(operation)) }
        @if value["deprecated"] == true { p { strong { "Deprecated." } } }
        p { strong { (text(value, "summary")) } }
        (prose(text(value, "description")))
        (needs(document, value))
        (parameters(document, operation))
        (body::request(document, &value["requestBody"]))
        @for (status, response) in entries(&value["responses"]).filter(|(status, _)| is_success(status)) {
            (body::success(document, status, response))
        }
        (body::errors(document, entries(&value["responses"]).filter(|(status, _)| !is_success(status))))
    }
}

fn is_success(status: &str) -> bool {
    status.starts_with('2')
}

/// With what a request proves who sends it; a route may say that it needs nothing.
fn needs(document: &Document<'_>, operation: &Value) -> Markup {
    let own = &operation["security"];
    let security = if own.is_null() {
        document.get("security")
    } else {
        own
    };
    let ways: Vec<Vec<&str>> = items(security)
        .map(|way| entries(way).map(|(scheme, _)| scheme).collect())
        .collect();
    html! {
        @if ways.iter().any(|way| !way.is_empty()) {
            p.soft {
                "Needs "
                @for (index, way) in ways.iter().enumerate() {
                    @if index > 0 { ", or " }
                    @if way.is_empty() { "nothing" }
                    @for (index, scheme) in way.iter().enumerate() {
                        @if index > 0 { " and " }
                        a href={ "#security-" (markdown::anchor_of(scheme)) } { (scheme) }
                    }
                }
                "."
            }
        }
    }
}

fn parameters(document: &Document<'_>, operation: &Operation<'_>) -> Markup {
    let shared = items(&operation.shared["parameters"]);
    let all: Vec<&Value> = shared
        .chain(items(&operation.value["parameters"]))
        .map(|parameter| document.resolve(parameter))
        .collect();
    html! {
        @if !all.is_empty() {
            h4 { "Parameters" }
            table {
                thead { tr { th { "Name" } th { "Where" } th { "Type" } th { "Meaning" } } }
                tbody {
                    @for parameter in all {
                        tr {
                            td { code { (text(parameter, "name")) } (schema::required(parameter["required"] == true)) }
                            td { (text(parameter, "in")) }
                            td { (schema::kind(&parameter["schema"])) }
                            td { (schema::meaning(&parameter["schema"], text(parameter, "description"))) }
                        }
                    }
                }
            }
        }
    }
}

fn schemes(document: &Document<'_>) -> Markup {
    let schemes: Vec<_> = entries(document.get("components/securitySchemes")).collect();
    html! {
        @if !schemes.is_empty() {
            h2 id="security" { "Security" }
            table {
                thead { tr { th { "Name" } th { "What is sent" } th { "Meaning" } } }
                tbody {
                    @for (name, scheme) in schemes {
                        @let scheme = document.resolve(scheme);
                        tr {
                            td id={ "security-" (markdown::anchor_of(name)) } { code { (name) } }
                            td { (text(scheme, "in")) " " code { (text(scheme, "name")) (text(scheme, "scheme")) } }
                            td { (prose(text(scheme, "description"))) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
