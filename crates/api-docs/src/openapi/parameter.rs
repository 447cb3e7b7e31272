//! Parameters of OpenAPI operations and their schemas.

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Object, RefOr, Required, Schema};

/// A table of path parameters: name, description, schema, and the error of an ID without an object.
macro_rules! path_parameters {
    ($($name:literal, $description:literal, $schema:expr $(, $code:ident)?;)+) => {
        &[$(($name, $description, $schema, &[$(Code::$code)?])),+]
    };
}

pub(crate) use path_parameters;

/// Any text, without an example.
pub(super) fn any_text() -> Object {
    Object::with_type(Type::String)
}

/// A date, with an example.
pub fn date(example: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)))
        .examples([example])
        .build()
}

/// Any text, with an example.
pub fn text(example: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .examples([example])
        .build()
}

/// An optional request header.
pub(super) fn header(name: &str, description: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    parameter(ParameterIn::Header, Required::False, name, description, schema)
}

pub(super) fn parameter(
    location: ParameterIn,
    required: Required,
    name: &str,
    description: &str,
    schema: impl Into<RefOr<Schema>>,
) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(location)
        .required(required)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}
