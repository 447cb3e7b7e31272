//! Pages of the webhook events: the section `webhooks` of the OpenAPI document.

use maud::{Markup, html};
use serde_json::Value;

use super::document::{Document, Operation, entries, text};
use super::{ROOT, body, parameters, schema};
use crate::pages::layout::{heading, href};
use crate::pages::markdown::{CodeLinks, anchor_of};
use crate::pages::page::Page;

/// Group of the events in the navigation.
const GROUP: &str = "Webhook events";

/// Renders a page for each event.
pub(super) fn pages(document: &Document<'_>) -> Vec<Page> {
    let page = |event: &Operation<'_>| {
        let responses: Vec<_> = document.responses(event).collect();
        Page {
            path: path_of(event),
            name: event.path.to_owned(),
            group: GROUP.to_owned(),
            content: html! {
                h1 id=(anchor_of(&event.path.replace('.', "-"))) { (event.path) }
                (document.prose(text(event.value, "description")))
                (body::request(document, &event.value["requestBody"]))
                (data(document, event))
                (parameters(document, event))
                (body::table(document, "Your response", &responses))
            },
            examples: Some(examples(document, event)),
            ..Page::default()
        }
    };
    document.webhooks().iter().map(page).collect()
}

/// The page of each event by its name.
pub(super) fn code_links(document: &Document<'_>) -> CodeLinks {
    let link = |event: &Operation<'_>| (event.path.to_owned(), href(&path_of(event)));
    document.webhooks().iter().map(link).collect()
}

/// Renders the fields below `data`, which differ between events.
fn data(document: &Document<'_>, event: &Operation<'_>) -> Markup {
    let body = document.resolve(&event.value["requestBody"]);
    let schemas = entries(&body["content"]).map(|(_, content)| document.resolve(&content["schema"]));
    let data = schemas.map(|schema| &schema["properties"]["data"]);
    html! {
        @for data in data.filter(|data| !data.is_null()) {
            (heading(2, "data", &html! { "Data" }))
            p.soft { (schema::type_name(data)) }
            (schema::fields(document, data, false))
        }
    }
}

/// Renders the examples of the payload, each with its name if there are several.
fn examples(document: &Document<'_>, event: &Operation<'_>) -> Markup {
    let body = document.resolve(&event.value["requestBody"]);
    let contents = entries(&body["content"]);
    let named: Vec<(&str, &Value, &Value)> = contents
        .flat_map(|(_, content)| {
            entries(&content["examples"]).map(|(name, example)| (name, example, &content["schema"]))
        })
        .collect();
    html! {
        @if named.is_empty() {
            @for example in entries(&body["content"]).filter_map(|(_, content)| body::example(document, content)) {
                h2 { "Payload" }
                (body::example_block(&example))
            }
        }
        @for (name, example, schema) in named {
            @let example = document.resolve(example);
            h2 { (example["summary"].as_str().unwrap_or(name)) }
            (body::example_block(&body::example_of(document, &example["value"], schema)))
        }
    }
}

/// Renders links to the events, for the overview.
pub(super) fn list(document: &Document<'_>) -> Markup {
    let events = document.webhooks();
    html! {
        @if !events.is_empty() {
            (heading(2, "webhook-events", &html! { (GROUP) }))
            ul.endpoints {
                @for event in &events {
                    li {
                        a href=(href(&path_of(event))) { (event.path) }
                        p { (event.value["summary"].as_str().unwrap_or_default()) }
                    }
                }
            }
        }
    }
}

fn path_of(event: &Operation<'_>) -> String {
    format!("{ROOT}/events/{}", event.path)
}
