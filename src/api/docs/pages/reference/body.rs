//! Request and response bodies, headers and examples in the API reference.

use maud::{Markup, html};
use serde_json::Value;

use super::document::{Document, entries, items, text};
use super::{Entry, entry_section, prose, schema};
use crate::api::docs::pages::code;

/// Renders the request body, if there is one.
pub(super) fn request(document: &Document<'_>, body: &Value) -> Markup {
    let body = document.resolve(body);
    html! {
        @if body["content"].is_object() {
            h2 id="body" { "Body" (schema::required(body["required"] == true)) }
            (prose(text(body, "description")))
            @for (media_type, content) in entries(&body["content"]) {
                p.soft { code { (media_type) } " " (schema::type_name(&content["schema"])) }
                (schema::fields(document, &content["schema"]))
            }
        }
    }
}

/// Renders a 2xx response with headers and fields.
pub(super) fn success(document: &Document<'_>, status: &str, response: &Value) -> Markup {
    let response = document.resolve(response);
    html! {
        h2 id={ "response-" (status) } { "Response " (status) }
        (prose(text(response, "description")))
        @for (media_type, content) in entries(&response["content"]) {
            p.soft { code { (media_type) } " " (schema::type_name(&content["schema"])) }
            (schema::fields(document, &content["schema"]))
        }
        (headers(document, &response["headers"]))
    }
}

/// Renders the example of a response.
pub(super) fn response_example(document: &Document<'_>, status: &str, response: &Value) -> Markup {
    let response = document.resolve(response);
    html! {
        @for example in entries(&response["content"]).filter_map(|(_, content)| example(document, content)) {
            h2 { "Response " (status) }
            (code::block("json", &plain_or_json(example)))
        }
    }
}

/// Renders all other responses as one list; their bodies link to the schema.
pub(super) fn errors<'a>(
    document: &Document<'a>,
    responses: impl Iterator<Item = (&'a str, &'a Value)>,
) -> Markup {
    let entry = |(status, response): (&'a str, &'a Value)| {
        let response = document.resolve(response);
        let bodies = entries(&response["content"]).map(|(_, content)| schema::type_name(&content["schema"]));
        Entry {
            name: status,
            is_required: false,
            kind: html! { @for body in bodies { (body) } },
            meaning: prose(text(response, "description")),
        }
    };
    entry_section(2, "Errors and other responses", responses.map(entry).collect())
}

fn headers(document: &Document<'_>, headers: &Value) -> Markup {
    let entry = |(name, header)| {
        let header = document.resolve(header);
        Entry {
            name,
            is_required: false,
            kind: schema::type_name(&header["schema"]),
            meaning: schema::meaning(&header["schema"], text(header, "description")),
        }
    };
    entry_section(3, "Response headers", entries(headers).map(entry).collect())
}

/// The first example of a body, or else that of its schema.
pub(super) fn example<'a>(document: &Document<'a>, content: &'a Value) -> Option<&'a Value> {
    let named = entries(&content["examples"]).map(|(_, example)| &document.resolve(example)["value"]);
    let schema = document.resolve(&content["schema"]);
    let all = std::iter::once(&content["example"])
        .chain(named)
        .chain(items(&schema["examples"]))
        .chain([&schema["example"]]);
    all.into_iter().find(|example| !example.is_null())
}

/// Text as it is, any other value as indented JSON.
pub(super) fn plain_or_json(example: &Value) -> String {
    example
        .as_str()
        .map_or_else(|| format!("{example:#}"), ToOwned::to_owned)
}
