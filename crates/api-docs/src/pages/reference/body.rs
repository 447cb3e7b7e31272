//! Request and response bodies, headers and examples in the API reference.

use maud::{Markup, html};
use serde_json::Value;

use super::document::{Document, Response, entries, items, text};
use super::{Entry, entry_section, schema};
use crate::openapi::json_text;
use crate::openapi::wire_order::WireOrder;
use crate::pages::code;
use crate::pages::layout::{breakable, heading};
use crate::pages::markdown::anchor_of;

/// Renders the request body, if there is one.
pub(super) fn request(document: &Document<'_>, body: &Value) -> Markup {
    let body = document.resolve(body);
    let required = schema::required(body["required"] == true);
    html! {
        @if body["content"].is_object() {
            (heading(2, "body", &html! { "Body" }))
            (document.prose(text(body, "description")))
            @for (media_type, content) in entries(&body["content"]) { (media(document, media_type, content, Some(&required))) }
        }
    }
}

/// Renders the media type and the fields of a body, of a request with the mark of a required one.
fn media(document: &Document<'_>, media_type: &str, content: &Value, required: Option<&Markup>) -> Markup {
    html! {
        p.soft { code { (media_type) } " " (schema::type_name(&content["schema"])) @if let Some(required) = required { (required) } }
        (schema::fields(document, &content["schema"], required.is_some()))
    }
}

/// Renders the 2xx responses. A body that an earlier one has already is only referred to.
pub(super) fn successes(document: &Document<'_>, responses: &[Response<'_>]) -> Markup {
    let schemas = |response: &Response<'_>| -> Vec<Value> {
        let contents = entries(&response.value["content"]);
        contents.map(|(_, content)| content["schema"].clone()).collect()
    };
    html! {
        @for (index, response) in responses.iter().enumerate() {
            @let body = schemas(response);
            @let same = responses[..index].iter().find(|earlier| !body.is_empty() && schemas(earlier) == body);
            (heading(2, &id(response), &html! { "Response " (response.status) }))
            (document.prose(text(response.value, "description")))
            @if let Some(same) = same {
                p.soft { "The body has the fields of " a href={ "#" (id(same)) } { "response " (same.status) } "." }
            } @else {
                @for (media_type, content) in entries(&response.value["content"]) {
                    (media(document, media_type, content, None))
                }
            }
        }
    }
}

fn id(response: &Response<'_>) -> String {
    format!("response-{}", response.status)
}

/// Renders the example of a response.
pub(super) fn response_example(document: &Document<'_>, response: &Response<'_>) -> Markup {
    html! {
        @for example in entries(&response.value["content"]).filter_map(|(_, content)| example(document, content)) {
            h2 { "Response " (response.status) }
            (example_block(&example))
        }
    }
}

/// Renders an example.
pub(super) fn example_block(example: &Example) -> Markup {
    code::block(example.language, &Markup::default(), &example.text)
}

/// The text of an example, and the language to highlight it in.
pub(super) struct Example {
    language: &'static str,
    pub(super) text: String,
}

/// Renders responses as a table: a row for each error code, or one for a response without codes.
pub(super) fn table(document: &Document<'_>, title: &str, responses: &[Response<'_>]) -> Markup {
    let codes = |response: &Response<'_>| -> Vec<(String, String)> {
        let contents = entries(&response.value["content"]);
        let examples = contents.flat_map(|(_, content)| entries(&content["examples"]));
        let row = |(code, example): (&str, &Value)| {
            let message = &document.resolve(example)["value"]["error"]["message"];
            Some((code.to_owned(), message.as_str()?.to_owned()))
        };
        examples.filter_map(row).collect()
    };
    let has_codes = responses.iter().any(|response| !codes(response).is_empty());
    let row = |status: &str, code: Markup, meaning: &str| {
        html! { tr { td { (status) } @if has_codes { td { (code) } } td { (document.prose(meaning)) } } }
    };
    html! {
        @if !responses.is_empty() {
            (heading(2, &anchor_of(title), &html! { (title) }))
            @if let Some(kind) = responses.iter().find_map(|response| error_type(response)) {
                p.soft { "Error bodies: " (kind) }
            }
            section.scroll tabindex="0" {
                table {
                    thead { tr { th { "Status" } @if has_codes { th { "Code" } } th { "Meaning" } } }
                    tbody {
                        @for response in responses {
                            @let codes = codes(response);
                            @for (code, message) in &codes { (row(response.status, code_link(document, code), message)) }
                            @if codes.is_empty() {
                                (row(response.status, Markup::default(), text(response.value, "description")))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn error_type(response: &Response<'_>) -> Option<Markup> {
    let (_, content) = entries(&response.value["content"]).next()?;
    Some(schema::type_name(&content["schema"]))
}

fn code_link(document: &Document<'_>, code: &str) -> Markup {
    html! {
        @let name = html! { code { (breakable(code)) } };
        @if let Some(link) = document.link(code) { a href=(link) { (name) } } @else { (name) }
    }
}

/// Renders the headers of the 2xx responses, each once.
pub(super) fn headers(document: &Document<'_>, responses: &[Response<'_>]) -> Markup {
    let mut list: Vec<Entry<'_>> = Vec::new();
    for (name, header) in responses
        .iter()
        .flat_map(|response| entries(&response.value["headers"]))
    {
        let header = document.resolve(header);
        if list.iter().all(|entry| entry.name != name) {
            list.push(Entry {
                name,
                is_required: false,
                kind: schema::type_name(&header["schema"]),
                meaning: schema::meaning(document, &header["schema"], text(header, "description")),
            });
        }
    }
    entry_section("Response headers", list)
}

/// The first example of a body, or else that of its schema: text as it is, any other value as indented JSON.
pub(super) fn example<'a>(document: &Document<'a>, content: &'a Value) -> Option<Example> {
    let named = entries(&content["examples"]).map(|(_, example)| &document.resolve(example)["value"]);
    let schema = document.resolve(&content["schema"]);
    let all = std::iter::once(&content["example"])
        .chain(named)
        .chain(items(&schema["examples"]))
        .chain([&schema["example"]]);
    let found = all.into_iter().find(|example| !example.is_null())?;
    Some(example_of(document, found, &content["schema"]))
}

/// An example of a schema.
pub(super) fn example_of<'a>(document: &Document<'a>, example: &'a Value, schema: &'a Value) -> Example {
    match example.as_str() {
        Some(text) => Example {
            language: "text",
            text: text.to_owned(),
        },
        None => Example {
            language: "json",
            text: json_text::pretty(&WireOrder::of_example(example, schema, document.root())),
        },
    }
}
