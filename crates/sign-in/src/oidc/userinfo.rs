//! Response of the userinfo endpoint (OpenID Connect Core 5.3): claims that the ID token lacks, as JSON or
//! signed.

use serde::Deserialize;

use super::claims::PersonClaims;
use super::error::OidcError;
use super::exchange::{JSON, JWT, ProviderResponse};
use super::key_set::KeySet;
use super::registered_claims::{RegisteredClaims, Registration};
use super::signed_token::verify_token;

#[derive(Deserialize)]
struct UserinfoClaims {
    sub: String,
    #[serde(flatten)]
    person: PersonClaims,
}

/// The claims of a response of the media type `application/jwt`.
#[derive(Deserialize)]
struct SignedUserinfoClaims {
    #[serde(flatten)]
    registered: RegisteredClaims,
    #[serde(flatten)]
    person: PersonClaims,
}

/// The claims of the person who has this subject in the verified ID token.
pub(super) fn parse(
    response: &ProviderResponse,
    subject: &str,
    keys: &KeySet,
    registration: Registration<'_>,
    now_s: i64,
) -> Result<PersonClaims, OidcError> {
    let unexpected = || response.unexpected("userinfo");
    let (found, person) = if response.is_ok_with(&[JSON]) {
        let claims: UserinfoClaims = serde_json::from_slice(&response.body).map_err(|_| unexpected())?;
        (claims.sub, claims.person)
    } else if response.is_ok_with(&[JWT]) {
        let token = str::from_utf8(&response.body).map_err(|_| unexpected())?;
        let claims: SignedUserinfoClaims = verify_token(token, keys)?;
        claims.registered.check(registration, now_s)?;
        (claims.registered.sub, claims.person)
    } else {
        return Err(unexpected());
    };
    // Protects against the substitution of access tokens (OpenID Connect Core 16.11).
    if found == subject {
        Ok(person)
    } else {
        Err(OidcError::Refused(
            "the userinfo belongs to another subject than the ID token".to_owned(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::Algorithm;
    use reqwest::StatusCode;
    use serde_json::{Value, json};

    use super::super::error::InvalidToken;
    use super::*;
    use crate::oidc::testing::{SigningKey, key_set};

    const NOW_S: i64 = 1_800_000_000;

    fn parse_response(status: StatusCode, media_type: &str, body: String) -> Result<PersonClaims, OidcError> {
        let response = ProviderResponse {
            status,
            media_type: media_type.to_owned(),
            body: body.into_bytes(),
        };
        let keys = key_set(&[SigningKey::ed25519(1).jwk_json()]);
        let registration = Registration {
            issuer: "https://id.example",
            client_id: "vouchsafe",
        };
        parse(&response, "1", &keys, registration, NOW_S)
    }

    fn jane() -> Value {
        json!({ "sub": "1", "email": "jane@example.com", "email_verified": true, "groups": "staff" })
    }

    fn with(name: &str, value: Value) -> Value {
        let mut claims = jane();
        claims["iss"] = json!("https://id.example");
        claims["aud"] = json!("vouchsafe");
        claims[name] = value;
        claims
    }

    #[test]
    fn json_belongs_to_the_subject_of_the_id_token() {
        let person = || Ok(serde_json::from_value(jane()).unwrap());
        assert_eq!(parse_response(StatusCode::OK, JSON, jane().to_string()), person());
        let other = parse_response(StatusCode::OK, JSON, with("sub", json!("2")).to_string());
        assert!(matches!(other, Err(OidcError::Refused(_))), "{other:?}");
        for (status, media_type, body) in [
            (StatusCode::UNAUTHORIZED, JSON, jane()),
            (StatusCode::FOUND, JSON, jane()),
            (StatusCode::OK, "text/plain", jane()),
            (StatusCode::OK, JSON, json!({ "email": "jane@example.com" })),
            (StatusCode::OK, JSON, json!({ "sub": 1 })),
            (StatusCode::OK, JSON, json!("text")),
        ] {
            let parsed = parse_response(status, media_type, body.to_string());
            assert!(
                matches!(parsed, Err(OidcError::Unavailable(_))),
                "{media_type} {body}: {parsed:?}"
            );
        }
    }

    #[test]
    fn signed_response_is_verified_like_an_id_token() {
        let (key, other_key) = (SigningKey::ed25519(1), SigningKey::ed25519(2));
        let parse_signed = |key: &SigningKey, claims: &Value| {
            let token = key.token(Algorithm::EdDSA, &json!({}), claims);
            parse_response(StatusCode::OK, JWT, token)
        };
        let person = Ok(serde_json::from_value(jane()).unwrap());
        assert_eq!(parse_signed(&key, &with("name", json!("Jane"))), person);
        let valid = with("name", json!("Jane"));
        assert_eq!(
            parse_signed(&other_key, &valid),
            Err(InvalidToken::Signature.into())
        );
        for (name, value) in [
            ("iss", json!("https://evil.example")),
            ("iss", Value::Null),
            ("aud", json!("other")),
            ("aud", Value::Null),
            ("sub", json!("2")),
            ("exp", json!(NOW_S)),
        ] {
            let parsed = parse_signed(&key, &with(name, value.clone()));
            assert!(
                matches!(parsed, Err(OidcError::Refused(_))),
                "{name} {value}: {parsed:?}"
            );
        }
        let malformed = parse_response(StatusCode::OK, JWT, jane().to_string());
        assert_eq!(malformed, Err(InvalidToken::Malformed.into()));
    }
}
