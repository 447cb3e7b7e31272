//! Operator accounts: names, roles, and API tokens without their text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use time::OffsetDateTime;

use crate::identifier::{self, ForbiddenCharacter};
use crate::ids::OperatorTokenId;

/// The account of the sandbox's first token.
pub const BUILT_IN_ADMIN: &str = "admin";

/// The name under which the token in the settings acts. It is no account.
const SETTINGS_TOKEN: &str = "settings-token";

/// Longest name in characters.
pub const MAX_NAME_LENGTH: usize = 64;

/// Actors of the audit log that are no operators.
const RESERVED_NAMES: [&str; 3] = ["service", "command-line", SETTINGS_TOKEN];

/// Permissions of an operator; each role includes the roles before it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str, parse_err_ty = UnknownRole, parse_err_fn = UnknownRole::new)]
#[derive(utoipa::ToSchema)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Decides on orders, imports stock, resolves drifts and repeats deliveries.
    Operator,
    /// Manages money, partners, credentials, vendors, products and operators.
    Admin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `viewer`, `operator` or `admin`")]
pub struct UnknownRole;

impl UnknownRole {
    const fn new(_: &str) -> Self {
        Self
    }
}

/// Name of an operator, as the audit trail shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct OperatorName(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOperatorName {
    #[error(
        "expected 1 to {MAX_NAME_LENGTH} characters of a-z, 0-9 and .@-, the first of them a letter or digit; `service`, \
         `command-line` and `settings-token` are reserved"
    )]
    Alphabet,
    #[error("expected 1 to {MAX_NAME_LENGTH} characters of a-z, 0-9 and .@-, found {0}")]
    Character(#[from] ForbiddenCharacter),
}

impl OperatorName {
    /// The account [`BUILT_IN_ADMIN`].
    #[must_use]
    pub fn built_in_admin() -> Self {
        Self(BUILT_IN_ADMIN.to_owned())
    }

    /// The actor of the token in the settings.
    #[must_use]
    pub fn settings_token() -> Self {
        Self(SETTINGS_TOKEN.to_owned())
    }

    /// Parses the name of an account or of the token in the settings, as the service has stored it.
    ///
    /// # Errors
    /// [`InvalidOperatorName`] for every other text.
    pub fn from_stored(text: &str) -> Result<Self, InvalidOperatorName> {
        if text == SETTINGS_TOKEN {
            return Ok(Self::settings_token());
        }
        text.parse()
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for OperatorName {
    type Err = InvalidOperatorName;

    fn from_str(text: &str) -> Result<Self, InvalidOperatorName> {
        let text = text.trim();
        identifier::normalize(text)?;
        let is_letter_or_digit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_valid = text.len() <= MAX_NAME_LENGTH
            && text.bytes().next().is_some_and(is_letter_or_digit)
            && text
                .bytes()
                .all(|byte| is_letter_or_digit(byte) || b".@-".contains(&byte))
            && !RESERVED_NAMES.contains(&text);
        is_valid
            .then(|| Self(text.to_owned()))
            .ok_or(InvalidOperatorName::Alphabet)
    }
}

impl fmt::Display for OperatorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for OperatorName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// An operator account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Operator)]
pub struct OperatorAccount {
    /// Name in the audit trail.
    pub name: OperatorName,
    /// What the operator may do.
    pub role: Role,
    /// Whether all tokens and sessions of the operator are refused.
    pub disabled: bool,
    /// Whether the account can be used. One that a second operator has confirmed is inactive until a token of
    /// it is activated.
    pub active: bool,
    /// Time of creation.
    #[serde(with = "crate::timestamp")]
    pub created_at: OffsetDateTime,
}

/// The person at an identity provider to whom an account belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct OperatorIdentity {
    /// Issuer URL of the provider.
    pub issuer: String,
    /// Identifies the person at the provider, permanently.
    pub subject: String,
}

/// An API token of an operator, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = OperatorToken)]
pub struct OperatorTokenSummary {
    /// Public ID.
    pub token_id: OperatorTokenId,
    /// Operator whose requests carry the token.
    pub operator: OperatorName,
    /// Time of creation.
    #[serde(with = "crate::timestamp")]
    pub created_at: OffsetDateTime,
    /// End of validity, exclusive; null for the sandbox's first token, which does not expire.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub expires_at: Option<OffsetDateTime>,
    /// Time of the last request with the token, to within a minute; null if there was none.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub last_used_at: Option<OffsetDateTime>,
    /// Time of revocation.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub revoked_at: Option<OffsetDateTime>,
    /// Whether the token can be used. One that a second operator has confirmed is inactive until its holder
    /// redeems the activation code.
    pub active: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_name_has_a_safe_alphabet_and_is_not_reserved() {
        let longest = "a".repeat(MAX_NAME_LENGTH);
        for valid in ["jane.doe", "jane@example.com", "7", "on-call", &longest] {
            assert_eq!(valid.parse::<OperatorName>().unwrap().as_str(), valid);
        }
        let too_long = "a".repeat(MAX_NAME_LENGTH + 1);
        for invalid in [
            "",
            "Jane",
            ".jane",
            "jane doe",
            "ptn_0",
            "jané",
            "service",
            "command-line",
            "settings-token",
            &too_long,
        ] {
            assert_eq!(
                invalid.parse::<OperatorName>(),
                Err(InvalidOperatorName::Alphabet),
                "{invalid}"
            );
        }
    }

    #[test]
    fn operator_name_is_an_identifier() {
        assert_eq!(" jane\n".parse::<OperatorName>().unwrap().as_str(), "jane");
        let error = "ja\u{ad}ne".parse::<OperatorName>().unwrap_err().to_string();
        assert!(error.contains("(U+00AD) at position 3"), "{error}");
    }

    #[test]
    fn stored_name_is_an_account_or_the_settings_token() {
        assert_eq!(
            OperatorName::from_stored("settings-token"),
            Ok(OperatorName::settings_token())
        );
        assert_eq!(OperatorName::from_stored("jane"), "jane".parse());
        assert!(OperatorName::from_stored("service").is_err());
    }

    #[test]
    fn role_includes_lower_roles() {
        assert!(Role::Viewer < Role::Operator && Role::Operator < Role::Admin);
    }
}
