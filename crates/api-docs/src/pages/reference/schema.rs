//! Schemas in the API reference: type names, constraints, and tables of object fields.

use maud::{Markup, html};
use serde_json::Value;

use super::document::{Document, entries, items, text};
use super::{Entry, ROOT, entry_list};
use crate::openapi::wire_order::names;
use crate::pages::layout::href;
use crate::pages::page::Page;

/// Maximum depth of nested objects in one table; deeper ones show only their type. Our schemas are less deep.
const MAX_NESTING: usize = 6;

/// Pairs of limits and their unit.
const RANGES: [(&str, &str, &str); 4] = [
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " entries"),
    ("minProperties", "maxProperties", " fields"),
];

/// Group of the schemas in the navigation.
const GROUP: &str = "Schemas";

/// Renders a page for each named schema, the targets of `$ref` links.
pub(super) fn pages(document: &Document<'_>) -> Vec<Page> {
    let requested = document.request_schemas();
    let page = |(name, schema): (&str, &Value)| Page {
        path: path_of(name),
        name: name.to_owned(),
        group: GROUP.to_owned(),
        content: html! {
            h1 id={ "schema-" (name) } { (name) }
            p.soft { (type_name(schema)) }
            (meaning(document, schema, description(schema)))
            (fields(document, schema, requested.contains(name)))
        },
        ..Page::default()
    };
    entries(document.get("components/schemas")).map(page).collect()
}

fn path_of(name: &str) -> String {
    format!("{ROOT}/schemas/{name}")
}

/// Renders the mark of a required field.
pub(super) fn required(required: bool) -> Markup {
    html! { @if required { span.required { " required" } } }
}

/// Renders the type of a value; a named schema becomes a link.
pub(super) fn type_name(schema: &Value) -> Markup {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return html! { a href=(href(&path_of(name))) { (name) } };
    }
    for (keyword, between) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if schema[keyword].is_array() {
            let kinds = items(&schema[keyword]).map(type_name);
            return join(kinds, between);
        }
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(keyword) => vec![keyword],
        types => items(types).filter_map(Value::as_str).collect(),
    };
    let named = types.iter().map(|keyword| named_type(keyword, schema));
    html! { @if types.is_empty() { "any" } (join(named, " or ")) }
}

fn named_type(keyword: &str, schema: &Value) -> Markup {
    let format = text(schema, "format");
    html! {
        (keyword)
        @if keyword == "array" { " of " (type_name(&schema["items"])) }
        @if keyword == "string" && !format.is_empty() { " (" (format) ")" }
    }
}

fn join(parts: impl Iterator<Item = Markup>, between: &str) -> Markup {
    html! {
        @for (index, part) in parts.enumerate() {
            @if index > 0 { (between) }
            (part)
        }
    }
}

/// Renders the description and the constraints of a value.
pub(super) fn meaning(document: &Document<'_>, schema: &Value, description: &str) -> Markup {
    let rules = rules(schema);
    html! {
        (document.prose(description))
        @if !rules.is_empty() { p.soft { (join(rules.into_iter(), "; ")) } }
    }
}

/// The description of a schema, or that of its first alternative with one.
pub(super) fn description(schema: &Value) -> &str {
    let parts = ["oneOf", "anyOf", "allOf"]
        .iter()
        .flat_map(|keyword| items(&schema[*keyword]));
    let mut all = std::iter::once(schema)
        .chain(parts)
        .map(|part| text(part, "description"));
    all.find(|description| !description.is_empty())
        .unwrap_or_default()
}

fn rules(schema: &Value) -> Vec<Markup> {
    let choices = items(&schema["enum"]).map(|choice| html! { code { (plain_text(choice)) } });
    let choices = schema["enum"]
        .is_array()
        .then(|| html! { "one of " (join(choices, ", ")) });
    let ranges = RANGES
        .iter()
        .filter_map(|(least, most, unit)| range(&schema[*least], &schema[*most]).map(|range| (range, unit)));
    let single = [
        ("always", &schema["const"]),
        ("pattern", &schema["pattern"]),
        ("default", &schema["default"]),
        ("such as", &schema["example"]),
        ("such as", &schema["examples"][0]),
    ];
    let single = single.into_iter().filter(|(_, value)| !value.is_null());
    let ranges = ranges.map(|(range, unit)| html! { (range) (unit) });
    let single = single.map(|(name, value)| html! { (name) " " code { (plain_text(value)) } });
    choices.into_iter().chain(ranges).chain(single).collect()
}

fn range(least: &Value, most: &Value) -> Option<String> {
    match (least.is_null(), most.is_null()) {
        (true, true) => None,
        (false, true) => Some(format!("at least {least}")),
        (true, false) => Some(format!("at most {most}")),
        (false, false) => Some(format!("{least} to {most}")),
    }
}

/// A string without quotes, any other value as JSON.
fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// Renders the fields of an object and of its nested objects; nothing for other types. What a client need not
/// send is not marked as required.
pub(super) fn fields(document: &Document<'_>, schema: &Value, is_sent: bool) -> Markup {
    let mut rows = Vec::new();
    collect_rows(document, schema, "", MAX_NESTING, &mut rows);
    html! {
        @if !rows.is_empty() {
            (entry_list(rows.iter().map(|row| Entry {
                name: &row.name,
                is_required: is_sent && row.required,
                kind: type_name(row.schema),
                meaning: meaning(document, row.schema, description(row.schema)),
            })))
        }
    }
}

struct Row<'a> {
    name: String,
    required: bool,
    schema: &'a Value,
}

/// Collects rows depth first. Named schemas are expanded at the top level and in `allOf`; as field types they
/// stay links.
fn collect_rows<'a>(
    document: &Document<'a>,
    schema: &'a Value,
    prefix: &str,
    left: usize,
    rows: &mut Vec<Row<'a>>,
) {
    let schema = document.resolve(schema);
    if left == 0 {
        return;
    }
    for part in items(&schema["allOf"]) {
        collect_rows(document, part, prefix, left - 1, rows);
    }
    if schema["items"].is_object() {
        collect_rows(document, &schema["items"], &format!("{prefix}[]"), left - 1, rows);
    }
    let properties = schema["properties"].as_object().into_iter();
    let properties = properties.flat_map(|fields| {
        names(fields, schema, &Value::Null)
            .into_iter()
            .map(|name| (name, &fields[name]))
    });
    for (name, field) in properties {
        let name = match prefix {
            "" => name.to_owned(),
            prefix => format!("{prefix}.{name}"),
        };
        rows.push(Row {
            required: items(&schema["required"]).any(|required| required.as_str() == name.rsplit('.').next()),
            name: name.clone(),
            schema: field,
        });
        let inside = if field["items"].is_object() {
            &field["items"]
        } else {
            field
        };
        let is_named = [inside, &inside["allOf"][0]]
            .iter()
            .any(|schema| !schema["$ref"].is_null());
        if !is_named {
            collect_rows(document, field, &name, left - 1, rows);
        }
    }
}
