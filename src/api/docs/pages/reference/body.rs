//! Request and response bodies, headers and examples in the API reference.

use maud::{Markup, html};
use serde_json::Value;

use super::document::{Document, entries, items, text};
use super::{prose, schema, table};

/// Renders the request body, if there is one.
pub(super) fn request(document: &Document<'_>, body: &Value) -> Markup {
    let body = document.resolve(body);
    html! {
        @for (media_type, content) in entries(&body["content"]) {
            h4 { "Body, " code { (media_type) } (schema::required(body["required"] == true)) }
            (prose(text(body, "description")))
            (schema::fields(document, &content["schema"]))
            (examples(document, content))
        }
    }
}

/// Renders a 2xx response with headers, fields and examples.
pub(super) fn success(document: &Document<'_>, status: &str, response: &Value) -> Markup {
    let response = document.resolve(response);
    html! {
        h4 { "Response " (status) }
        (prose(text(response, "description")))
        (headers(document, &response["headers"]))
        @for (media_type, content) in entries(&response["content"]) {
            p.soft { code { (media_type) } " " (schema::type_name(&content["schema"])) }
            (schema::fields(document, &content["schema"]))
            (examples(document, content))
        }
    }
}

/// Renders all other responses as one table; their bodies link to the schema.
pub(super) fn errors<'a>(
    document: &Document<'a>,
    responses: impl Iterator<Item = (&'a str, &'a Value)>,
) -> Markup {
    let responses: Vec<(&str, &Value)> = responses
        .map(|(status, response)| (status, document.resolve(response)))
        .collect();
    html! {
        @if !responses.is_empty() {
            h4 { "Errors and other responses" }
            (table(&["Status", "Body", "Meaning"], &html! {
                @for (status, response) in responses {
                    tr {
                        td { (status) }
                        td {
                            @for (_, content) in entries(&response["content"]) { (schema::type_name(&content["schema"])) }
                        }
                        td { (prose(text(response, "description"))) }
                    }
                }
            }))
        }
    }
}

fn headers(document: &Document<'_>, headers: &Value) -> Markup {
    let headers: Vec<(&str, &Value)> = entries(headers)
        .map(|(name, header)| (name, document.resolve(header)))
        .collect();
    html! {
        @if !headers.is_empty() {
            (table(&["Header", "Type", "Meaning"], &html! {
                @for (name, header) in headers {
                    tr {
                        td { code { (name) } }
                        td { (schema::type_name(&header["schema"])) }
                        td { (schema::meaning(&header["schema"], text(header, "description"))) }
                    }
                }
            }))
        }
    }
}

/// Renders the examples of a body, or else the example of its schema.
fn examples(document: &Document<'_>, content: &Value) -> Markup {
    let named = entries(&content["examples"]).map(|(name, example)| {
        let example = document.resolve(example);
        let summary = text(example, "summary");
        (if summary.is_empty() { name } else { summary }, &example["value"])
    });
    let one = Some(&content["example"]).filter(|example| !example.is_null());
    let mut all: Vec<(&str, &Value)> = named.chain(one.map(|example| ("Example", example))).collect();
    if all.is_empty() {
        let schema = document.resolve(&content["schema"]);
        let of_schema = items(&schema["examples"]).chain(Some(&schema["example"]));
        all.extend(
            of_schema
                .filter(|example| !example.is_null())
                .take(1)
                .map(|example| ("Example", example)),
        );
    }
    html! {
        @for (name, example) in all {
            p.soft { (name) }
            pre { code { (format!("{example:#}")) } }
        }
    }
}
