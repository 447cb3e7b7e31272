//! What the console's pages use, compared with the OpenAPI document of the operators' listener.

use serde_json::Value;
use vouchsafe_console::{ApiUse, Place, api_uses};
use vouchsafe_test_harness::Listener;

/// The property of an object, or of the entries of a list.
fn property<'a>(document: &'a Value, schema: &'a Value, name: &str) -> Option<&'a Value> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#'))?;
        return property(document, target, name);
    }
    if let Some(found) = schema["properties"].get(name) {
        return Some(found);
    }
    // The data of an event has fields that only its type determines.
    if schema["additionalProperties"] == true && schema["properties"].is_null() {
        return Some(schema);
    }
    let parts = ["allOf", "anyOf", "oneOf"]
        .iter()
        .flat_map(|key| schema[*key].as_array().into_iter().flatten());
    parts
        .chain(schema.get("items"))
        .find_map(|part| property(document, part, name))
}

fn has_field(document: &Value, schema: &Value, path: &str) -> bool {
    let mut schema = schema;
    path.split('.')
        .all(|name| match property(document, schema, name) {
            Some(found) => {
                schema = found;
                true
            }
            None => false,
        })
}

fn is_documented(document: &Value, used: &ApiUse) -> bool {
    let paths = document["paths"].as_object().into_iter().flatten();
    let mut operations = paths.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    let found = operations.find(|(_, operation)| operation["operationId"] == used.operation);
    let Some((_, operation)) = found else {
        return false;
    };
    let content = |body: &Value| body["content"]["application/json"]["schema"].clone();
    match used.place {
        Place::Query => {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            parameters
                .filter(|parameter| parameter["in"] == "query")
                .any(|parameter| parameter["name"] == used.name)
        }
        Place::Response => has_field(document, &content(&operation["responses"]["200"]), &used.name),
    }
}

#[test]
fn pages_use_documented_parameters_and_fields() {
    let document = Listener::Operator.document().served();
    let uses = api_uses();
    assert!(uses.len() > 200, "{}", uses.len());
    let unknown: Vec<_> = uses
        .iter()
        .filter(|used| !is_documented(document, used))
        .map(|used| format!("{used:?}"))
        .collect();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn renamed_field_or_parameter_is_found() {
    let document = Listener::Operator.document().served();
    let uses = api_uses();
    let of = |place| uses.iter().find(|used| used.place == place).unwrap();
    for place in [Place::Query, Place::Response] {
        let mut renamed = of(place).clone();
        assert!(is_documented(document, &renamed), "{renamed:?}");
        renamed.name.push('x');
        assert!(!is_documented(document, &renamed), "{renamed:?}");
    }
}
