//! What may a parameter be?

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{AnyOfBuilder, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Object, RefOr, Required, Schema};

use crate::http::list::MAX_FILTER;

/// Any text, whose example stands elsewhere.
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

/// Any text, for example this one.
pub(crate) fn text(example: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .examples([example])
        .build()
}

/// Any text that a list can be filtered by, for example this one.
pub(crate) fn filter(example: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(MAX_FILTER))
        .pattern(Some(r"^[^\u0000]*$"))
        .examples([example])
        .build()
}

/// A date or a time, for example this one.
pub(super) fn moment(example: &str) -> Schema {
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

/// One of these words.
pub(crate) fn word(words: impl IntoIterator<Item = &'static str>) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words))
        .build()
}

/// A whole number between two bounds, inclusive; the default is told where there is one.
pub(crate) fn integer(min: usize, max: usize, default: usize) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(min))
        .maximum(Some(max))
        .default(Some(default.into()))
        .build()
}

/// A parameter in the path.
pub(super) fn in_path(name: &str, description: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    parameter(ParameterIn::Path, Required::True, name, description, schema)
}

/// A parameter in the query that may be left out.
pub(super) fn in_query(
    required: Required,
    name: &str,
    description: &str,
    schema: impl Into<RefOr<Schema>>,
) -> Parameter {
    parameter(ParameterIn::Query, required, name, description, schema)
}

/// A header.
pub(super) fn in_header(
    required: Required,
    name: &str,
    description: &str,
    schema: impl Into<RefOr<Schema>>,
) -> Parameter {
    parameter(ParameterIn::Header, required, name, description, schema)
}

fn parameter(
    place: ParameterIn,
    required: Required,
    name: &str,
    description: &str,
    schema: impl Into<RefOr<Schema>>,
) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}
