//! Fields of schemas and examples in the order of the wire.
//!
//! A JSON value sorts its fields by name. `required` of a schema has the order in which the type declares its
//! fields, and a response has all of them; fields that may be absent follow by name.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};

/// Prefix of a reference to a schema.
const SCHEMAS: &str = "#/components/schemas/";

/// Bounds the references and combinations of a schema. Ours have a few.
const MAX_DEPTH: usize = 8;

/// A part of a document that is written in the order of the wire.
#[derive(Clone, Copy)]
pub struct WireOrder<'a> {
    value: &'a Value,
    role: Role<'a>,
    /// The schemas of the document, by name.
    schemas: &'a Value,
}

#[derive(Clone, Copy)]
enum Role<'a> {
    Document,
    /// The properties of this schema.
    Properties(&'a Value),
    /// Named examples of this schema.
    Examples(&'a Value),
    NamedExample(&'a Value),
    /// An example of this schema.
    Example(&'a Value),
}

impl<'a> WireOrder<'a> {
    /// A whole document.
    pub fn of_document(document: &'a Value) -> Self {
        Self {
            value: document,
            role: Role::Document,
            schemas: &document["components"]["schemas"],
        }
    }

    /// An example of a schema of this document.
    pub fn of_example(example: &'a Value, schema: &'a Value, document: &'a Value) -> Self {
        Self {
            value: example,
            role: Role::Example(schema),
            ..Self::of_document(document)
        }
    }

    fn child(self, name: &str, value: &'a Value) -> Self {
        let (parent, is_object) = (self.value, value.is_object());
        let schema = &parent["schema"];
        let role = match (self.role, name) {
            (Role::Document, "properties") if is_object => Role::Properties(parent),
            (Role::Document, "example") if schema.is_object() => Role::Example(schema),
            (Role::Document, "examples") if schema.is_object() && is_object => Role::Examples(schema),
            (Role::Examples(schema), _) => Role::NamedExample(schema),
            (Role::NamedExample(schema), "value") => Role::Example(schema),
            (Role::Example(schema), name) => {
                Role::Example(property(schema, name, self.schemas, MAX_DEPTH).unwrap_or(&Value::Null))
            }
            _ => Role::Document,
        };
        Self { value, role, ..self }
    }
}

impl Serialize for WireOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.value, self.role) {
            (Value::Object(fields), role) => {
                let names = match role {
                    Role::Properties(schema) => names(fields, schema, &Value::Null),
                    Role::Example(schema) => names(fields, schema, self.schemas),
                    _ => fields.keys().map(String::as_str).collect(),
                };
                let mut map = serializer.serialize_map(Some(names.len()))?;
                for name in names {
                    map.serialize_entry(name, &self.child(name, &fields[name]))?;
                }
                map.end()
            }
            (Value::Array(items), role) => {
                let role = match role {
                    Role::Example(schema) => Role::Example(&resolve(schema, self.schemas)["items"]),
                    _ => Role::Document,
                };
                serializer.collect_seq(items.iter().map(|value| WireOrder { value, role, ..*self }))
            }
            (value, _) => value.serialize(serializer),
        }
    }
}

/// The names of fields in the order of the wire.
pub fn names<'a>(fields: &'a Map<String, Value>, schema: &'a Value, schemas: &'a Value) -> Vec<&'a str> {
    let mut declared = Vec::new();
    collect_required(schema, fields, schemas, MAX_DEPTH, &mut declared);
    let is_present = |name: &&str| fields.contains_key(*name);
    let mut names: Vec<&str> = declared.into_iter().filter(is_present).collect();
    let others: Vec<&str> = fields
        .keys()
        .map(String::as_str)
        .filter(|name| !names.contains(name))
        .collect();
    names.extend(others);
    names
}

fn collect_required<'a>(
    schema: &'a Value,
    fields: &Map<String, Value>,
    schemas: &'a Value,
    left: usize,
    found: &mut Vec<&'a str>,
) {
    let schema = resolve(schema, schemas);
    if left == 0 {
        return;
    }
    for name in items(&schema["required"]).filter_map(Value::as_str) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    for part in items(&schema["allOf"]) {
        collect_required(part, fields, schemas, left - 1, found);
    }
    let has_all = |part: &&Value| {
        let mut names = fields.keys();
        names.all(|name| property(part, name, schemas, left - 1).is_some())
    };
    if let Some(part) = alternatives(schema).find(has_all) {
        collect_required(part, fields, schemas, left - 1, found);
    }
}

fn property<'a>(schema: &'a Value, name: &str, schemas: &'a Value, left: usize) -> Option<&'a Value> {
    let schema = resolve(schema, schemas);
    let own = schema["properties"].get(name);
    let mut parts = items(&schema["allOf"]).chain(alternatives(schema));
    own.or_else(|| parts.find_map(|part| property(part, name, schemas, left.checked_sub(1)?)))
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    items(&schema["oneOf"]).chain(items(&schema["anyOf"]))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn resolve<'a>(schema: &'a Value, schemas: &'a Value) -> &'a Value {
    let reference = schema["$ref"].as_str();
    let name = reference.and_then(|reference| reference.strip_prefix(SCHEMAS));
    name.map_or(schema, |name| &schemas[name])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_in_the_order_of_the_wire() {
        let order = json!({
            "required": ["order_id", "status", "items", "owner"],
            "properties": {
                "items": { "type": "array", "items": { "$ref": "#/components/schemas/Item" } },
                "note": {}, "order_id": {}, "owner": { "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Owner" }] },
                "status": {},
            },
        });
        let document = json!({
            "components": { "schemas": {
                "Item": { "allOf": [{ "required": ["product_id"], "properties": { "product_id": {} } }],
                    "required": ["quantity"], "properties": { "quantity": {} } },
                "Order": order,
                "Owner": { "required": ["name", "id"], "properties": { "name": {}, "id": {} } },
            } },
            "content": {
                "example": {
                    "note": 1, "items": [{ "product_id": "a", "quantity": 1 }], "status": "DELIVERED", "order_id": "ord_1",
                    "owner": { "id": 1, "name": "A" },
                },
                "schema": { "$ref": "#/components/schemas/Order" },
            },
            "named": {
                "examples": { "one": { "value": { "status": "PENDING", "order_id": "ord_2" } } },
                "schema": { "oneOf": [{ "$ref": "#/components/schemas/Item" }, { "$ref": "#/components/schemas/Order" }] },
            },
        });
        let text = serde_json::to_string(&WireOrder::of_document(&document)).unwrap();
        for expected in [
            r#""example":{"order_id":"ord_1","status":"DELIVERED","items":[{"quantity":1,"product_id":"a"}],"owner":{"name":"A","id":1},"note":1}"#,
            r#""examples":{"one":{"value":{"order_id":"ord_2","status":"PENDING"}}}"#,
            r#""properties":{"order_id":{},"status":{},"items":"#,
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), document);
    }
}
