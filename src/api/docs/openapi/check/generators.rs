//! Rules for OpenAPI documents from which other people's tools generate clients.

use serde_json::{Value, json};

/// Names of schemas that hide a global of TypeScript or Python in generated code.
const RESERVED_NAMES: [&str; 7] = ["Date", "Error", "Map", "Number", "Object", "Response", "Set"];

/// Properties whose values are final: generated clients have types for them.
const STATUSES: [(&str, &str); 3] = [("Order", "status"), ("Payout", "status"), ("Webhook", "status")];

/// Paths without authentication.
const PUBLIC: [&str; 4] = ["/healthz", "/readyz", "/openapi.json", "/metrics"];

/// Asserts what generators and linters stumbled over.
pub(super) fn assert_readable(document: &Value) {
    assert!(document["info"]["license"]["identifier"].is_string());
    let schemas = &document["components"]["schemas"];
    for name in RESERVED_NAMES {
        assert!(schemas[name].is_null(), "a schema is named {name}");
    }
    assert_nodes("", document);
    assert_components_used(document);
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert_operation(
                &format!("{method} {path}"),
                PUBLIC.contains(&path.as_str()),
                operation,
            );
        }
    }
    for (name, item) in document["webhooks"].as_object().into_iter().flatten() {
        assert_eq!(item["post"]["x-internal"], true, "{name}");
    }
    assert_eq!(schemas["Money"]["format"], "decimal");
    for (name, property) in STATUSES.iter().filter(|(name, _)| schemas[*name].is_object()) {
        let property = &schemas[*name]["properties"][*property];
        let reference = property["$ref"]
            .as_str()
            .or_else(|| property["allOf"][0]["$ref"].as_str());
        let status = document.pointer(&reference.unwrap()[1..]).unwrap();
        assert!(status["enum"].is_array(), "{name}: {status}");
    }
}

fn assert_operation(name: &str, is_public: bool, operation: &Value) {
    let requirements = operation["security"].as_array().unwrap();
    assert_eq!(requirements.is_empty(), is_public, "{name}: security");
    let responses = operation["responses"].as_object().unwrap();
    assert!(
        responses.keys().any(|status| status.starts_with('4')),
        "{name} has no 4XX response"
    );
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let is_cursor = parameter["name"] == "cursor";
        let has_example = !parameter["example"].is_null() || !parameter["schema"]["examples"].is_null();
        assert!(
            !is_cursor || !has_example,
            "{name}: no example cursor is valid for another list"
        );
        for (filter, pattern) in [("currency", "{3}$"), ("country", "{2}$")] {
            let found = parameter["schema"]["pattern"].as_str().unwrap_or_default();
            let is_filter = parameter["name"] == filter && parameter["in"] == "query";
            assert!(!is_filter || found.ends_with(pattern), "{name}: {parameter}");
        }
    }
}

/// Asserts that references have no siblings and combinations of several types no null.
fn assert_nodes(location: &str, value: &Value) {
    match value {
        Value::Object(fields) => {
            let is_reference = fields.get("$ref").is_some_and(Value::is_string);
            assert!(!is_reference || fields.len() == 1, "{location}: siblings of $ref");
            let parts = fields.get("oneOf").and_then(Value::as_array);
            let has_null = parts.is_some_and(|parts| parts.contains(&json!({ "type": "null" })));
            assert!(
                !has_null || parts.map(Vec::len) == Some(2),
                "{location}: null in oneOf"
            );
            for (name, child) in fields {
                assert_nodes(&format!("{location}/{name}"), child);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| assert_nodes(location, item)),
        _ => {}
    }
}

fn assert_components_used(document: &Value) {
    let text = document.to_string();
    for kind in ["headers", "schemas"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            let reference = format!("\"#/components/{kind}/{name}\"");
            assert!(text.contains(&reference), "{reference} is unused");
        }
    }
}
