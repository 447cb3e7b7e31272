//! Value parsers of command-line options, derived from the types of their values.

use std::error::Error;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use strum::VariantArray;

/// Parses a variant from its text in the API, and lists the texts in the help.
pub fn enum_parser<T>() -> impl TypedValueParser<Value = T>
where
    T: VariantArray + FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
    &'static str: From<&'static T>,
{
    enum_parser_of(T::VARIANTS)
}

/// Like [`enum_parser`], for some of the variants.
pub fn enum_parser_of<T>(variants: &'static [T]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
    &'static str: From<&'static T>,
{
    PossibleValuesParser::new(variants.iter().map(<&'static str>::from)).try_map(|text| text.parse())
}
