//! Provider metadata (OpenID Connect Discovery 1.0): endpoints, scopes and client authentication.

use std::ops::Deref;

use serde::Deserialize;
use url::Url;
use vouchsafe_security::secure_url::is_secure;

/// Scope of a person's groups.
const GROUPS: &str = "groups";

/// The members of a provider's discovery document that a sign-in needs.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ProviderMetadata {
    issuer: String,
    pub(super) authorization_endpoint: Endpoint,
    pub(super) token_endpoint: Endpoint,
    pub(super) userinfo_endpoint: Option<Endpoint>,
    pub(super) jwks_uri: Endpoint,
    scopes_supported: Option<Vec<String>>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// A URL to which codes, secrets and tokens may be sent: https, or http on loopback.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Endpoint(Url);

#[derive(Debug, thiserror::Error)]
#[error("an endpoint is no https URL; http is permitted on loopback only")]
pub(super) struct InvalidEndpoint;

impl TryFrom<String> for Endpoint {
    type Error = InvalidEndpoint;

    fn try_from(text: String) -> Result<Self, InvalidEndpoint> {
        let url = Url::parse(&text).ok();
        url.filter(is_secure).map(Self).ok_or(InvalidEndpoint)
    }
}

impl Deref for Endpoint {
    type Target = Url;

    fn deref(&self) -> &Url {
        &self.0
    }
}

/// Why a discovery document cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidMetadata {
    #[error("the discovery document is not valid")]
    Json(#[from] serde_json::Error),
    #[error("the discovery document has the issuer {0:?}, which is not the configured one")]
    Issuer(String),
}

/// How the client proves its identity at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientAuthMethod {
    /// `client_secret_basic`: header `Authorization`.
    Basic,
    /// `client_secret_post`: fields of the form.
    Post,
}

/// URL of the discovery document.
pub(super) fn discovery_url(issuer: &str) -> Result<Url, url::ParseError> {
    let issuer = issuer.strip_suffix('/').unwrap_or(issuer);
    Url::parse(&format!("{issuer}/.well-known/openid-configuration"))
}

impl ProviderMetadata {
    /// Compares the issuer: a provider could else pass off its tokens as those of another one.
    pub(super) fn parse(document: &[u8], issuer: &str) -> Result<Self, InvalidMetadata> {
        let metadata: Self = serde_json::from_slice(document)?;
        if metadata.issuer == issuer {
            Ok(metadata)
        } else {
            Err(InvalidMetadata::Issuer(metadata.issuer))
        }
    }

    /// The scopes to request. Some providers refuse a scope that they do not know, so groups are requested
    /// only if supported.
    pub(super) fn scope(&self) -> &'static str {
        let mut supported = self.scopes_supported.iter().flatten();
        if supported.any(|scope| scope == GROUPS) {
            "openid email profile groups"
        } else {
            "openid email profile"
        }
    }

    /// `client_secret_basic`, the default of RFC 8414, unless the provider supports only `client_secret_post`
    /// of the two.
    pub(super) fn client_auth_method(&self) -> ClientAuthMethod {
        let methods = self.token_endpoint_auth_methods_supported.as_deref();
        let has = |name: &str| methods.is_some_and(|methods| methods.iter().any(|method| method == name));
        if has("client_secret_post") && !has("client_secret_basic") {
            ClientAuthMethod::Post
        } else {
            ClientAuthMethod::Basic
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ISSUER: &str = "https://id.example/tenant";

    fn parse_with(member: &str, value: Value) -> Result<ProviderMetadata, InvalidMetadata> {
        let mut document = json!({
            "issuer": ISSUER,
            "authorization_endpoint": "https://id.example/authorize",
            "token_endpoint": "https://id.example/token",
            "jwks_uri": "https://id.example/keys",
        });
        document[member] = value;
        ProviderMetadata::parse(document.to_string().as_bytes(), ISSUER)
    }

    #[test]
    fn document_of_another_issuer_or_without_secure_endpoints_is_refused() {
        assert!(parse_with("unknown_member", json!([])).is_ok());
        for (member, value) in [
            ("issuer", json!("https://id.example/tenant/")),
            ("issuer", json!("https://id.example/TENANT")),
            ("issuer", Value::Null),
            ("authorization_endpoint", Value::Null),
            ("token_endpoint", json!("http://id.example/token")),
            ("token_endpoint", Value::Null),
            ("userinfo_endpoint", json!("http://id.example/userinfo")),
            ("jwks_uri", json!("file:///keys")),
            ("jwks_uri", json!(7)),
        ] {
            assert!(parse_with(member, value.clone()).is_err(), "{member}: {value}");
        }
    }

    #[test]
    fn discovery_url_follows_the_path_of_the_issuer() {
        for (issuer, expected) in [
            (
                "https://a.example",
                "https://a.example/.well-known/openid-configuration",
            ),
            (
                "https://a.example/",
                "https://a.example/.well-known/openid-configuration",
            ),
            (
                "https://a.example/b",
                "https://a.example/b/.well-known/openid-configuration",
            ),
        ] {
            assert_eq!(discovery_url(issuer).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn groups_are_requested_only_if_supported() {
        for (supported, has_groups) in [
            (Value::Null, false),
            (json!(["openid", "email"]), false),
            (json!(["groups"]), true),
        ] {
            let metadata = parse_with("scopes_supported", supported.clone()).unwrap();
            assert_eq!(metadata.scope().ends_with(" groups"), has_groups, "{supported}");
        }
    }

    #[test]
    fn secret_is_posted_only_if_basic_is_not_supported() {
        for (methods, expected) in [
            (Value::Null, ClientAuthMethod::Basic),
            (json!([]), ClientAuthMethod::Basic),
            (json!(["private_key_jwt"]), ClientAuthMethod::Basic),
            (
                json!(["client_secret_post", "client_secret_basic"]),
                ClientAuthMethod::Basic,
            ),
            (
                json!(["private_key_jwt", "client_secret_post"]),
                ClientAuthMethod::Post,
            ),
        ] {
            let metadata = parse_with("token_endpoint_auth_methods_supported", methods.clone()).unwrap();
            assert_eq!(metadata.client_auth_method(), expected, "{methods}");
        }
    }
}
