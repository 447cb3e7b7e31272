//! Served OpenAPI document: finds the operation of a request and validates its response.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use hyper::Method;
use jsonschema::Validator;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use super::strict::{reject_unknown_in_children, reject_unknown_properties};
use crate::response::json_of;

const METHODS: [&str; 6] = ["get", "head", "put", "post", "patch", "delete"];

/// A document whose schemas reject undocumented properties.
pub struct Document {
    served: Value,
    /// Target of schema references.
    components: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

pub(super) struct Operation<'a> {
    name: String,
    spec: &'a Value,
}

impl Document {
    pub(super) fn fetch(address: SocketAddr) -> Self {
        let mut connection = TcpStream::connect(address).unwrap();
        let request = b"GET /openapi.json HTTP/1.1\r\nhost: vouchsafe.test\r\nconnection: close\r\n\r\n";
        connection.write_all(request).unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Self::new(serde_json::from_str(body).unwrap())
    }

    fn new(mut served: Value) -> Self {
        add_server_paths(&mut served);
        let mut components = json!({ "schemas": served["components"]["schemas"] });
        let named = components["schemas"].as_object_mut().unwrap();
        named.values_mut().for_each(reject_unknown_in_children);
        Self {
            served,
            components,
            validators: Mutex::default(),
        }
    }

    /// The document, with whole paths.
    pub fn served(&self) -> &Value {
        &self.served
    }

    /// Returns the path template that matches; literal segments take precedence over parameters.
    pub(super) fn find(&self, path: &str) -> Option<String> {
        let templates = self.served["paths"].as_object().unwrap().keys();
        let mut fitting: Vec<_> = templates
            .filter(|template| is_path_match(template, path))
            .collect();
        fitting.sort_by_key(|template| template.matches('{').count());
        fitting.first().map(|template| (*template).clone())
    }

    /// Returns the methods of a template in the format of the `Allow` header.
    pub(super) fn methods(&self, template: &str) -> String {
        let item = self.served["paths"][template].as_object().unwrap();
        // Reads of partners serve HEAD like GET, except that of codes, which is signed.
        let security = &self.served["paths"][template]["get"]["security"][0];
        let has_head = security["ApiKey"].is_array() && security["Signature"].is_null();
        let mut methods: Vec<_> = METHODS
            .iter()
            .filter(|method| item.contains_key(**method) || (has_head && **method == "head"))
            .collect();
        methods.sort();
        let methods: Vec<_> = methods.iter().map(|method| method.to_uppercase()).collect();
        methods.join(", ")
    }

    pub(super) fn operation(&self, template: &str, method: &Method) -> Option<Operation<'_>> {
        let name = METHODS
            .iter()
            .find(|name| name.to_uppercase() == method.as_str())?;
        let item = &self.served["paths"][template];
        let spec = item.get(*name)?;
        let name = format!("{method} {template}");
        Some(Operation { name, spec })
    }

    /// Asserts that the operation documents the response.
    pub(super) fn assert_response(&self, operation: &Operation<'_>, response: &ApiResponse) {
        let status = response.status.as_u16();
        let context = format!("{} {status}", operation.name);
        let spec = &operation.spec["responses"][status.to_string()];
        assert!(
            spec.is_object(),
            "undocumented response: {context}: {:?}",
            response.body
        );
        self.assert_headers(&context, spec, response);
        let Some(contents) = spec["content"].as_object() else {
            assert!(
                response.body.is_empty(),
                "{context}: the document has no body: {:?}",
                response.body
            );
            return;
        };
        let media_type = response.header("content-type").unwrap_or_default();
        let content = contents.get(media_type);
        let content =
            content.unwrap_or_else(|| panic!("{context}: undocumented content-type {media_type:?}"));
        if media_type == "application/json" {
            let body = json_of(response);
            self.assert_valid(&context, &content["schema"], &body);
            self.assert_events(&context, &body["data"]);
            if let Some(code) = body["error"]["code"].as_str().filter(|_| status >= 400) {
                assert!(
                    content["examples"][code].is_object(),
                    "{context}: undocumented error code {code}"
                );
            }
        }
    }

    /// Asserts that each event of a list has the schema of its type; that of the list permits any data.
    fn assert_events(&self, context: &str, entries: &Value) {
        for event in entries
            .as_array()
            .into_iter()
            .flatten()
            .filter(|entry| entry["event_id"].is_string())
        {
            let webhook = event["event"]
                .as_str()
                .map(|kind| &self.served["webhooks"][kind]["post"]);
            let Some(webhook) = webhook.filter(|webhook| webhook.is_object() && event["data"].is_object())
            else {
                continue;
            };
            let schema = &webhook["requestBody"]["content"]["application/json"]["schema"];
            self.assert_valid(context, schema, event);
        }
    }

    /// Asserts that the response is this error in the standard format.
    pub(super) fn assert_error(&self, response: &ApiResponse, code: &str) {
        assert_eq!(
            response.error_code().as_deref(),
            Some(code),
            "{:?}",
            response.body
        );
        assert!(response.header("x-trace-id").is_some(), "{response:?}");
        self.assert_valid(
            code,
            &json!({ "$ref": "#/components/schemas/ErrorResponse" }),
            &json_of(response),
        );
    }

    fn assert_headers(&self, context: &str, spec: &Value, response: &ApiResponse) {
        for (name, reference) in spec["headers"].as_object().into_iter().flatten() {
            let pointer = reference["$ref"].as_str().unwrap().trim_start_matches('#');
            let header = self.served.pointer(pointer).unwrap();
            let Some(text) = response.header(name) else {
                assert_ne!(header["required"], true, "{context}: header {name} is missing");
                continue;
            };
            let value = match header["schema"]["type"].as_str() {
                Some("integer") => text.parse::<i64>().map_or(json!(text), Value::from),
                _ => json!(text),
            };
            self.assert_valid(&format!("{context}: {name}"), &header["schema"], &value);
        }
    }

    fn assert_valid(&self, context: &str, schema: &Value, value: &Value) {
        let validator = self.validator(schema);
        let errors: Vec<_> = validator
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{context}: {errors:#?}\nin {value:#}");
    }

    /// Compiles each schema once, since every response needs one.
    fn validator(&self, schema: &Value) -> Arc<Validator> {
        let mut validators = self.validators.lock().unwrap();
        let compile = || {
            let mut schema = schema.clone();
            reject_unknown_properties(&mut schema);
            schema["components"] = self.components.clone();
            let validator = jsonschema::options().should_validate_formats(true).build(&schema);
            Arc::new(validator.unwrap())
        };
        Arc::clone(validators.entry(schema.to_string()).or_insert_with(compile))
    }
}

/// Puts the path of its server before each path.
fn add_server_paths(document: &mut Value) {
    let Value::Object(paths) = document["paths"].take() else {
        panic!("the document has no paths")
    };
    let whole = paths.iter().map(|(path, item)| {
        let own = item
            .as_object()
            .unwrap()
            .values()
            .find_map(|operation| operation["servers"][0]["url"].as_str());
        let server = own
            .or(document["servers"][0]["url"].as_str())
            .unwrap()
            .trim_end_matches('/');
        (format!("{server}{path}"), item.clone())
    });
    let whole: serde_json::Map<_, _> = whole.collect();
    document["paths"] = whole.into();
}

fn is_path_match(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let part = |(expected, found): (&&str, &&str)| {
        expected == found || (expected.starts_with('{') && !found.is_empty())
    };
    template.len() == path.len() && template.iter().zip(&path).all(part)
}
