//! Schemas in words: the type of a value, the rules it keeps, and the fields of an object as a table.

use maud::{Markup, html};
use serde_json::Value;

use super::document::{Document, entries, items, text};
use super::prose;

/// How deep objects are unfolded into one table. Deeper ones are left to their type: nothing of ours nests so far.
const MAX_NESTING: usize = 6;

/// Pairs of limits, and what they count.
const RANGES: [(&str, &str, &str); 4] = [
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " entries"),
    ("minProperties", "maxProperties", " fields"),
];

/// Every schema of the document, each where references lead to.
pub(super) fn all(document: &Document<'_>) -> Markup {
    let schemas: Vec<_> = entries(document.get("components/schemas")).collect();
    html! {
        @if !schemas.is_empty() {
            h2 id="schemas" { "Schemas" }
            @for (name, schema) in schemas {
                h3 id={ "schema-" (name) } { code { (name) } }
                (prose(text(schema, "description")))
                p.soft { (kind(schema)) (rules(schema)) }
                (fields(document, schema))
            }
        }
    }
}

/// The mark of what must be there.
pub(super) fn required(required: bool) -> Markup {
    html! { @if required { span.required { " required" } } }
}

/// The type of a value; a schema with a name is a link to it.
pub(super) fn kind(schema: &Value) -> Markup {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return html! { a href={ "#schema-" (name) } { (name) } };
    }
    for (word, between) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if schema[word].is_array() {
            let kinds = items(&schema[word]).map(kind);
            return joined(kinds, between);
        }
    }
    let words: Vec<&str> = match &schema["type"] {
        Value::String(word) => vec![word],
        words => items(words).filter_map(Value::as_str).collect(),
    };
    let named = words.iter().map(|word| word_of(word, schema));
    html! { @if words.is_empty() { "any" } (joined(named, " or ")) }
}

fn word_of(word: &str, schema: &Value) -> Markup {
    let format = text(schema, "format");
    html! {
        (word)
        @if word == "array" { " of " (kind(&schema["items"])) }
        @if !format.is_empty() && word != "null" { " (" (format) ")" }
    }
}

fn joined(parts: impl Iterator<Item = Markup>, between: &str) -> Markup {
    html! {
        @for (index, part) in parts.enumerate() {
            @if index > 0 { (between) }
            (part)
        }
    }
}

/// What a value must be beyond its type, and what it is if it is not sent.
pub(super) fn rules(schema: &Value) -> Markup {
    let choices: Vec<String> = items(&schema["enum"]).map(word).collect();
    let ranges = RANGES
        .iter()
        .filter_map(|(least, most, unit)| Some(format!("{}{unit}", range(&schema[*least], &schema[*most])?)));
    let exact = |name: &str, field: &str| {
        let value = &schema[field];
        (!value.is_null()).then(|| (name.to_owned(), word(value)))
    };
    let exact = [
        exact("always", "const"),
        exact("pattern", "pattern"),
        exact("default", "default"),
        exact("example", "example"),
    ];
    html! {
        @if !choices.is_empty() {
            " One of " (joined(choices.iter().map(|choice| html! { code { (choice) } }), ", ")) "."
        }
        @for range in ranges { " " (range) "." }
        @for (name, value) in exact.into_iter().flatten() { " " (name) " " code { (value) } "." }
    }
}

fn range(least: &Value, most: &Value) -> Option<String> {
    match (least.is_null(), most.is_null()) {
        (true, true) => None,
        (false, true) => Some(format!("at least {least}")),
        (true, false) => Some(format!("at most {most}")),
        (false, false) => Some(format!("{least} to {most}")),
    }
}

/// A text without its quotes, everything else as JSON.
fn word(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// The fields of an object, those of objects inside it too; nothing for what has no fields.
pub(super) fn fields(document: &Document<'_>, schema: &Value) -> Markup {
    let mut rows = Vec::new();
    collect(document, schema, "", MAX_NESTING, &mut rows);
    html! {
        @if !rows.is_empty() {
            table {
                thead { tr { th { "Field" } th { "Type" } th { "Meaning" } } }
                tbody {
                    @for row in &rows {
                        tr {
                            td { code { (row.name) } (required(row.required)) }
                            td { (kind(row.schema)) }
                            td { (prose(text(row.schema, "description"))) (rules(row.schema)) }
                        }
                    }
                }
            }
        }
    }
}

struct Row<'a> {
    name: String,
    required: bool,
    schema: &'a Value,
}

/// A named schema is followed where a table begins or is put together, and is a link inside of one.
fn collect<'a>(
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
        collect(document, part, prefix, left - 1, rows);
    }
    if schema["items"].is_object() {
        collect(document, &schema["items"], &format!("{prefix}[]"), left - 1, rows);
    }
    for (name, field) in entries(&schema["properties"]) {
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
        if inside["$ref"].is_null() {
            collect(document, field, &name, left - 1, rows);
        }
    }
}
