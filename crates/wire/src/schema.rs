//! OpenAPI schemas of enums that may get new values, and of requests with several forms.

use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, OneOfBuilder, SchemaType, Type};
use utoipa::openapi::{Object, Ref, RefOr, Schema};

/// Extension with the current values of an open enum, known to API tools.
const EXTENSIBLE_ENUM: &str = "x-extensible-enum";

/// Turns a closed enum into an extensible one.
pub fn make_extensible(object: &mut Object) {
    let Some(values) = object.enum_values.take() else {
        return;
    };
    let more = "New values may be added within v1; handle unknown values.";
    let description = object.description.take().unwrap_or_default();
    object.description = Some(format!("{description} {more}").trim_start().to_owned());
    let values = (EXTENSIBLE_ENUM, Value::Array(values));
    object.extensions = Some(Extensions::from_iter([values]));
}

/// An extensible enum with these current values.
pub fn extensible_enum(description: &str, values: impl IntoIterator<Item = &'static str>) -> Object {
    let mut object = ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
        .enum_values(Some(values))
        .build();
    make_extensible(&mut object);
    object
}

/// The alternative to null in a `oneOf`.
#[must_use]
pub fn non_null(alternatives: Option<&Value>) -> Option<&Value> {
    match alternatives?.as_array()?.as_slice() {
        [null, schema] | [schema, null] if null["type"] == "null" => Some(schema),
        _ => None,
    }
}

/// One of the forms of a request: which of its fields it has.
pub(crate) struct Alternative {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) required: &'static [&'static str],
    pub(crate) optional: &'static [&'static str],
}

/// A request that has one of several forms.
pub(crate) fn one_of(alternatives: &[Alternative], description: &str) -> RefOr<Schema> {
    let forms = alternatives
        .iter()
        .map(|alternative| Ref::from_schema_name(alternative.name));
    let request = forms.fold(OneOfBuilder::new(), |request, form| request.item(form));
    Schema::from(request.description(Some(description)).build()).into()
}

/// A request that has at least one of several forms.
pub(crate) fn any_of(alternatives: &[Alternative], description: &str) -> RefOr<Schema> {
    let forms = alternatives
        .iter()
        .map(|alternative| Ref::from_schema_name(alternative.name));
    let request = forms.fold(AnyOfBuilder::new(), |request, form| request.item(form));
    Schema::from(request.description(Some(description)).build()).into()
}

/// Adds the schema of each form, with its part of the fields. What a form requires is not null there.
pub(crate) fn add_alternatives<Fields: ToSchema>(
    alternatives: &[Alternative],
    schemas: &mut Vec<(String, RefOr<Schema>)>,
) {
    Fields::schemas(schemas);
    let RefOr::T(Schema::Object(fields)) = Fields::schema() else {
        return;
    };
    for alternative in alternatives {
        let mut form = fields.clone();
        form.description = Some(alternative.description.to_owned());
        let is_kept =
            |field: &str| alternative.required.contains(&field) || alternative.optional.contains(&field);
        form.properties.retain(|field, _| is_kept(field));
        for field in alternative.required {
            form.properties
                .entry((*field).to_owned())
                .and_modify(exclude_null);
        }
        form.required = alternative
            .required
            .iter()
            .map(|field| (*field).to_owned())
            .collect();
        schemas.push((alternative.name.to_owned(), Schema::from(form).into()));
    }
}

fn exclude_null(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(object)) => {
            if let SchemaType::Array(types) = &object.schema_type {
                let mut types = types.iter().filter(|kind| **kind != Type::Null);
                if let (Some(kind), None) = (types.next(), types.next()) {
                    object.schema_type = SchemaType::new(kind.clone());
                }
            }
        }
        RefOr::T(Schema::OneOf(one_of)) => {
            let null = RefOr::T(Schema::Object(Object::with_type(Type::Null)));
            let mut others = one_of.items.iter().filter(|item| **item != null);
            if let (Some(other), None) = (others.next(), others.next()) {
                let mut other = other.clone();
                if let (RefOr::Ref(reference), Some(description)) = (&mut other, &one_of.description) {
                    reference.description.clone_from(description);
                }
                *schema = other;
            }
        }
        _ => {}
    }
}
