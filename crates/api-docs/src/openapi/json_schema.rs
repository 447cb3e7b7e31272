//! JSON Schema files (draft 2020-12) of the bodies and events in an OpenAPI document, one file each, without
//! outside references.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{json_text, references};
use crate::TextFile;

/// Path of the files.
pub const ROOT: &str = "/schemas/";

/// The files by name, with an index under the empty name.
pub type Files = BTreeMap<String, TextFile>;

/// Dialect of the files.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

const SCHEMAS: &str = "#/components/schemas/";

/// Formats of JSON Schema that our types use. Validators reject formats that they do not know.
const FORMATS: [&str; 3] = ["date", "date-time", "uri"];

/// Suffix of the schemas of pages. Their entries have files.
const PAGE: &str = "List";

/// The files of a document.
pub fn files(document: &Value) -> Files {
    let bodies = operations(&document["paths"]).flat_map(|(_, operation)| {
        let responses = operation["responses"].as_object().into_iter().flatten();
        let responses = responses.map(|(_, response)| response);
        responses.chain([&operation["requestBody"]]).filter_map(body_name)
    });
    let bodies = bodies.map(|name| name.strip_suffix(PAGE).unwrap_or(name));
    let bodies = bodies.map(|name| (format!("{}.json", kebab_case(name)), name));
    let events = operations(&document["webhooks"]).filter_map(|(kind, operation)| {
        Some((format!("{kind}.json"), body_name(&operation["requestBody"])?))
    });
    let named: BTreeMap<String, &str> = bodies.chain(events).collect();
    let mut schemas: BTreeMap<String, Value> = named
        .into_iter()
        .map(|(file, name)| (file.clone(), schema(document, name, &file)))
        .collect();
    let index = schemas.values().map(|schema| {
        json!({ "$id": schema["$id"], "title": schema["title"], "description": schema["description"] })
    });
    let index = json!({ "schemas": index.collect::<Vec<_>>() });
    schemas.insert(String::new(), index);
    let files = schemas.into_iter().map(|(file, schema)| {
        let body = json_text::compact(&schema);
        (file, TextFile::new("application/schema+json", body))
    });
    files.collect()
}

/// The operations of a map of paths or webhooks, with its keys.
fn operations(paths: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let paths = paths.as_object().into_iter().flatten();
    paths.flat_map(|(key, item)| {
        let operations = item.as_object().into_iter().flatten();
        operations.map(move |(_, operation)| (key, operation))
    })
}

/// The named schema of a JSON body.
fn body_name(body: &Value) -> Option<&str> {
    let schema = &body["content"]["application/json"]["schema"];
    schema["$ref"].as_str()?.strip_prefix(SCHEMAS)
}

fn kebab_case(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}

fn schema(document: &Value, name: &str, file: &str) -> Value {
    let schemas = &document["components"]["schemas"];
    let used = references::reachable(document, [&schemas[name]]);
    let used = used
        .iter()
        .filter_map(|reference| reference.strip_prefix(SCHEMAS));
    let definitions: Map<_, _> = used
        .map(|used| (used.to_owned(), plain(&schemas[used])))
        .collect();
    let mut schema = plain(&schemas[name]);
    schema["$schema"] = DIALECT.into();
    schema["$id"] = format!("{ROOT}{file}").into();
    schema["title"] = name.into();
    if !definitions.is_empty() {
        schema["$defs"] = definitions.into();
    }
    schema
}

/// The schema without the keywords and formats of OpenAPI.
fn plain(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(keyword, value)| {
                let value = match keyword.as_str() {
                    "discriminator" => return None,
                    "format" if value.is_string() && !FORMATS.iter().any(|format| value == format) => {
                        return None;
                    }
                    "x-extensible-enum" => return Some(("examples".to_owned(), value.clone())),
                    "$ref" => value.as_str()?.replace(SCHEMAS, "#/$defs/").into(),
                    _ => plain(value),
                };
                Some((keyword.clone(), value))
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}
