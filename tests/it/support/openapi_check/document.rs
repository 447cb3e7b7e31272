//! A served document: which operation is meant, and what it says of an answer.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use hyper::Method;
use jsonschema::Validator;
use serde_json::{Value, json};
use vouchsafe_load::client::ApiResponse;

use super::body_of;
use super::strict::{reject_unknown_properties, reject_unknown_in_children};

/// Methods that a document may name.
const METHODS: [&str; 6] = ["get", "head", "put", "post", "patch", "delete"];

/// A document with its schemas closed.
pub(crate) struct Document {
    served: Value,
    /// What a schema may refer to.
    components: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// An operation: its name for people, and what is said of it.
pub(super) struct Operation<'a> {
    name: String,
    spec: &'a Value,
}

impl Document {
    /// The document that is served at this address.
    pub(super) fn fetch(address: SocketAddr) -> Self {
        let mut connection = TcpStream::connect(address).unwrap();
        let request = b"GET /openapi.json HTTP/1.1\r\nhost: vouchsafe.test\r\nconnection: close\r\n\r\n";
        connection.write_all(request).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Self::new(serde_json::from_str(body).unwrap())
    }

    fn new(served: Value) -> Self {
        let mut components = json!({ "schemas": served["components"]["schemas"] });
        let named = components["schemas"].as_object_mut().unwrap();
        named.values_mut().for_each(reject_unknown_in_children);
        Self {
            served,
            components,
            validators: Mutex::default(),
        }
    }

    /// The document as it is served.
    pub(crate) fn served(&self) -> &Value {
        &self.served
    }

    /// The template of a path; what is spelled out goes before what is a parameter.
    pub(super) fn find(&self, path: &str) -> Option<String> {
        let templates = self.served["paths"].as_object().unwrap().keys();
        let mut fitting: Vec<_> = templates.filter(|template| is_path_match(template, path)).collect();
        fitting.sort_by_key(|template| template.matches('{').count());
        fitting.first().map(|template| (*template).clone())
    }

    /// The methods of a template, as `Allow` lists them.
    pub(super) fn methods(&self, template: &str) -> String {
        let item = self.served["paths"][template].as_object().unwrap();
        let mut methods: Vec<_> = METHODS
            .iter()
            .filter(|method| item.contains_key(**method))
            .collect();
        methods.sort();
        let methods: Vec<_> = methods.iter().map(|method| method.to_uppercase()).collect();
        methods.join(", ")
    }

    /// What is said of a method of a template.
    pub(super) fn operation(&self, template: &str, method: &Method) -> Option<Operation<'_>> {
        let word = METHODS
            .iter()
            .find(|word| word.to_uppercase() == method.as_str())?;
        let spec = self.served["paths"][template].get(*word)?;
        let name = format!("{method} {template}");
        Some(Operation { name, spec })
    }

    /// The answer is one of those that the operation names.
    pub(super) fn assert_response(&self, operation: &Operation<'_>, answer: &ApiResponse) {
        let status = answer.status.as_u16();
        let place = format!("{} {status}", operation.name);
        let said = &operation.spec["responses"][status.to_string()];
        assert!(said.is_object(), "not described: {place}: {:?}", answer.body);
        self.assert_headers(&place, said, answer);
        let Some(contents) = said["content"].as_object() else {
            assert!(
                answer.body.is_empty(),
                "{place}: described without a body: {:?}",
                answer.body
            );
            return;
        };
        let media_type = answer.header("content-type").unwrap_or_default();
        let content = contents.get(media_type);
        let content =
            content.unwrap_or_else(|| panic!("{place}: not described: content-type {media_type:?}"));
        if media_type == "application/json" {
            let body = body_of(answer);
            self.assert_valid(&place, &content["schema"], &body);
            if let Some(code) = body["error"]["code"].as_str().filter(|_| status >= 400) {
                assert!(
                    content["examples"][code].is_object(),
                    "{place}: {code} is not described"
                );
            }
        }
    }

    /// The answer is this error, in the one form.
    pub(super) fn assert_error(&self, answer: &ApiResponse, code: &str) {
        assert_eq!(answer.error_code().as_deref(), Some(code), "{:?}", answer.body);
        assert!(answer.header("x-trace-id").is_some(), "{answer:?}");
        self.assert_valid(
            code,
            &json!({ "$ref": "#/components/schemas/Error" }),
            &body_of(answer),
        );
    }

    fn assert_headers(&self, place: &str, said: &Value, answer: &ApiResponse) {
        for (name, reference) in said["headers"].as_object().into_iter().flatten() {
            let pointer = reference["$ref"].as_str().unwrap().trim_start_matches('#');
            let header = self.served.pointer(pointer).unwrap();
            let Some(text) = answer.header(name) else {
                assert_ne!(header["required"], true, "{place}: no {name}");
                continue;
            };
            let value = match header["schema"]["type"].as_str() {
                Some("integer") => text.parse::<i64>().map_or(json!(text), Value::from),
                _ => json!(text),
            };
            self.assert_valid(&format!("{place}: {name}"), &header["schema"], &value);
        }
    }

    fn assert_valid(&self, place: &str, schema: &Value, value: &Value) {
        let validator = self.validator(schema);
        let wrong: Vec<_> = validator
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{place}: {wrong:#?}\nin {value:#}");
    }

    /// Made once for each schema: every answer asks.
    fn validator(&self, schema: &Value) -> Arc<Validator> {
        let mut known = self.validators.lock().unwrap();
        let make = || {
            let mut schema = schema.clone();
            reject_unknown_properties(&mut schema);
            schema["components"] = self.components.clone();
            let made = jsonschema::options().should_validate_formats(true).build(&schema);
            Arc::new(made.unwrap())
        };
        Arc::clone(known.entry(schema.to_string()).or_insert_with(make))
    }
}

/// Whether a path is one of a template.
fn is_path_match(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let part =
        |(wanted, found): (&&str, &&str)| wanted == found || (wanted.starts_with('{') && !found.is_empty());
    template.len() == path.len() && template.iter().zip(&path).all(part)
}
