//! References in an OpenAPI document: none with siblings, no component without one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use vouchsafe_wire::schema::non_null;

/// Prefix of a reference to a component.
const COMPONENTS: &str = "#/components/";

/// Kinds of components that are removed if nothing refers to them.
const KINDS: [&str; 2] = ["headers", "schemas"];

/// Keywords that combine schemas.
const COMBINATIONS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Writes schemas without a description at the fields that use them: the bounds of a field are no type of
/// their own in generated clients.
pub(super) fn write_bounds_in_place(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object();
    let bounds = schemas.into_iter().flatten().filter_map(|(name, schema)| {
        let is_named = ["description", "properties"]
            .iter()
            .any(|part| schema.get(part).is_some());
        let bound = schema
            .as_object()
            .filter(|_| !is_named && schema["type"].is_string())?;
        Some((format!("{COMPONENTS}schemas/{name}"), bound.clone()))
    });
    let bounds = bounds.collect();
    replace(document, &bounds);
}

fn replace(value: &mut Value, bounds: &BTreeMap<String, Map<String, Value>>) {
    match value {
        Value::Object(fields) => {
            let other_than_null = non_null(fields.get("oneOf")).and_then(Value::as_object);
            if let Some(mut bound) = other_than_null.and_then(|schema| resolved(schema, bounds)) {
                bound["type"] = json!([bound["type"], "null"]);
                fields.remove("oneOf");
                bound.append(fields);
                *fields = bound;
            } else if let Some(bound) = resolved(fields, bounds) {
                *fields = bound;
            }
            fields.values_mut().for_each(|value| replace(value, bounds));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, bounds)),
        _ => {}
    }
}

/// The bounds that `$ref` names, with the other fields of the schema, such as its description.
fn resolved(
    schema: &Map<String, Value>,
    bounds: &BTreeMap<String, Map<String, Value>>,
) -> Option<Map<String, Value>> {
    let mut bound = bounds.get(schema.get("$ref")?.as_str()?)?.clone();
    bound.extend(schema.clone());
    bound.remove("$ref");
    Some(bound)
}

/// Separates references from their descriptions: most generators ignore or misread siblings of `$ref`.
pub(super) fn separate(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for keyword in COMBINATIONS {
                let parts = fields.get_mut(keyword).and_then(Value::as_array_mut);
                let description = parts.into_iter().flatten().filter_map(take_siblings).last();
                if let Some(description) = description {
                    fields.entry("description").or_insert(description);
                }
            }
            if fields.len() > 1
                && let Some(reference) = fields.remove("$ref")
            {
                fields.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
            }
            fields.values_mut().for_each(separate);
        }
        Value::Array(items) => items.iter_mut().for_each(separate),
        _ => {}
    }
}

/// Removes everything beside `$ref` and returns the description.
fn take_siblings(part: &mut Value) -> Option<Value> {
    let fields = part
        .as_object_mut()
        .filter(|fields| fields.contains_key("$ref"))?;
    let description = fields.remove("description");
    fields.retain(|keyword, _| keyword == "$ref");
    description
}

/// Removes components that no operation refers to.
pub(super) fn remove_unused(document: &mut Value) {
    let used = reachable(document, [&document["paths"], &document["webhooks"]]);
    for kind in KINDS {
        if let Some(components) = document["components"][kind].as_object_mut() {
            components.retain(|name, _| used.contains(&format!("{COMPONENTS}{kind}/{name}")));
        }
    }
}

/// The references in these values and in what they refer to.
pub(super) fn reachable<'a>(
    document: &'a Value,
    from: impl IntoIterator<Item = &'a Value>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut pending: Vec<&Value> = from.into_iter().collect();
    while let Some(value) = pending.pop() {
        match value {
            Value::String(text) if text.starts_with(COMPONENTS) && found.insert(text.clone()) => {
                pending.extend(document.pointer(&text[1..]));
            }
            Value::Object(fields) => pending.extend(fields.values()),
            Value::Array(items) => pending.extend(items),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn described_reference_is_separated_from_its_description() {
        for (mut schema, expected) in [
            (json!({ "$ref": "#/a" }), json!({ "$ref": "#/a" })),
            (
                json!({ "properties": { "a": { "$ref": "#/a", "description": "A." } } }),
                json!({ "properties": { "a": { "allOf": [{ "$ref": "#/a" }], "description": "A." } } }),
            ),
            (
                json!({ "oneOf": [{ "type": "null" }, { "$ref": "#/a", "description": "A." }] }),
                json!({ "oneOf": [{ "type": "null" }, { "$ref": "#/a" }], "description": "A." }),
            ),
            (
                json!({ "oneOf": [{ "$ref": "#/a", "description": "A." }], "description": "All." }),
                json!({ "oneOf": [{ "$ref": "#/a" }], "description": "All." }),
            ),
        ] {
            separate(&mut schema);
            assert_eq!(schema, expected);
        }
    }

    #[test]
    fn bounds_are_written_at_their_fields() {
        let mut document = json!({
            "paths": {
                "n": { "$ref": "#/components/schemas/N", "description": "A number." },
                "m": { "oneOf": [{ "$ref": "#/components/schemas/N", "description": "None." }, { "type": "null" }] },
                "t": { "$ref": "#/components/schemas/T" },
            },
            "components": {
                "schemas": { "N": { "type": "integer", "maximum": 9 }, "T": { "type": "string", "description": "A." } },
            },
        });
        write_bounds_in_place(&mut document);
        assert_eq!(
            document["paths"],
            json!({
                "n": { "type": "integer", "maximum": 9, "description": "A number." },
                "m": { "type": ["integer", "null"], "maximum": 9, "description": "None." },
                "t": { "$ref": "#/components/schemas/T" },
            })
        );
    }

    #[test]
    fn unused_components_are_removed() {
        let mut document = json!({
            "paths": { "/a": { "$ref": "#/components/schemas/A" } },
            "components": {
                "schemas": { "A": { "$ref": "#/components/schemas/B" }, "B": {}, "C": {} },
                "headers": { "H": {} },
            },
        });
        remove_unused(&mut document);
        assert_eq!(
            document["components"],
            json!({ "schemas": { "A": { "$ref": "#/components/schemas/B" }, "B": {} }, "headers": {} })
        );
    }
}
