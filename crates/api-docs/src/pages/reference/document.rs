//! Reader of an OpenAPI document: missing values are empty, and cyclic references end.

use std::collections::BTreeSet;

use maud::Markup;
use serde_json::Value;

use crate::pages::layout::href;
use crate::pages::markdown::{self, CodeLinks, anchor_of};

/// HTTP methods in display order.
const METHODS: [&str; 8] = [
    "get", "post", "put", "patch", "delete", "head", "options", "trace",
];

/// Maximum chain of references, against cycles. Real documents have one or two.
const MAX_REFERENCES: usize = 8;

/// Group for operations without a tag.
const UNTAGGED: &str = "Other routes";

/// Accessor for an OpenAPI document.
pub(super) struct Document<'a> {
    root: &'a Value,
    links: &'a CodeLinks,
}

pub(super) struct Operation<'a> {
    pub(super) method: &'static str,
    /// Path below its server.
    pub(super) path: &'a str,
    /// Path of the server, empty at the root.
    pub(super) server: &'a str,
    /// The path item, with what all methods share.
    pub(super) shared: &'a Value,
    pub(super) value: &'a Value,
}

/// A response of an operation.
pub(super) struct Response<'a> {
    pub(super) status: &'a str,
    pub(super) value: &'a Value,
}

/// A group of operations.
pub(super) struct Tag<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Value, links: &'a CodeLinks) -> Self {
        Self { root, links }
    }

    /// Renders Markdown of the document.
    pub(super) fn prose(&self, text: &str) -> Markup {
        markdown::render(text, self.links, &|file| Some(href(file)))
    }

    /// The page that explains this code.
    pub(super) fn link(&self, code: &str) -> Option<&'a str> {
        self.links.get(code).map(String::as_str)
    }

    /// The whole document.
    pub(super) const fn root(&self) -> &'a Value {
        self.root
    }

    /// The value at a path such as `components/schemas`, or null.
    pub(super) fn get(&self, path: &str) -> &'a Value {
        self.root.pointer(&format!("/{path}")).unwrap_or(&Value::Null)
    }

    /// The text at a JSON pointer, or an empty text.
    pub(super) fn text_at(&self, pointer: &str) -> &'a str {
        self.root
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Follows `$ref`. Null for a dangling or cyclic reference.
    pub(super) fn resolve(&self, value: &'a Value) -> &'a Value {
        let mut found = value;
        for _ in 0..MAX_REFERENCES {
            let Some(reference) = found["$ref"].as_str() else {
                return found;
            };
            let target = reference
                .strip_prefix('#')
                .and_then(|pointer| self.root.pointer(pointer));
            found = target.unwrap_or(&Value::Null);
        }
        &Value::Null
    }

    /// Names of the schemas that bodies of requests consist of.
    pub(super) fn request_schemas(&self) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        for operation in self.operations() {
            self.collect_schemas(&operation.value["requestBody"], &mut found);
        }
        found
    }

    fn collect_schemas(&self, value: &'a Value, found: &mut BTreeSet<&'a str>) {
        if let Some(reference) = value["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap_or_default();
            if found.insert(name) {
                self.collect_schemas(self.resolve(value), found);
            }
        }
        match value {
            Value::Object(fields) => fields
                .values()
                .for_each(|field| self.collect_schemas(field, found)),
            Value::Array(parts) => parts.iter().for_each(|part| self.collect_schemas(part, found)),
            _ => {}
        }
    }

    /// All operations, grouped by path.
    pub(super) fn operations(&self) -> Vec<Operation<'a>> {
        self.operations_of("paths")
    }

    /// The requests that the service sends: the path of each is the name of its event.
    pub(super) fn webhooks(&self) -> Vec<Operation<'a>> {
        self.operations_of("webhooks")
    }

    fn operations_of(&self, field: &str) -> Vec<Operation<'a>> {
        let of_path = |(path, shared): (&'a str, &'a Value)| {
            let present = METHODS.into_iter().filter(|method| shared[*method].is_object());
            present.map(move |method| Operation {
                method,
                path,
                server: self.server_of(&shared[method]),
                shared,
                value: &shared[method],
            })
        };
        entries(self.get(field)).flat_map(of_path).collect()
    }

    /// The path of an operation's first server, else of the document's.
    fn server_of(&self, operation: &'a Value) -> &'a str {
        let own = operation["servers"][0]["url"].as_str();
        own.unwrap_or_else(|| self.text_at("/servers/0/url"))
            .trim_end_matches('/')
    }

    /// The responses of an operation, in the order of their status.
    pub(super) fn responses(&self, operation: &Operation<'a>) -> impl Iterator<Item = Response<'a>> {
        entries(&operation.value["responses"]).map(|(status, response)| Response {
            status,
            value: self.resolve(response),
        })
    }

    /// The parameters of an operation, those of its path first.
    pub(super) fn parameters(&self, operation: &Operation<'a>) -> Vec<&'a Value> {
        let shared = items(&operation.shared["parameters"]);
        let all = shared.chain(items(&operation.value["parameters"]));
        all.map(|parameter| self.resolve(parameter)).collect()
    }

    /// The security requirements of an operation.
    pub(super) fn security(&self, operation: &Operation<'a>) -> &'a Value {
        let own = &operation.value["security"];
        if own.is_null() { self.get("security") } else { own }
    }

    /// The tags with at least one operation: first those declared in the document, in its order.
    pub(super) fn tags(&self, operations: &[Operation<'a>]) -> Vec<Tag<'a>> {
        let named = items(self.get("tags")).map(|tag| Tag {
            name: text(tag, "name"),
            description: text(tag, "description"),
        });
        let mut tags: Vec<Tag<'a>> = named
            .filter(|tag| operations.iter().any(|operation| operation.tag() == tag.name))
            .collect();
        for operation in operations {
            let name = operation.tag();
            if !tags.iter().any(|tag| tag.name == name) {
                tags.push(Tag {
                    name,
                    description: "",
                });
            }
        }
        tags
    }
}

impl<'a> Operation<'a> {
    /// The first tag, under which the page shows the operation.
    pub(super) fn tag(&self) -> &'a str {
        self.value["tags"][0].as_str().unwrap_or(UNTAGGED)
    }

    /// The summary, or else the path.
    pub(super) fn name(&self) -> &'a str {
        self.value["summary"].as_str().unwrap_or(self.path)
    }

    /// Method and path, as texts name the operation.
    pub(super) fn request_line(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), self.path)
    }

    /// The `operationId`, or else a name made from method and path.
    pub(super) fn id(&self) -> String {
        let id = self.value["operationId"].as_str();
        id.map_or_else(|| self.anchor(), ToOwned::to_owned)
    }

    /// HTML id of the operation.
    pub(super) fn anchor(&self) -> String {
        anchor_of(&format!("{}{}", self.method, self.path.replace('/', "-")))
    }
}

/// The entries of an object, none for any other value.
pub(super) fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(name, value)| (name.as_str(), value))
}

/// The items of an array, none for any other value.
pub(super) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The text of a field, or an empty text.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
