//! Is a document whole? What both listeners' tests ask of theirs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Words of the people who make the service, which mean nothing to those who use it.
const INTERNAL: [&str; 7] = ["contract", "§", "spec part", "[`", "crate::", "`None`", "`Some`"];

/// Parts of a document that are called by their methods.
const METHODS: [&str; 6] = ["get", "head", "put", "post", "patch", "delete"];

/// Fields of answers that are not always there.
const SOMETIMES: [&str; 10] = [
    "by",
    "delivered",
    "details",
    "failed",
    "pending",
    "pending_reason",
    "reason",
    "refund",
    "secret",
    "stock",
];

/// What is documented: the methods of each path.
pub(crate) fn documented(document: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let paths = document["paths"].as_object().unwrap();
    let methods = |item: &Value| {
        let item = item.as_object().unwrap();
        item.keys()
            .filter(|key| METHODS.contains(&key.as_str()))
            .map(|key| key.to_uppercase())
            .collect()
    };
    paths
        .iter()
        .map(|(path, item)| (path.clone(), methods(item)))
        .collect()
}

/// What route tables have. The pages at `/docs` are not among them: they are for people.
pub(crate) fn routed(tables: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let routes: BTreeMap<_, _> = tables.iter().flat_map(|table| routes_of(table)).collect();
    assert!(
        routes.len() > 8,
        "route tables are no longer written as they are read here"
    );
    routes
}

/// Every `resource("path", "METHODS")` in a text, below the scope that stands before it.
fn routes_of(table: &str) -> BTreeMap<String, BTreeSet<String>> {
    let code = table.split("fn resource(").next().unwrap();
    let quoted = |text: &str, which: usize| text.split('"').nth(2 * which + 1).unwrap_or_default().to_owned();
    let mut routes = BTreeMap::new();
    for (index, scope) in code.split("web::scope(").enumerate() {
        let prefix = if index == 0 {
            String::new()
        } else {
            quoted(scope, 0)
        };
        for call in scope.split("resource(").skip(1) {
            let methods = quoted(call, 1).split(", ").map(str::to_owned).collect();
            routes.insert(format!("{prefix}{}", quoted(call, 0)), methods);
        }
    }
    routes
}

/// What an answer holds is always there, unless it is known not to be. What refuses further fields is of requests.
fn assert_required(schemas: &Value) {
    for (name, schema) in schemas.as_object().unwrap() {
        let Some(properties) = schema["properties"].as_object() else {
            continue;
        };
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let missing: Vec<_> = properties
            .keys()
            .filter(|field| {
                !required.iter().any(|known| known == *field) && !SOMETIMES.contains(&field.as_str())
            })
            .collect();
        assert!(
            missing.is_empty() || schema["additionalProperties"] == false,
            "{name}: {missing:?}"
        );
    }
}

/// Every operation says what it is, and every example is one.
pub(crate) fn assert_whole(document: &Value) {
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
            for said in ["summary", "description"] {
                assert!(operation[said].is_string(), "{method} {path}: {said}");
            }
            assert_eq!(
                operation["tags"].as_array().map(Vec::len),
                Some(1),
                "{method} {path}"
            );
            assert_parameters(path, operation);
            assert_answers(document, &format!("{method} {path}"), operation, method != "head");
        }
    }
    assert_formed("schemas", &document["components"]["schemas"]);
    assert_required(&document["components"]["schemas"]);
    for said in descriptions(document) {
        let internal = INTERNAL.iter().find(|word| said.contains(**word));
        assert!(internal.is_none() && !said.is_empty(), "{internal:?} in: {said}");
    }
}

/// The path's parameters are those of its template, and every parameter has an example or a closed range.
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

fn assert_answers(document: &Value, operation_name: &str, operation: &Value, has_bodies: bool) {
    assert_examples(document, operation_name, &operation["requestBody"]);
    let answers = operation["responses"].as_object().unwrap();
    assert!(
        answers.keys().any(|status| status.starts_with('2')),
        "{operation_name}"
    );
    for (status, answer) in answers {
        assert!(
            answer["headers"]["X-Trace-ID"].is_object(),
            "{operation_name}: {status}"
        );
        assert_eq!(
            answer["content"].is_object(),
            has_bodies && !["204", "304"].contains(&status.as_str()),
            "{operation_name}: {status}"
        );
        assert_examples(document, &format!("{operation_name}: {status}"), answer);
    }
}

fn assert_examples(document: &Value, place: &str, body: &Value) {
    let Some(contents) = body["content"].as_object() else {
        return;
    };
    for content in contents.values() {
        let several = content["examples"]
            .as_object()
            .into_iter()
            .flat_map(|all| all.values());
        let examples: Vec<_> = content
            .get("example")
            .into_iter()
            .chain(several.map(|example| &example["value"]))
            .collect();
        assert!(!examples.is_empty(), "{place}: no example");
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
            assert!(wrong.is_empty(), "{place}: {wrong:?}");
        }
    }
}

/// No object goes without saying what is in it.
fn assert_formed(place: &str, value: &Value) {
    match value {
        Value::Object(fields) => {
            let formed = ["properties", "additionalProperties"]
                .iter()
                .any(|word| fields.contains_key(*word));
            assert!(
                fields.get("type") != Some(&Value::from("object")) || formed,
                "{place}"
            );
            for (name, within) in fields {
                assert_formed(&format!("{place}.{name}"), within);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| assert_formed(place, item)),
        _ => {}
    }
}

/// Every description anywhere.
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
