//! Parameters of OpenAPI operations and their schemas.

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{AnyOfBuilder, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Object, RefOr, Required, Schema};
use vouchsafe_wire::page::MAX_FILTER_BYTES;

/// Any text, without an example.
pub(super) fn any_text() -> Object {
    Object::with_type(Type::String)
}

/// A date, with an example.
pub(crate) fn date(example: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)))
        .examples([example])
        .build()
}

/// Any text, with an example.
pub(crate) fn text(example: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .examples([example])
        .build()
}

/// The text of a list filter, with an example.
pub(crate) fn filter(example: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(MAX_FILTER_BYTES))
        .pattern(Some(r"^[^\u0000]*$"))
        .examples([example])
        .build()
}

/// A date or a time, with an example.
pub(super) fn timestamp(example: &str) -> Schema {
    let one = |format| {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(format)))
    };
    AnyOfBuilder::new()
        .item(one(KnownFormat::Date))
        .item(one(KnownFormat::DateTime))
        .examples([example])
        .into()
}

/// One of these texts.
pub(crate) fn enum_text(values: impl IntoIterator<Item = &'static str>) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(values))
        .build()
}

/// An integer within inclusive bounds, with a default.
pub(crate) fn integer(min: usize, max: usize, default: usize) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(min))
        .maximum(Some(max))
        .default(Some(default.into()))
        .build()
}

pub(super) fn in_path(name: &str, description: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    parameter(ParameterIn::Path, Required::True, name, description, schema)
}

pub(super) fn in_query(
    required: Required,
    name: &str,
    description: &str,
    schema: impl Into<RefOr<Schema>>,
) -> Parameter {
    parameter(ParameterIn::Query, required, name, description, schema)
}

pub(super) fn in_header(
    required: Required,
    name: &str,
    description: &str,
    schema: impl Into<RefOr<Schema>>,
) -> Parameter {
    parameter(ParameterIn::Header, required, name, description, schema)
}

fn parameter(
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
