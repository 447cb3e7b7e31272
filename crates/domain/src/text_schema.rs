//! OpenAPI schemas of texts in filters and bodies: countries, currencies of filters, times.

use utoipa::openapi::schema::{AnyOfBuilder, KnownFormat, Object, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Maximum bytes of a filter value: enough for 128 characters of any script and for every id.
pub const MAX_FILTER_BYTES: usize = 512;

/// Implements the schema of types that OpenAPI's derives cannot describe.
macro_rules! described {
    ($($name:ident => $schema:expr;)+) => {
        $(
            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    $schema.into()
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

pub(super) use described;

described! {
    FilterText => filter_text();
    DateOrTime => date_or_time();
    MetadataEntry => metadata_entry();
    Country => country();
    CountryFilter => country_filter();
    CurrencyFilter => currency_filter();
}

/// Text of a list filter.
#[derive(Debug)]
pub enum FilterText {}

/// End of a time range.
#[derive(Debug)]
pub enum DateOrTime {}

/// A key of metadata and its value as a filter.
#[derive(Debug)]
pub enum MetadataEntry {}

/// A country.
#[derive(Debug)]
pub enum Country {}

/// A country as a filter, which takes either case.
#[derive(Debug)]
pub enum CountryFilter {}

/// A currency as a filter, which takes either case.
#[derive(Debug)]
pub enum CurrencyFilter {}

pub(super) fn text(description: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
}

fn filter_text() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(MAX_FILTER_BYTES))
        .pattern(Some(r"^[^\u0000]*$"))
        .build()
}

fn metadata_entry() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(MAX_FILTER_BYTES))
        .pattern(Some(r"^[^\u0000:]+:[^\u0000]*$"))
        .examples(["campaign:spring"])
        .build()
}

fn date_or_time() -> Schema {
    let text = |format| {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(format)))
    };
    AnyOfBuilder::new()
        .item(text(KnownFormat::Date))
        .item(text(KnownFormat::DateTime))
        .into()
}

fn currency_filter() -> Object {
    text("An ISO 4217 currency code in either case.")
        .pattern(Some("^[A-Za-z]{3}$"))
        .examples(["USD"])
        .build()
}

fn country() -> Object {
    text("An ISO 3166-1 alpha-2 country code.")
        .pattern(Some("^[A-Z]{2}$"))
        .examples(["US"])
        .build()
}

fn country_filter() -> Object {
    text("An ISO 3166-1 alpha-2 country code in either case.")
        .pattern(Some("^[A-Za-z]{2}$"))
        .examples(["US"])
        .build()
}
