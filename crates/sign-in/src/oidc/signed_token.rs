//! Signed tokens (JWS compact serialization, RFC 7515) of the provider.
//!
//! [`jsonwebtoken`] parses headers and keys. Its `decode` is not used: it needs a crypto provider of the
//! whole process, panics without one, and compares times with a clock that is no parameter.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Header, decode_header};
use serde::de::DeserializeOwned;

use super::error::InvalidToken;
use super::key_set::KeySet;
use super::signature_scheme::SignatureScheme;

/// Values of the header field `typ`, in lower case (RFC 7515 4.1.9).
const TYPES: [&str; 4] = ["jwt", "application/jwt", "jose", "application/jose"];

/// Verifies the signature of a token and returns its claims. Parses the payload only after that.
pub(super) fn verify_token<T: DeserializeOwned>(token: &str, keys: &KeySet) -> Result<T, InvalidToken> {
    let (message, signature) = token.rsplit_once('.').ok_or(InvalidToken::Malformed)?;
    let (_, payload) = message.split_once('.').ok_or(InvalidToken::Malformed)?;
    let signature = decode(signature)?;
    let header = decode_header(token).map_err(|_| InvalidToken::Header)?;
    check_header(&header)?;
    let scheme = SignatureScheme::of(header.alg).ok_or(InvalidToken::Algorithm(header.alg))?;
    let key = keys.find(&header, scheme)?;
    scheme.verify(key, message.as_bytes(), &signature)?;
    // The message of serde quotes the claim, which may be a person's data.
    serde_json::from_slice(&decode(payload)?).map_err(|_| InvalidToken::Claims)
}

/// Refuses tokens that are no plain claims, or whose meaning depends on an extension.
fn check_header(header: &Header) -> Result<(), InvalidToken> {
    let is_token = |name: &String| TYPES.contains(&name.to_ascii_lowercase().as_str());
    if !header.typ.as_ref().is_none_or(is_token) {
        return Err(InvalidToken::HeaderField("typ"));
    }
    if header.cty.is_some() {
        return Err(InvalidToken::HeaderField("cty"));
    }
    if header.crit.is_some() {
        return Err(InvalidToken::HeaderField("crit"));
    }
    Ok(())
}

