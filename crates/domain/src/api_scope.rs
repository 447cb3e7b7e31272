//! Scopes of API credentials: what the holder of a credential may do, as in OAuth 2.0.
//!
//! A credential without a set has every scope, also those that later versions add. A set is never empty in a
//! request; a stored one may hold labels of a newer version, which this version does not grant.

mod arguments;

use serde::{Deserialize, Serialize};
use strum::VariantArray as _;
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::labels::labels;

labels! {
    /// A permission of a credential. Each authenticated route of the partner API requires one.
    pub enum ApiScope: "lowercase", "`orders`: place and cancel orders. `codes`: retrieve voucher codes. \
        `read`: all other reads. `payouts`: request and cancel payouts. `webhooks`: change, test and \
        replay webhook endpoints. `credentials`: rotate the credential itself." {
        Orders,
        Codes,
        Read,
        Payouts,
        Webhooks,
        Credentials,
    }
}

impl ApiScope {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The scopes of a restricted credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<ApiScope>", into = "Vec<ApiScope>")]
pub struct ApiScopes(u8);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected at least one scope; omit the field for a credential with all scopes")]
pub struct NoScopes;

impl ApiScopes {
    /// The set of stored labels. Labels of a newer version grant nothing.
    #[must_use]
    pub fn from_labels<T: AsRef<str>>(labels: &[T]) -> Self {
        labels
            .iter()
            .filter_map(|label| label.as_ref().parse().ok())
            .collect()
    }

    #[must_use]
    pub const fn contains(self, scope: ApiScope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// The scopes in the set, in the order of their declaration.
    pub fn iter(self) -> impl Iterator<Item = ApiScope> {
        let all = ApiScope::VARIANTS.iter().copied();
        all.filter(move |scope| self.contains(*scope))
    }
}

impl FromIterator<ApiScope> for ApiScopes {
    fn from_iter<I: IntoIterator<Item = ApiScope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl TryFrom<Vec<ApiScope>> for ApiScopes {
    type Error = NoScopes;

    fn try_from(scopes: Vec<ApiScope>) -> Result<Self, NoScopes> {
        if scopes.is_empty() {
            return Err(NoScopes);
        }
        Ok(scopes.into_iter().collect())
    }
}

impl From<ApiScopes> for Vec<ApiScope> {
    fn from(scopes: ApiScopes) -> Self {
        scopes.iter().collect()
    }
}

impl PartialSchema for ApiScopes {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new()
            .description(Some("What the credential may do."))
            .items(ApiScope::schema())
            .min_items(Some(1))
            .into()
    }
}

impl ToSchema for ApiScopes {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_contains_its_scopes_alone() {
        for &scope in ApiScope::VARIANTS {
            let one = ApiScopes::from_iter([scope, scope]);
            assert_eq!(one.iter().collect::<Vec<_>>(), [scope]);
        }
    }

    #[test]
    fn empty_and_unknown_scopes_are_refused_in_requests() {
        let parse = |text| serde_json::from_str::<ApiScopes>(text).ok();
        assert_eq!(parse("[]"), None);
        assert_eq!(parse(r#"["read","admin"]"#), None);
        let parsed = parse(r#"["webhooks","read","read"]"#).unwrap();
        assert_eq!(serde_json::to_string(&parsed).unwrap(), r#"["read","webhooks"]"#);
    }

    #[test]
    fn stored_label_of_newer_version_grants_nothing() {
        assert_eq!(
            ApiScopes::from_labels(&["read", "refunds"]),
            ApiScopes::from_iter([ApiScope::Read])
        );
        assert_eq!(ApiScopes::from_labels(&["refunds"]).iter().next(), None);
    }
}
