//! Schema of a request body, from the type that the API parses.

use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};
use vouchsafe_wire::schema::non_null;

/// Schema of a request body, with the schemas that it names.
pub(crate) struct BodySchema {
    root: Value,
    named: Vec<(String, RefOr<Schema>)>,
}

/// A field of an object.
pub(crate) struct Property {
    pub(crate) schema: Value,
    pub(crate) description: String,
    pub(crate) is_required: bool,
    pub(crate) is_nullable: bool,
}

impl BodySchema {
    pub(crate) fn of<T: ToSchema>() -> Self {
        let mut named = Vec::new();
        T::schemas(&mut named);
        Self {
            root: as_json(&T::schema()),
            named,
        }
    }

    /// The field at a path of names.
    pub(crate) fn property(&self, path: &str) -> Option<Property> {
        let mut object = self.resolve(&self.root).schema;
        let mut is_required = true;
        let mut names = path.split('.').peekable();
        loop {
            let mut property = self.property_of(&object, names.next()?)?;
            is_required &= property.is_required;
            if names.peek().is_none() {
                property.is_required = is_required;
                return Some(property);
            }
            object = property.schema;
        }
    }

    /// Names of the fields of an object: the required ones in the order of their type, then the others.
    pub(crate) fn names(object: &Value) -> Vec<String> {
        let required = object["required"].as_array().into_iter().flatten();
        let mut names: Vec<_> = required.filter_map(Value::as_str).map(str::to_owned).collect();
        for (name, _) in object["properties"].as_object().into_iter().flatten() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// A field of an object of this schema, or of one of its alternatives.
    pub(crate) fn property_of(&self, object: &Value, name: &str) -> Option<Property> {
        let Some(property) = object["properties"].get(name) else {
            let mut alternatives = object["oneOf"].as_array().into_iter().flatten();
            return alternatives.find_map(|part| self.property_of(&self.resolve(part).schema, name));
        };
        let mut property = self.resolve(property);
        let mut required = object["required"].as_array().into_iter().flatten();
        property.is_required = required.any(|known| known == name);
        Some(property)
    }

    /// Follows references, and sees through the alternative `null`.
    pub(crate) fn resolve(&self, schema: &Value) -> Property {
        let description = schema["description"].as_str().unwrap_or_default();
        let mut resolved = if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap_or_default();
            let found = self.named.iter().find(|(known, _)| known == name);
            found.map_or_else(
                || Property::of(Value::Null),
                |(_, schema)| self.resolve(&as_json(schema)),
            )
        } else if let Some(value) = non_null(schema.get("oneOf")) {
            Property {
                is_nullable: true,
                ..self.resolve(value)
            }
        } else {
            Property::of(schema.clone())
        };
        if !description.is_empty() {
            description.clone_into(&mut resolved.description);
        }
        resolved
    }
}

impl Property {
    fn of(schema: Value) -> Self {
        Self {
            description: schema["description"].as_str().unwrap_or_default().to_owned(),
            is_required: false,
            is_nullable: has_type(&schema, "null"),
            schema,
        }
    }
}

/// Whether values of this type match the schema.
pub(crate) fn has_type(schema: &Value, name: &str) -> bool {
    match &schema["type"] {
        Value::Array(types) => types.iter().any(|known| known == name),
        known => known == name,
    }
}

fn as_json(schema: &RefOr<Schema>) -> Value {
    serde_json::to_value(schema).unwrap_or_default()
}
