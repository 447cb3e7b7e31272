//! Verification of an ID token for one sign-in (OpenID Connect Core 3.1.3.7).

use serde::Deserialize;
use serde_json::Value;
use subtle::ConstantTimeEq as _;

use super::claims::PersonClaims;
use super::error::InvalidToken;
use super::key_set::KeySet;
use super::registered_claims::{RegisteredClaims, Registration};
use super::signed_token::verify_token;

/// Has no `Debug`, so that the nonce cannot be logged.
#[derive(Deserialize)]
struct IdTokenClaims {
    #[serde(flatten)]
    registered: RegisteredClaims,
    nonce: Option<String>,
    /// When the person was authenticated. Providers send other types here, too, and a session needs neither
    /// this nor `acr`.
    auth_time: Option<Value>,
    acr: Option<Value>,
    #[serde(flatten)]
    person: PersonClaims,
}

/// A person whose identity the provider has confirmed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ConfirmedPerson {
    pub(super) subject: String,
    pub(super) claims: PersonClaims,
    pub(super) authentication: Authentication,
}

/// How the provider has authenticated the person, as far as it says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Authentication {
    /// Unix time.
    at_s: Option<i64>,
    /// Authentication context class.
    acr: Option<String>,
}

impl Authentication {
    /// When the person was authenticated, if it was by one of these classes; without classes, by any. Unix
    /// time.
    pub(super) fn at_s(&self, acr_values: &[String]) -> Option<i64> {
        let is_of_class =
            acr_values.is_empty() || self.acr.as_ref().is_some_and(|acr| acr_values.contains(acr));
        self.at_s.filter(|_| is_of_class)
    }
}

