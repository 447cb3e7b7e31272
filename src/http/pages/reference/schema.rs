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
                p.soft { (kind(schema)) }
                (meaning(schema, description(schema)))
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
        @if word == "string" && !format.is_empty() { " (" (format) ")" }
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

/// What a value means: its description, and what it must be beyond its type.
pub(super) fn meaning(schema: &Value, description: &str) -> Markup {
    let rules = rules(schema);
    html! {
        (prose(description))
        @if !rules.is_empty() { p.soft { (joined(rules.into_iter(), "; ")) } }
    }
}

/// The description of a value, or that of the one thing it may be beside null.
pub(super) fn description(schema: &Value) -> &str {
    let parts = ["oneOf", "anyOf", "allOf"]
        .iter()
        .flat_map(|word| items(&schema[*word]));
    let mut all = std::iter::once(schema)
        .chain(parts)
        .map(|part| text(part, "description"));
    all.find(|description| !description.is_empty())
        .unwrap_or_default()
}

fn rules(schema: &Value) -> Vec<Markup> {
    let choices = items(&schema["enum"]).map(|choice| html! { code { (word(choice)) } });
    let choices = schema["enum"]
        .is_array()
        .then(|| html! { "one of " (joined(choices, ", ")) });
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
    let single = single.map(|(name, value)| html! { (name) " " code { (word(value)) } });
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
                            td { (meaning(row.schema, description(row.schema))) }
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
