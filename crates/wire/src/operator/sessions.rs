//! Bodies of sign-in links.

use secrecy::SecretString;
use serde::{Serialize, Serializer};
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::operator::OperatorName;
use vouchsafe_security::console_url::ConsoleUrl;
use vouchsafe_security::operator_token::OperatorToken;
use vouchsafe_security::secret::expose;

/// A link that begins a session of an operator in a browser.
#[derive(Serialize, ToSchema)]
pub struct SignInLink {
    /// Operator whom the link signs in.
    pub operator: OperatorName,
    /// The link. Shown once; it works once.
    #[serde(serialize_with = "serialize_secret")]
    #[schema(value_type = String)]
    url: SecretString,
    /// End of validity, exclusive.
    #[serde(with = "vouchsafe_domain::timestamp")]
    pub expires_at: OffsetDateTime,
}

impl SignInLink {
    #[must_use]
    pub fn new(
        operator: OperatorName,
        console: &ConsoleUrl,
        token: &OperatorToken,
        expires_at: OffsetDateTime,
    ) -> Self {
        let url = console.sign_in_link(token.expose()).into();
        Self {
            operator,
            url,
            expires_at,
        }
    }
}

/// Only for the response that creates the link.
fn serialize_secret<S: Serializer>(url: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(expose(url))
}