/// Verifies the ID token of the sign-in that has this nonce.
pub(super) fn verify(
    token: &str,
    keys: &KeySet,
    registration: Registration<'_>,
    nonce: &str,
    now_s: i64,
) -> Result<ConfirmedPerson, InvalidToken> {
    let claims: IdTokenClaims = verify_token(token, keys)?;
    let registered = claims.registered;
    if registered.exp.is_none() || registered.iat.is_none() {
        return Err(InvalidToken::Claims);
    }
    registered.check(registration, now_s)?;
    let found = claims.nonce.unwrap_or_default();
    let is_equal: bool = found.as_bytes().ct_eq(nonce.as_bytes()).into();
    if !is_equal || nonce.is_empty() {
        return Err(InvalidToken::Nonce);
    }
    Ok(ConfirmedPerson {
        subject: registered.sub,
        claims: claims.person,
        authentication: Authentication {
            at_s: claims.auth_time.as_ref().and_then(Value::as_i64),
            acr: claims.acr.and_then(|acr| acr.as_str().map(str::to_owned)),
        },
    })
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::Algorithm;
    use serde_json::json;

    use super::*;
    use crate::oidc::testing::{SigningKey, key_set};

    const NOW_S: i64 = 1_800_000_000;

    const REGISTRATION: Registration<'_> = Registration {
        issuer: "https://id.example",
        client_id: "vouchsafe",
    };

    fn verify_claims(changes: &Value) -> Result<ConfirmedPerson, InvalidToken> {
        let mut claims = json!({
            "iss": "https://id.example", "aud": "vouchsafe", "sub": "1", "nonce": "n-1",
            "iat": NOW_S - 5, "exp": NOW_S + 300, "email": "jane@example.com", "email_verified": true,
        });
        let claims = claims.as_object_mut().unwrap();
        claims.extend(changes.as_object().unwrap().clone());
        // A claim that is null is absent.
        claims.retain(|_, claim| !claim.is_null());
        let key = SigningKey::ed25519(1);
        let token = key.token(Algorithm::EdDSA, &json!({}), &Value::Object(claims.clone()));
        verify(&token, &key_set(&[key.jwk_json()]), REGISTRATION, "n-1", NOW_S)
    }

    #[test]
    fn valid_claims_are_accepted() {
        for changes in [
            json!({}),
            json!({ "aud": ["vouchsafe"] }),
            json!({ "azp": "vouchsafe" }),
            json!({ "exp": NOW_S + 1 }),
            json!({ "exp": 1_800_000_000.5, "iat": 1_799_999_999.5 }),
            json!({ "iat": NOW_S + 60, "nbf": NOW_S + 60 }),
            json!({ "iat": 0, "nbf": 0 }),
            json!({ "name": 7, "auth_time": "now" }),
        ] {
            let person = verify_claims(&changes);
            assert_eq!(
                person.map(|person| person.subject).as_deref(),
                Ok("1"),
                "{changes}"
            );
        }
    }

    #[test]
    fn invalid_claims_are_refused() {
        let audience = |audience: &[&str]| {
            InvalidToken::Audience(audience.iter().map(|client| (*client).to_owned()).collect())
        };
        let issuer = |issuer: &str| InvalidToken::Issuer(issuer.to_owned());
        let two = || json!(["vouchsafe", "other"]);
        for (changes, expected) in [
            (
                json!({ "iss": "https://id.example/" }),
                issuer("https://id.example/"),
            ),
            (
                json!({ "iss": "https://ID.example" }),
                issuer("https://ID.example"),
            ),
            (json!({ "iss": null }), InvalidToken::Claims),
            (json!({ "iss": ["https://id.example"] }), InvalidToken::Claims),
            (json!({ "aud": "other" }), audience(&["other"])),
            (json!({ "aud": "Vouchsafe" }), audience(&["Vouchsafe"])),
            (json!({ "aud": null }), audience(&[])),
            (json!({ "aud": [] }), audience(&[])),
            (json!({ "aud": two() }), audience(&["vouchsafe", "other"])),
            (
                json!({ "aud": two(), "azp": "vouchsafe" }),
                audience(&["vouchsafe", "other"]),
            ),
            (json!({ "aud": 7 }), InvalidToken::Claims),
            (
                json!({ "azp": "other" }),
                InvalidToken::AuthorizedParty("other".to_owned()),
            ),
            (json!({ "azp": ["vouchsafe"] }), InvalidToken::Claims),
            (json!({ "sub": null }), InvalidToken::Claims),
            (json!({ "sub": 1 }), InvalidToken::Claims),
            (json!({ "sub": "" }), InvalidToken::Subject),
            (json!({ "exp": NOW_S }), InvalidToken::Expired),
            (json!({ "exp": -1 }), InvalidToken::Expired),
            (json!({ "exp": (NOW_S + 300).to_string() }), InvalidToken::Claims),
            (json!({ "exp": [NOW_S + 300] }), InvalidToken::Claims),
            (json!({ "exp": true }), InvalidToken::Claims),
            (json!({ "exp": null }), InvalidToken::Claims),
            (json!({ "nbf": NOW_S + 61 }), InvalidToken::NotYetValid),
            (json!({ "nbf": (NOW_S + 61).to_string() }), InvalidToken::Claims),
            (json!({ "iat": NOW_S + 61 }), InvalidToken::IssuedInFuture),
            (json!({ "iat": "now" }), InvalidToken::Claims),
            (json!({ "iat": null }), InvalidToken::Claims),
            (json!({ "nonce": null }), InvalidToken::Nonce),
            (json!({ "nonce": "" }), InvalidToken::Nonce),
            (json!({ "nonce": "n-2" }), InvalidToken::Nonce),
            (json!({ "nonce": "n-11" }), InvalidToken::Nonce),
            (json!({ "nonce": ["n-1"] }), InvalidToken::Claims),
            (json!({ "email": 7 }), InvalidToken::Claims),
            (json!({ "email_verified": "true" }), InvalidToken::Claims),
            (json!({ "groups": 7 }), InvalidToken::Claims),
        ] {
            assert_eq!(verify_claims(&changes), Err(expected), "{changes}");
        }
    }

    #[test]
    fn time_of_authentication_counts_by_a_permitted_class_only() {
        let gold = ["gold".to_owned(), "platinum".to_owned()];
        for (changes, by_any, by_gold) in [
            (json!({}), None, None),
            (json!({ "acr": "gold" }), None, None),
            (json!({ "auth_time": NOW_S }), Some(NOW_S), None),
            (json!({ "auth_time": NOW_S, "acr": "silver" }), Some(NOW_S), None),
            (json!({ "auth_time": NOW_S, "acr": ["gold"] }), Some(NOW_S), None),
            (
                json!({ "auth_time": NOW_S, "acr": "gold" }),
                Some(NOW_S),
                Some(NOW_S),
            ),
            (json!({ "auth_time": "now", "acr": "gold" }), None, None),
        ] {
            let authentication = verify_claims(&changes).unwrap().authentication;
            assert_eq!(
                (authentication.at_s(&[]), authentication.at_s(&gold)),
                (by_any, by_gold),
                "{changes}"
            );
        }
    }

    #[test]
    fn claim_that_occurs_twice_is_refused() {
        let key = SigningKey::ed25519(1);
        let claims = |more: &str| {
            format!(
                r#"{{"iss":"https://id.example","aud":"vouchsafe","sub":"1","nonce":"n-1","iat":1,"exp":1900000000{more}}}"#
            )
        };
        let verify = |claims: &str| {
            let token = key.token_of_text(claims);
            verify(&token, &key_set(&[key.jwk_json()]), REGISTRATION, "n-1", NOW_S)
        };
        assert!(verify(&claims("")).is_ok());
        for twice in [
            r#","sub":"2""#,
            r#","nonce":"n-1""#,
            r#","aud":"other""#,
            r#","exp":1"#,
            r#","auth_time":1,"auth_time":2"#,
        ] {
            assert_eq!(verify(&claims(twice)), Err(InvalidToken::Claims), "{twice}");
        }
        let twice = r#","email":"a@example.com","email":"b@example.com""#;
        assert_eq!(verify(&claims(twice)), Err(InvalidToken::Claims));
    }

    #[test]
    fn empty_nonce_of_a_sign_in_matches_nothing() {
        let key = SigningKey::ed25519(1);
        let claims =
            r#"{"iss":"https://id.example","aud":"vouchsafe","sub":"1","nonce":"","iat":1,"exp":1900000000}"#;
        let keys = key_set(&[key.jwk_json()]);
        assert_eq!(
            verify(&key.token_of_text(claims), &keys, REGISTRATION, "", NOW_S),
            Err(InvalidToken::Nonce)
        );
    }
}
