//! Bounds of numbers, texts and lists, as the type of a field in its schema.
//!
//! The attributes of a derived schema take literals alone; these types take the constant that is checked.
//! They have no description of their own: a document writes them at the field instead of naming them.

use std::borrow::Cow;
use std::marker::PhantomData;

use utoipa::openapi::schema::{ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A whole number from `MIN` to `MAX`.
#[derive(Debug)]
pub enum Count<const MIN: u32, const MAX: u32> {}

/// A text of `MIN` to `MAX` characters.
#[derive(Debug)]
pub enum Text<const MIN: usize, const MAX: usize> {}

/// A text that no response contains, of `MIN` to `MAX` characters.
#[derive(Debug)]
pub enum WrittenText<const MIN: usize, const MAX: usize> {}

/// A list of `MIN` to `MAX` entries.
#[derive(Debug)]
pub struct List<T, const MIN: usize, const MAX: usize>(PhantomData<T>);

impl<const MIN: u32, const MAX: u32> PartialSchema for Count<MIN, MAX> {
    fn schema() -> RefOr<Schema> {
        whole_number(MIN, MAX).into()
    }
}

impl<const MIN: u32, const MAX: u32> ToSchema for Count<MIN, MAX> {
    fn name() -> Cow<'static, str> {
        format!("Count_{MIN}_{MAX}").into()
    }
}

impl<const MIN: usize, const MAX: usize> PartialSchema for Text<MIN, MAX> {
    fn schema() -> RefOr<Schema> {
        text(MIN, MAX).into()
    }
}

impl<const MIN: usize, const MAX: usize> ToSchema for Text<MIN, MAX> {
    fn name() -> Cow<'static, str> {
        format!("Text_{MIN}_{MAX}").into()
    }
}

impl<const MIN: usize, const MAX: usize> PartialSchema for WrittenText<MIN, MAX> {
    fn schema() -> RefOr<Schema> {
        text(MIN, MAX).write_only(true).into()
    }
}

impl<const MIN: usize, const MAX: usize> ToSchema for WrittenText<MIN, MAX> {
    fn name() -> Cow<'static, str> {
        format!("WrittenText_{MIN}_{MAX}").into()
    }
}

/// The schema of a whole number from `min` to `max`.
#[must_use]
pub fn whole_number(min: u32, max: u32) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::UInt32)))
        .minimum(Some(min))
        .maximum(Some(max))
}

fn text(min: usize, max: usize) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String);
    text.min_length((min > 0).then_some(min)).max_length(Some(max))
}

impl<T: ToSchema, const MIN: usize, const MAX: usize> PartialSchema for List<T, MIN, MAX> {
    fn schema() -> RefOr<Schema> {
        let entry = utoipa::openapi::Ref::from_schema_name(T::name());
        let list = ArrayBuilder::new().items(entry).max_items(Some(MAX));
        list.min_items((MIN > 0).then_some(MIN)).into()
    }
}

impl<T: ToSchema, const MIN: usize, const MAX: usize> ToSchema for List<T, MIN, MAX> {
    fn name() -> Cow<'static, str> {
        format!("List_{MIN}_{MAX}_{}", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into(), T::schema()));
        T::schemas(schemas);
    }
}
