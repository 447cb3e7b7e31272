//! API reference page, rendered from an OpenAPI 3.1 document.
//!
//! Text of the document is escaped, so it cannot inject HTML.

mod body;
mod document;
mod schema;

use maud::{Markup, html};
use serde_json::Value;

use super::markdown;
use document::{Document, Operation, entries, items, text};

/// Renders the content of the page, without the layout.
pub(crate) fn page(document: &Value) -> Markup {
    let document = Document::new(document);
    let operations = document.operations();
    let tags = document.tags(&operations);
    html! {
        h1 id="api-reference" { (document.text_at("/info/title")) }
        p.soft { "Version " (document.text_at("/info/version")) }
        (prose(document.text_at("/info/description")))
        @for tag in &tags {
            h3 { (tag.name) }
            ul {
                @for operation in operations_of_tag(&operations, tag.name) {
                    li { a href={ "#" (operation.anchor()) } { (operation_label(operation)) } " " (text(operation.value, "summary")) }
                }
            }
        }
        @for tag in &tags {
            h2 id={ "tag-" (markdown::anchor_of(tag.name)) } { (tag.name) }
            (prose(tag.description))
            @for operation in operations_of_tag(&operations, tag.name) { (render_operation(&document, operation)) }
        }
        (security_schemes(&document))
        (schema::all(&document))
    }
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

/// Renders a table with these headings.
fn table(headings: &[&str], rows: &Markup) -> Markup {
    html! {
        table {
            thead { tr { @for heading in headings { th { (heading) } } } }
            tbody { (rows) }
        }
    }
}

fn operation_label(operation: &Operation<'_>) -> Markup {
    html! { code { span.method { (operation.method.to_uppercase()) } " " (operation.path) } }
}

fn render_operation(document: &Document<'_>, operation: &Operation<'_>) -> Markup {
    let value = operation.value;
    html! {
        h3 id=(operation.anchor()) { (operation_label(operation)) }
        @if value["deprecated"] == true { p { strong { "Deprecated." } } }
        p { strong { (text(value, "summary")) } }
        (prose(text(value, "description")))
        (required_security(document, value))
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

/// Renders the security requirements of an operation; an empty requirement means none.
fn required_security(document: &Document<'_>, operation: &Value) -> Markup {
    let own = &operation["security"];
    let security = if own.is_null() {
        document.get("security")
    } else {
        own
    };
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
            (table(&["Name", "In", "Type", "Meaning"], &html! {
                @for parameter in all {
                    tr {
                        td { code { (text(parameter, "name")) } (schema::required(parameter["required"] == true)) }
                        td { (text(parameter, "in")) }
                        td { (schema::type_name(&parameter["schema"])) }
                        td { (schema::meaning(&parameter["schema"], text(parameter, "description"))) }
                    }
                }
            }))
        }
    }
}

fn security_schemes(document: &Document<'_>) -> Markup {
    let schemes: Vec<_> = entries(document.get("components/securitySchemes")).collect();
    html! {
        @if !schemes.is_empty() {
            h2 id="security" { "Security" }
            (table(&["Name", "Sent as", "Meaning"], &html! {
                @for (name, scheme) in schemes {
                    @let scheme = document.resolve(scheme);
                    tr {
                        td id={ "security-" (markdown::anchor_of(name)) } { code { (name) } }
                        td { (text(scheme, "in")) " " code { (text(scheme, "name")) (text(scheme, "scheme")) } }
                        td { (prose(text(scheme, "description"))) }
                    }
                }
            }))
        }
    }
}

#[cfg(test)]
mod tests;
