//! Rules for OpenAPI documents from which other people's tools generate clients.

use serde_json::{Value, json};

/// Names of schemas that hide a global of TypeScript or Python in generated code.
const RESERVED_NAMES: [&str; 7] = ["Date", "Error", "Map", "Number", "Object", "Response", "Set"];

/// Properties with types in generated clients: their values are final.
const STATUSES: [(&str, &str); 3] = [("Order", "status"), ("Payout", "status"), ("Webhook", "status")];

/// Paths without authentication.
const PUBLIC: [&str; 4] = ["/healthz", "/readyz", "/openapi.json", "/metrics"];

/// Query parameters of lists and the end of their pattern.
const CODES: [(&str, &str); 2] = [("currency", "{3}$"), ("country", "{2}$")];

/// Asserts that generators and linters read the document as it is meant.
pub(super) fn assert_readable(document: &Value) {
    assert_eq!(violations(document), Vec::<String>::new());
}

/// What tools stumble over, one line each.
fn violations(document: &Value) -> Vec<String> {
    let schemas = &document["components"]["schemas"];
    let mut found = Vec::new();
    let mut require = |is_met: bool, rule: String| {
        if !is_met {
            found.push(rule);
        }
    };
    require(
        document["info"]["license"]["identifier"].is_string(),
        "licence".to_owned(),
    );
    require(
        schemas["Money"]["format"] == "decimal",
        "format of Money".to_owned(),
    );
    for name in RESERVED_NAMES {
        require(schemas[name].is_null(), format!("a schema is named {name}"));
    }
    for (name, property) in STATUSES.iter().filter(|(name, _)| schemas[*name].is_object()) {
        let property = &schemas[*name]["properties"][*property];
        let reference = [&property["$ref"], &property["allOf"][0]["$ref"]]
            .into_iter()
            .find_map(Value::as_str);
        let status = reference.and_then(|reference| document.pointer(&reference[1..]));
        require(
            status.is_some_and(|status| status["enum"].is_array()),
            format!("{name}: open status"),
        );
    }
    for (name, item) in document["webhooks"].as_object().into_iter().flatten() {
        require(
            item["post"]["x-internal"] == true,
            format!("{name}: a client method"),
        );
    }
    let text = document.to_string();
    for kind in ["headers", "schemas"] {
        for (name, _) in document["components"][kind].as_object().into_iter().flatten() {
            let is_used = text.contains(&format!("\"#/components/{kind}/{name}\""));
            require(is_used, format!("{kind}/{name}: unused"));
        }
    }
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let is_public = PUBLIC.contains(&path.as_str());
            found.extend(
                operation_violations(operation, is_public).map(|rule| format!("{method} {path}: {rule}")),
            );
        }
    }
    collect_node_violations("", document, &mut found);
    found
}

fn operation_violations(operation: &Value, is_public: bool) -> impl Iterator<Item = String> {
    let requirements = operation["security"].as_array().map(Vec::len);
    let is_secured = requirements.is_some_and(|requirements| (requirements == 0) == is_public);
    let mut responses = operation["responses"].as_object().into_iter().flatten();
    let has_rejection = responses.any(|(status, _)| status.starts_with('4'));
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let of_parameters = parameters.filter_map(|parameter| {
        let name = parameter["name"].as_str()?;
        let schema = &parameter["schema"];
        let has_example = !parameter["example"].is_null() || !schema["examples"].is_null();
        let pattern = schema["pattern"].as_str().unwrap_or_default();
        let mut codes = CODES.iter().filter(|_| parameter["in"] == "query");
        let is_loose = codes.any(|(code, end)| *code == name && !pattern.ends_with(end));
        // A cursor belongs to one list and its filters: an example is invalid for all others.
        (is_loose || (name == "cursor" && has_example)).then(|| format!("parameter {name}"))
    });
    let of_operation = [(is_secured, "security"), (has_rejection, "no 4XX response")];
    let of_operation = of_operation.into_iter().filter(|(is_met, _)| !is_met);
    of_operation.map(|(_, rule)| rule.to_owned()).chain(of_parameters)
}

/// References have no siblings. A combination with null is that of one type.
fn collect_node_violations(location: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if fields.get("$ref").is_some_and(Value::is_string) && fields.len() > 1 {
                found.push(format!("{location}: siblings of $ref"));
            }
            let parts = fields.get("oneOf").and_then(Value::as_array);
            if parts.is_some_and(|parts| parts.len() > 2 && parts.contains(&json!({ "type": "null" }))) {
                found.push(format!("{location}: null in oneOf"));
            }
            for (name, child) in fields {
                collect_node_violations(&format!("{location}/{name}"), child, found);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_node_violations(location, item, found);
            }
        }
        _ => {}
    }
}

#[test]
fn document_that_tools_misread_is_reported() {
    let order = json!({ "properties": { "status": { "$ref": "#/components/schemas/OrderStatus" } } });
    let operation = |security: Value, parameters: Value| json!({ "get": { "security": security, "parameters": parameters, "responses": { "401": {} } } });
    let document = json!({
        "info": { "license": { "identifier": "MIT" } },
        "webhooks": { "order.created": { "post": { "x-internal": true } } },
        "paths": {
            "/healthz": operation(json!([]), json!([])),
            "/orders": operation(json!([{}]), json!([
                { "name": "cursor", "in": "query", "schema": {} },
                { "name": "currency", "in": "query", "schema": { "pattern": "^[A-Z]{3}$" } },
            ])),
            "used": ["#/components/schemas/Order", "#/components/schemas/Money"],
        },
        "components": { "schemas": {
            "Money": { "format": "decimal" }, "Order": order, "OrderStatus": { "enum": ["PENDING"] },
        } },
    });
    assert_readable(&document);
    for (pointer, value, rule) in [
        ("/info/license", json!({}), "licence"),
        (
            "/webhooks/order.created/post/x-internal",
            json!(false),
            "order.created: a client method",
        ),
        (
            "/paths/~1healthz/get/security",
            Value::Null,
            "get /healthz: security",
        ),
        ("/paths/~1orders/get/security", json!([]), "get /orders: security"),
        (
            "/paths/~1healthz/get/responses",
            json!({ "200": {} }),
            "get /healthz: no 4XX response",
        ),
        (
            "/paths/~1orders/get/parameters/0/schema",
            json!({ "examples": ["a"] }),
            "get /orders: parameter cursor",
        ),
        (
            "/paths/~1orders/get/parameters/1/schema",
            json!({}),
            "get /orders: parameter currency",
        ),
        ("/paths/used/0", json!(""), "schemas/Order: unused"),
        (
            "/components/schemas/Money/format",
            json!("double"),
            "format of Money",
        ),
        ("/components/schemas/OrderStatus", json!({}), "Order: open status"),
        (
            "/paths/used/1",
            json!({ "$ref": "#/components/schemas/Money", "description": "A price." }),
            "/paths/used: siblings of $ref",
        ),
        (
            "/paths/~1healthz/get/responses/401",
            json!({ "oneOf": [{ "type": "null" }, { "type": "string" }, { "type": "integer" }] }),
            "/paths//healthz/get/responses/401: null in oneOf",
        ),
    ] {
        let mut misread = document.clone();
        *misread.pointer_mut(pointer).unwrap() = value;
        assert_eq!(violations(&misread), [rule], "{pointer}");
    }
    let mut misread = document;
    misread["components"]["schemas"]["Error"] =
        json!({ "properties": { "error": { "$ref": "#/components/schemas/Error" } } });
    assert_eq!(violations(&misread), ["a schema is named Error"]);
}
