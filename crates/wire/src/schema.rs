//! OpenAPI schemas of enums that may get new values.

use serde_json::Value;
use utoipa::openapi::Object;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{ObjectBuilder, Type};

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
