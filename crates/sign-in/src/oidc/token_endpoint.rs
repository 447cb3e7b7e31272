//! Exchange of an authorization code at the token endpoint (RFC 6749 4.1.3, OpenID Connect Core 3.1.3).

use reqwest::StatusCode;
use serde::Deserialize;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::error::OidcError;
use super::exchange::{JSON, ProviderResponse};
use super::metadata::ClientAuthMethod;

/// Longest error code of the provider that is logged.
const MAX_ERROR_CHARS: usize = 64;

/// Parameters of a token request. Has no `Debug`, so that the code and the secrets cannot be logged.
pub(super) struct CodeGrant<'a> {
    pub(super) code: &'a str,
    pub(super) verifier: &'a str,
    pub(super) redirect_uri: &'a str,
    pub(super) client_id: &'a str,
    pub(super) client_secret: &'a str,
}

/// Body and authentication of a token request. Has no `Debug`, for the same reason.
pub(super) struct TokenRequest {
    pub(super) form: String,
    /// User name and password of HTTP Basic authentication.
    pub(super) basic: Option<(String, String)>,
}

impl TokenRequest {
    pub(super) fn new(grant: &CodeGrant<'_>, method: ClientAuthMethod) -> Self {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", grant.code)
            .append_pair("code_verifier", grant.verifier)
            .append_pair("redirect_uri", grant.redirect_uri);
        let basic = match method {
            ClientAuthMethod::Basic => {
                // Both are form-encoded before they are joined with a colon (RFC 6749 2.3.1).
                let encode = |text: &str| byte_serialize(text.as_bytes()).collect();
                Some((encode(grant.client_id), encode(grant.client_secret)))
            }
            ClientAuthMethod::Post => {
                form.append_pair("client_id", grant.client_id)
                    .append_pair("client_secret", grant.client_secret);
                None
            }
        };
        Self {
            form: form.finish(),
            basic,
        }
    }
}

/// The tokens of a person. Has no `Debug`, so that they cannot be logged.
#[derive(Deserialize)]
pub(super) struct Tokens {
    pub(super) access_token: String,
    token_type: String,
    id_token: Option<String>,
}

#[derive(Deserialize)]
struct ErrorResponse {
    error: String,
}

impl Tokens {
    pub(super) fn parse(response: &ProviderResponse) -> Result<Self, OidcError> {
        let unexpected = || response.unexpected("token");
        if response.status != StatusCode::OK {
            let error: ErrorResponse = serde_json::from_slice(&response.body).map_err(|_| unexpected())?;
            return Err(OidcError::Refused(to_loggable(error.error)));
        }
        if !response.is_ok_with(&[JSON]) {
            return Err(unexpected());
        }
        let tokens: Self = serde_json::from_slice(&response.body).map_err(|_| unexpected())?;
        // A token of another type is not sent as a bearer token.
        if tokens.token_type.eq_ignore_ascii_case("bearer") {
            Ok(tokens)
        } else {
            Err(unexpected())
        }
    }

    pub(super) fn id_token(&self) -> Result<&str, OidcError> {
        let missing = || OidcError::Refused("no ID token".to_owned());
        self.id_token.as_deref().ok_or_else(missing)
    }
}

/// Any other text than an error code could quote the request, which contains secrets.
fn to_loggable(error: String) -> String {
    let is_code = error.len() <= MAX_ERROR_CHARS
        && !error.is_empty()
        && error
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if is_code {
        error
    } else {
        "the token endpoint reported an unknown error".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANT: CodeGrant<'_> = CodeGrant {
        code: "c&1",
        verifier: "v",
        redirect_uri: "https://a.example/b",
        client_id: "client:1",
        client_secret: "p %+:é",
    };

    const FORM: &str =
        "grant_type=authorization_code&code=c%261&code_verifier=v&redirect_uri=https%3A%2F%2Fa.example%2Fb";

    #[test]
    fn client_authenticates_by_header_or_by_form() {
        let request = TokenRequest::new(&GRANT, ClientAuthMethod::Basic);
        let basic = ("client%3A1".to_owned(), "p+%25%2B%3A%C3%A9".to_owned());
        assert_eq!((request.form.as_str(), request.basic), (FORM, Some(basic)));
        let request = TokenRequest::new(&GRANT, ClientAuthMethod::Post);
        let form = format!("{FORM}&client_id=client%3A1&client_secret=p+%25%2B%3A%C3%A9");
        assert_eq!((request.form, request.basic), (form, None));
    }

    fn parse(status: u16, media_type: &str, body: &str) -> Result<String, OidcError> {
        let tokens = Tokens::parse(&ProviderResponse {
            status: StatusCode::from_u16(status).unwrap(),
            media_type: media_type.to_owned(),
            body: body.as_bytes().to_vec(),
        })?;
        tokens.id_token().map(ToOwned::to_owned)
    }

    #[test]
    fn response_has_a_bearer_token_and_an_id_token() {
        let unexpected = |status: u16| {
            let text = format!("unexpected response of the token endpoint, with status {status}");
            Err(OidcError::Unavailable(text))
        };
        let refused = |text: &str| Err(OidcError::Refused(text.to_owned()));
        let valid =
            r#"{"access_token":"a","token_type":"bearer","id_token":"i","expires_in":"60","scope":7}"#;
        for (status, media_type, body, expected) in [
            (200, JSON, valid, Ok("i".to_owned())),
            (200, "text/html", valid, unexpected(200)),
            (201, JSON, valid, unexpected(201)),
            (302, JSON, "", unexpected(302)),
            (200, JSON, "", unexpected(200)),
            (200, JSON, r#"{"error":"invalid_grant"}"#, unexpected(200)),
            (
                200,
                JSON,
                r#"{"token_type":"Bearer","id_token":"i"}"#,
                unexpected(200),
            ),
            (
                200,
                JSON,
                r#"{"access_token":"a","token_type":"mac","id_token":"i"}"#,
                unexpected(200),
            ),
            (
                200,
                JSON,
                r#"{"access_token":"a","token_type":"Bearer","id_token":7}"#,
                unexpected(200),
            ),
            (
                200,
                JSON,
                r#"{"access_token":"a","token_type":"Bearer"}"#,
                refused("no ID token"),
            ),
            (
                400,
                JSON,
                r#"{"error":"invalid_grant","error_description":"c&1"}"#,
                refused("invalid_grant"),
            ),
            (
                401,
                "text/plain",
                r#"{"error":"invalid_client"}"#,
                refused("invalid_client"),
            ),
            (400, JSON, "{}", unexpected(400)),
            (500, JSON, "<html>", unexpected(500)),
        ] {
            assert_eq!(
                parse(status, media_type, body),
                expected,
                "{status} {media_type} {body}"
            );
        }
    }

    #[test]
    fn error_that_is_no_code_is_not_quoted() {
        for error in ["", "code c&1 is unknown", "eyJhbGciOiJSUzI1NiJ9", &"a".repeat(65)] {
            assert_eq!(
                to_loggable(error.to_owned()),
                "the token endpoint reported an unknown error",
                "{error}"
            );
        }
    }
}
