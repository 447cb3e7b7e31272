//! Command-line options and their value parsers, derived from the types of their values.

use std::error::Error;
use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use strum::VariantArray;

use crate::comma_list::CommaList;

/// Parses a variant from its text in the API, and lists the texts in the help.
pub fn enum_parser<T>() -> impl TypedValueParser<Value = T>
where
    T: VariantArray + FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
    &'static str: From<&'static T>,
{
    PossibleValuesParser::new(T::VARIANTS.iter().map(<&'static str>::from)).try_map(|text| text.parse())
}

/// Parses variants that are separated by commas, each as [`enum_parser`] does.
pub fn list_parser<T>() -> impl TypedValueParser<Value = CommaList<T>>
where
    T: VariantArray + FromStr<Err: Error + Send + Sync + 'static> + PartialEq + Clone + Send + Sync + 'static,
    &'static str: From<&'static T>,
{
    ListParser(enum_parser())
}

#[derive(Clone)]
struct ListParser<P>(P);

impl<P: TypedValueParser<Value: PartialEq>> TypedValueParser for ListParser<P> {
    type Value = CommaList<P::Value>;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let Some(text) = value.to_str() else {
            return self.0.parse_ref(command, argument, value).map(CommaList::from);
        };
        let parts = text.split(',');
        let values: Result<Vec<_>, _> = parts
            .map(|part| self.0.parse_ref(command, argument, OsStr::new(part)))
            .collect();
        values.map(CommaList::of)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// Parses a type from the command line as another one, which derives its options and converts into it.
#[macro_export]
macro_rules! parse_as_options {
    ($type:ty, $options:ty) => {
        impl clap::FromArgMatches for $type {
            fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
                <$options as clap::FromArgMatches>::from_arg_matches(matches).map(Self::from)
            }

            fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl clap::Args for $type {
            fn group_id() -> Option<clap::Id> {
                <$options as clap::Args>::group_id()
            }

            fn augment_args(command: clap::Command) -> clap::Command {
                <$options as clap::Args>::augment_args(command)
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                <$options as clap::Args>::augment_args_for_update(command)
            }
        }
    };
}
