//! Strict JSON schemas: no unknown properties, no unknown values of extensible enums.

use serde_json::{Value, json};

/// Current values of an enum that may grow.
const EXTENSIBLE_ENUM: &str = "x-extensible-enum";

/// Makes a schema and its children strict. Members of `allOf` stay open: the combined schema is strict.
pub(super) fn reject_unknown_properties(schema: &mut Value) {
    reject_unknown_in_children(schema);
    if let Value::Object(fields) = schema
        && ["$ref", "properties", "allOf"]
            .iter()
            .any(|keyword| fields.contains_key(*keyword))
    {
        fields.insert("unevaluatedProperties".to_owned(), json!(false));
    }
}

/// Makes the children of a named schema strict. The schema itself becomes strict where it is referenced.
pub(super) fn reject_unknown_in_children(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    if let Some(values) = fields.remove(EXTENSIBLE_ENUM) {
        fields.insert("enum".to_owned(), values);
    }
    for (keyword, child) in fields {
        match (keyword.as_str(), child) {
            ("allOf", Value::Array(parts)) => parts.iter_mut().for_each(reject_unknown_in_children),
            ("oneOf" | "anyOf" | "prefixItems", Value::Array(parts)) => {
                parts.iter_mut().for_each(reject_unknown_properties)
            }
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(reject_unknown_properties)
            }
            ("items" | "additionalProperties", schema) => reject_unknown_properties(schema),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(schema: Value, value: &Value) -> bool {
        let mut schema = schema;
        reject_unknown_properties(&mut schema);
        for named in schema["components"].as_object_mut().unwrap().values_mut() {
            reject_unknown_in_children(named);
        }
        jsonschema::is_valid(&schema, value)
    }

    #[test]
    fn unknown_properties_at_any_depth_are_rejected() {
        let components = json!({
            "Part": { "type": "object", "properties": { "a": { "type": "integer" } } },
            "Word": { "type": "string", "x-extensible-enum": ["ONE", "TWO"] },
        });
        let part = json!({ "$ref": "#/components/Part" });
        let schema = json!({
            "components": components,
            "properties": {
                "list": { "type": "array", "items": part },
                "maybe": { "oneOf": [{ "type": "null" }, part] },
                "both": { "allOf": [part, { "type": "object", "properties": { "b": { "$ref": "#/components/Word" } } }] },
            },
        });
        for (value, right) in [
            (json!({ "list": [{ "a": 1 }] }), true),
            (json!({ "list": [{ "a": 1, "x": 1 }] }), false),
            (json!({ "maybe": null }), true),
            (json!({ "maybe": { "a": 1 } }), true),
            (json!({ "maybe": { "x": 1 } }), false),
            (json!({ "both": { "a": 1, "b": "ONE" } }), true),
            (json!({ "both": { "a": 1, "b": "THREE" } }), false),
            (json!({ "both": { "a": 1, "c": 1 } }), false),
            (json!({ "x": 1 }), false),
        ] {
            assert_eq!(accepts(schema.clone(), &value), right, "{value}");
        }
    }
}
