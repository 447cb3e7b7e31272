//! Completeness checks of an OpenAPI document, used by the tests of both listeners.

mod generators;

use std::collections::BTreeSet;

use serde_json::Value;

/// Terms that must not leak from source comments into published descriptions.
const INTERNAL_TERMS: [&str; 7] = ["contract", "§", "spec part", "[`", "crate::", "`None`", "`Some`"];

/// Optional fields of responses; all others must be `required`.
const OPTIONAL_FIELDS: [&str; 8] = [
    "count",
    "details",
    "max_quantity",
    "replication_missing",
    "returned_vouchers",
    "secret",
    "stock",
    "stock_quarantined",
];

/// Response fields must be required unless listed in [`OPTIONAL_FIELDS`]. Schemas that forbid further fields
/// are requests.
fn assert_required(schemas: &Value) {
    for (name, schema) in schemas.as_object().unwrap() {
        let Some(properties) = schema["properties"].as_object() else {
            continue;
        };
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let missing: Vec<_> = properties
            .keys()
            .filter(|field| {
                !required.iter().any(|known| known == *field) && !OPTIONAL_FIELDS.contains(&field.as_str())
            })
            .collect();
        assert!(
            missing.is_empty() || schema["additionalProperties"] == false,
            "{name}: {missing:?}"
        );
    }
}

/// Every operation is described, and every example matches its schema.
pub(crate) fn assert_complete(document: &Value) {
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "operationId {id} is not unique");
            for text in ["summary", "description"] {
                assert!(operation[text].is_string(), "{method} {path}: {text}");
            }
            assert_eq!(
                operation["tags"].as_array().map(Vec::len),
                Some(1),
                "{method} {path}"
            );
            assert_parameters(path, operation);
            assert_responses(document, &format!("{method} {path}"), operation, method != "head");
        }
    }
    assert_objects_described("schemas", &document["components"]["schemas"]);
    assert_required(&document["components"]["schemas"]);
    assert_examples_of_webhooks(document);
    generators::assert_readable(document);
    for text in descriptions(document) {
        let internal = INTERNAL_TERMS.iter().find(|word| text.contains(**word));
        assert!(internal.is_none() && !text.is_empty(), "{internal:?} in: {text}");
    }
}

/// The document has exactly these operations, given as method and path.
pub(crate) fn assert_documented(document: &Value, operations: impl Iterator<Item = String>) {
    let paths = document["paths"].as_object().unwrap().iter();
    let documented = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().keys();
        methods.map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    assert_eq!(documented.collect::<BTreeSet<_>>(), operations.collect());
}

/// Each webhook has an example that matches its schema.
fn assert_examples_of_webhooks(document: &Value) {
    for (name, item) in document["webhooks"].as_object().into_iter().flatten() {
        assert_examples(document, name, &item["post"]["requestBody"]);
    }
}

/// The path parameters must be those of the path template.
fn assert_parameters(path: &str, operation: &Value) {
    let parameters = operation["parameters"].as_array().unwrap();
    let in_path: BTreeSet<_> = parameters
        .iter()
        .filter(|parameter| parameter["in"] == "path")
        .map(|parameter| format!("{{{}}}", parameter["name"].as_str().unwrap()))
        .collect();
    let template: BTreeSet<_> = path
        .split('/')
        .filter(|part| part.starts_with('{'))
        .map(str::to_owned)
        .collect();
    assert_eq!(in_path, template, "{path}");
}

fn assert_responses(document: &Value, operation_name: &str, operation: &Value, has_bodies: bool) {
    assert_examples(document, operation_name, &operation["requestBody"]);
    let responses = operation["responses"].as_object().unwrap();
    assert!(
        responses.keys().any(|status| status.starts_with('2')),
        "{operation_name}"
    );
    // The HTTP server responds to invalid HTTP without a body.
    let of_operation = responses
        .iter()
        .filter(|(_, response)| response["headers"].is_object());
    for (status, response) in of_operation {
        assert!(
            response["headers"]["X-Trace-ID"].is_object(),
            "{operation_name}: {status}"
        );
        assert_eq!(
            response["content"].is_object(),
            has_bodies && !["204", "304"].contains(&status.as_str()),
            "{operation_name}: {status}"
        );
        assert_examples(document, &format!("{operation_name}: {status}"), response);
    }
}

fn assert_examples(document: &Value, location: &str, body: &Value) {
    let Some(contents) = body["content"].as_object() else {
        return;
    };
    for content in contents.values() {
        let named = content["examples"]
            .as_object()
            .into_iter()
            .flat_map(|all| all.values());
        let examples: Vec<_> = content
            .get("example")
            .into_iter()
            .chain(named.map(|example| &example["value"]))
            .collect();
        assert!(!examples.is_empty(), "{location} has no example");
        let mut schema = content["schema"].clone();
        schema["components"] = document["components"].clone();
        let schema = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        for example in examples {
            let wrong: Vec<_> = schema
                .iter_errors(example)
                .map(|e| format!("{}: {e}", e.instance_path()))
                .collect();
            assert!(wrong.is_empty(), "{location}: {wrong:?}");
        }
    }
}

/// Every object schema must declare its properties.
fn assert_objects_described(location: &str, value: &Value) {
    match value {
        Value::Object(fields) => {
            let is_described = ["properties", "additionalProperties"]
                .iter()
                .any(|word| fields.contains_key(*word));
            assert!(
                fields.get("type") != Some(&Value::from("object")) || is_described,
                "{location}"
            );
            for (name, within) in fields {
                assert_objects_described(&format!("{location}.{name}"), within);
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| assert_objects_described(location, item)),
        _ => {}
    }
}

/// All descriptions in the document.
fn descriptions(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("description").and_then(Value::as_str);
            own.into_iter()
                .chain(fields.values().flat_map(descriptions))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(descriptions).collect(),
        _ => Vec::new(),
    }
}