fn decode(part: &str) -> Result<Vec<u8>, InvalidToken> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| InvalidToken::Malformed)
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::Algorithm;
    use serde_json::{Value, json};

    use super::*;
    use crate::oidc::testing::{ALGORITHMS, SigningKey, key_set, message, sign_hs256};

    fn claims_of(token: &str, keys: &[Value]) -> Result<Value, InvalidToken> {
        verify_token(token, &key_set(keys))
    }

    #[test]
    fn token_of_each_algorithm_is_verified() {
        for algorithm in ALGORITHMS {
            let key = SigningKey::for_algorithm(algorithm);
            let token = key.token(algorithm, &json!({}), &json!({ "a": 1 }));
            assert_eq!(
                claims_of(&token, &[key.jwk_json()]),
                Ok(json!({ "a": 1 })),
                "{algorithm:?}"
            );
        }
    }

    #[test]
    fn algorithm_of_another_family_than_the_key_is_refused() {
        for signed_with in ALGORITHMS {
            let key = SigningKey::for_algorithm(signed_with);
            for algorithm in ALGORITHMS
                .into_iter()
                .filter(|other| other.family() != signed_with.family())
            {
                let message = message(&json!({ "alg": format!("{algorithm:?}") }), &json!({}));
                let token = key.sign_message(signed_with, &message);
                assert_eq!(
                    claims_of(&token, &[key.jwk_json()]),
                    Err(InvalidToken::NoKey),
                    "{signed_with:?} as {algorithm:?}"
                );
            }
        }
    }

    #[test]
    fn unsigned_and_symmetric_tokens_are_refused() {
        let key = SigningKey::for_algorithm(Algorithm::RS256);
        let public_key = key.jwk_json();
        let public_modulus = public_key["n"].as_str().unwrap();
        let shared = json!({ "kty": "oct", "k": URL_SAFE_NO_PAD.encode("a-secret-of-the-client") });
        let none = message(&json!({ "alg": "none" }), &json!({}));
        for (token, expected) in [
            (format!("{none}."), InvalidToken::Header),
            (key.sign_message(Algorithm::RS256, &none), InvalidToken::Header),
            (
                sign_hs256("a-secret-of-the-client", &json!({})),
                InvalidToken::Algorithm(Algorithm::HS256),
            ),
            (
                sign_hs256(public_modulus, &json!({})),
                InvalidToken::Algorithm(Algorithm::HS256),
            ),
        ] {
            let keys = [public_key.clone(), shared.clone()];
            assert_eq!(claims_of(&token, &keys), Err(expected), "{token}");
        }
    }

    #[test]
    fn header_fields_that_change_the_meaning_are_refused() {
        let key = SigningKey::for_algorithm(Algorithm::EdDSA);
        for (field, value, is_accepted) in [
            ("typ", json!("JWT"), true),
            ("typ", json!("application/jwt"), true),
            ("typ", json!("JOSE"), true),
            ("typ", json!("at+jwt"), false),
            ("typ", json!("logout+jwt"), false),
            ("typ", json!(7), false),
            ("cty", json!("JWT"), false),
            ("crit", json!(["exp"]), false),
            ("crit", json!([]), false),
            ("jwk", key.other_jwk_json(), true),
            ("jku", json!("https://evil.example/keys"), true),
            ("kid", json!(7), false),
        ] {
            let token = key.token(Algorithm::EdDSA, &json!({ field: value }), &json!({}));
            let claims = claims_of(&token, &[key.jwk_json()]);
            assert_eq!(claims.is_ok(), is_accepted, "{field} {value}: {claims:?}");
        }
    }

    #[test]
    fn key_of_the_header_is_never_used() {
        let (key, other) = (SigningKey::ed25519(1), SigningKey::ed25519(2));
        let header = json!({ "jwk": other.jwk_json() });
        let token = other.token(Algorithm::EdDSA, &header, &json!({}));
        assert_eq!(claims_of(&token, &[key.jwk_json()]), Err(InvalidToken::Signature));
    }

    #[test]
    fn key_rotation_accepts_the_keys_that_the_provider_publishes() {
        let keys = [1, 2, 3].map(SigningKey::ed25519);
        let published = |numbers: &[usize]| {
            let key = |number: &usize| {
                let mut key = keys[*number].jwk_json();
                key["kid"] = json!(number.to_string());
                key
            };
            numbers.iter().map(key).collect::<Vec<_>>()
        };
        let token = |number: usize| {
            keys[number].token(
                Algorithm::EdDSA,
                &json!({ "kid": number.to_string() }),
                &json!({}),
            )
        };
        for (set, number, expected) in [
            (&[0, 1][..], 0, Ok(json!({}))),
            (&[0, 1], 1, Ok(json!({}))),
            (&[1, 2], 2, Ok(json!({}))),
            (&[1, 2], 0, Err(InvalidToken::NoKey)),
        ] {
            assert_eq!(
                claims_of(&token(number), &published(set)),
                expected,
                "{set:?} {number}"
            );
        }
        let without_id = keys[1].token(Algorithm::EdDSA, &json!({}), &json!({}));
        assert_eq!(claims_of(&without_id, &published(&[1])), Ok(json!({})));
        assert_eq!(
            claims_of(&without_id, &published(&[0, 1])),
            Err(InvalidToken::AmbiguousKey(2))
        );
    }

    #[test]
    fn small_rsa_key_is_refused_with_its_size() {
        let key = SigningKey::for_algorithm(Algorithm::RS256);
        let token = key.token(Algorithm::RS256, &json!({}), &json!({}));
        let mut public_key = key.jwk_json();
        public_key["n"] = json!(URL_SAFE_NO_PAD.encode([0xff; 128]));
        assert_eq!(
            claims_of(&token, &[public_key]),
            Err(InvalidToken::RsaKeySize(1024))
        );
        let mut public_key = key.jwk_json();
        public_key["n"] = json!("not base64url!");
        assert_eq!(claims_of(&token, &[public_key]), Err(InvalidToken::Key));
    }

    #[test]
    fn truncated_or_altered_token_is_refused() {
        let key = SigningKey::for_algorithm(Algorithm::ES256);
        let keys = [key.jwk_json()];
        let token = key.token(Algorithm::ES256, &json!({}), &json!({ "sub": "1" }));
        assert!(claims_of(&token, &keys).is_ok());
        for end in 0..token.len() {
            assert!(claims_of(&token[..end], &keys).is_err(), "{end}");
        }
        let parts: Vec<&str> = token.split('.').collect();
        let payload = URL_SAFE_NO_PAD.encode(r#"{"sub":"2"}"#);
        for altered in [
            format!("{}.{payload}.{}", parts[0], parts[2]),
            format!("{token}="),
            format!("{token}."),
            format!("{token}.{}", parts[2]),
            format!(".{token}"),
            format!(" {token}"),
            format!("{token}\n"),
            "..".to_owned(),
        ] {
            assert!(claims_of(&altered, &keys).is_err(), "{altered}");
        }
        let no_object = key.token(Algorithm::ES256, &json!({}), &json!("text"));
        let claims: Result<serde_json::Map<_, _>, _> = verify_token(&no_object, &key_set(&keys));
        assert_eq!(claims, Err(InvalidToken::Claims));
    }
}
