//! Command-line option of a credential's scopes.

use super::{ApiScope, ApiScopes};
use crate::arguments::enum_parser;

#[derive(clap::Args)]
#[group(id = "ApiScopes")]
struct ScopesOption {
    /// Scope of the credential. Can be repeated [default: all scopes].
    #[arg(long = "scope", value_name = "SCOPE", value_parser = enum_parser::<ApiScope>())]
    scopes: Vec<ApiScope>,
}

impl From<ScopesOption> for ApiScopes {
    fn from(option: ScopesOption) -> Self {
        option.scopes.into_iter().collect()
    }
}

crate::parse_as_options!(ApiScopes, ScopesOption);
