//! Reading an OpenAPI document: what is missing is empty, and no reference leads round in a circle.

use serde_json::Value;

use crate::http::pages::markdown::anchor_of;

/// The methods of a path, in the order in which they are shown.
const METHODS: [&str; 8] = [
    "get", "post", "put", "patch", "delete", "head", "options", "trace",
];

/// How many references are followed from one place: a document has one or two, one in a circle has no end.
const MAX_REFERENCES: usize = 8;

/// Where routes without a tag are shown.
const UNTAGGED: &str = "Other routes";

/// The document.
pub(super) struct Document<'a> {
    root: &'a Value,
}

/// A route of the document.
pub(super) struct Operation<'a> {
    pub(super) method: &'static str,
    pub(super) path: &'a str,
    /// What all methods of the path share.
    pub(super) shared: &'a Value,
    pub(super) value: &'a Value,
}

/// A group of routes.
pub(super) struct Tag<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root }
    }

    /// What is at a path such as `components/schemas`; null where nothing is.
    pub(super) fn get(&self, path: &str) -> &'a Value {
        self.root.pointer(&format!("/{path}")).unwrap_or(&Value::Null)
    }

    /// The text at a JSON pointer.
    pub(super) fn at(&self, pointer: &str) -> &'a str {
        self.root
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// What a value is, where it is a reference.
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

    /// Every route, path by path.
    pub(super) fn operations(&self) -> Vec<Operation<'a>> {
        let of_path = |(path, shared): (&'a str, &'a Value)| {
            let present = METHODS.into_iter().filter(|method| shared[*method].is_object());
            present.map(move |method| Operation {
                method,
                path,
                shared,
                value: &shared[method],
            })
        };
        entries(self.get("paths")).flat_map(of_path).collect()
    }

    /// The groups that have a route: first those that the document names, in its order.
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
    /// The group that it is shown in: the first of its tags.
    pub(super) fn tag(&self) -> &'a str {
        self.value["tags"][0].as_str().unwrap_or(UNTAGGED)
    }

    /// Where it is on the page.
    pub(super) fn anchor(&self) -> String {
        anchor_of(&format!("{}{}", self.method, self.path.replace('/', "-")))
    }
}

/// The entries of an object; none of anything else.
pub(super) fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(name, value)| (name.as_str(), value))
}

/// The items of an array; none of anything else.
pub(super) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The text of a field; empty where there is none.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
