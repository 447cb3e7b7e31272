//! Signing keys of the provider (JWK set, RFC 7517), and the choice of one for a token.

use jsonwebtoken::jwk::{Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, Header};
use serde::Deserialize;
use serde_json::Value;

use super::error::InvalidToken;
use super::signature_scheme::SignatureScheme;

#[derive(Debug, Clone)]
pub(super) struct KeySet(Vec<Jwk>);

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

impl KeySet {
    /// Ignores keys of unknown types: providers publish keys for other clients as well.
    pub(super) fn parse(json: &[u8]) -> serde_json::Result<Self> {
        let set: JwkSet = serde_json::from_slice(json)?;
        let keys = set.keys.into_iter();
        Ok(Self(
            keys.filter_map(|key| serde_json::from_value(key).ok()).collect(),
        ))
    }

    /// The only key that fits the header of a token. A token may lack a key ID only if one key fits its
    /// algorithm (OpenID Connect Core 10.1). The header is not verified yet: it chooses among the provider's
    /// keys and decides nothing else.
    pub(super) fn find(&self, header: &Header, scheme: SignatureScheme) -> Result<&Jwk, InvalidToken> {
        let is_named = |key: &&Jwk| header.kid.is_none() || header.kid == key.common.key_id;
        let keys = self.0.iter().filter(is_named);
        let keys: Vec<&Jwk> = keys.filter(|key| is_usable(key, header.alg, scheme)).collect();
        match keys[..] {
            [] => Err(InvalidToken::NoKey),
            [key] => Ok(key),
            _ => Err(InvalidToken::AmbiguousKey(keys.len())),
        }
    }
}

/// Whether the provider permits the key to verify signatures of this algorithm.
fn is_usable(key: &Jwk, algorithm: Algorithm, scheme: SignatureScheme) -> bool {
    let common = &key.common;
    let is_for_signatures = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
    let operations = common.key_operations.as_ref();
    let can_verify = operations.is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    let permitted = common.key_algorithm;
    let has_algorithm = permitted.is_none_or(|permitted| permitted == KeyAlgorithm::from(algorithm));
    is_for_signatures && can_verify && has_algorithm && scheme.has_type_of(&key.algorithm)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find(keys: &Value, algorithm: Algorithm, key_id: Option<&str>) -> Result<String, InvalidToken> {
        let keys = KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap();
        let mut header = Header::new(algorithm);
        header.kid = key_id.map(ToOwned::to_owned);
        let key = keys.find(&header, SignatureScheme::of(algorithm).unwrap())?;
        Ok(key.common.key_id.clone().unwrap_or_default())
    }

    fn rsa(key_id: &str, member: &str, value: Value) -> Value {
        let mut key = json!({ "kty": "RSA", "kid": key_id, "n": "AQAB", "e": "AQAB" });
        key[member] = value;
        key
    }

    #[test]
    fn key_is_found_by_its_id_and_must_be_the_only_one() {
        let one = json!([rsa("a", "use", json!("sig"))]);
        let rotated = json!([rsa("a", "use", json!("sig")), rsa("b", "alg", json!("RS256"))]);
        let same_id = json!([rsa("a", "e", json!("Aw")), rsa("a", "e", json!("AQAB"))]);
        for (keys, key_id, expected) in [
            (&one, Some("a"), Ok("a")),
            (&one, None, Ok("a")),
            (&one, Some("A"), Err(InvalidToken::NoKey)),
            (&one, Some(""), Err(InvalidToken::NoKey)),
            (&rotated, Some("a"), Ok("a")),
            (&rotated, Some("b"), Ok("b")),
            (&rotated, Some("c"), Err(InvalidToken::NoKey)),
            (&rotated, None, Err(InvalidToken::AmbiguousKey(2))),
            (&same_id, Some("a"), Err(InvalidToken::AmbiguousKey(2))),
            (&json!([]), None, Err(InvalidToken::NoKey)),
        ] {
            let found = find(keys, Algorithm::RS256, key_id);
            assert_eq!(found, expected.map(ToOwned::to_owned), "{keys} {key_id:?}");
        }
    }

    #[test]
    fn key_for_another_purpose_is_not_found() {
        for (member, value, is_usable) in [
            ("x", json!(7), true),
            ("use", json!("sig"), true),
            ("use", Value::Null, true),
            ("use", json!("enc"), false),
            ("use", json!("tls"), false),
            ("key_ops", json!(["verify"]), true),
            ("key_ops", json!(["encrypt", "wrapKey"]), false),
            ("key_ops", json!([]), false),
            ("alg", json!("RS256"), true),
            ("alg", json!("RS512"), false),
            ("alg", json!("RSA-OAEP"), false),
            ("alg", json!("a-new-one"), false),
            ("alg", json!(7), false),
            ("n", json!(7), false),
            ("kty", json!("oct"), false),
            ("kty", json!("a-new-one"), false),
        ] {
            let keys = json!([rsa("a", member, value)]);
            let found = find(&keys, Algorithm::RS256, Some("a"));
            assert_eq!(found.is_ok(), is_usable, "{keys}");
        }
    }

    #[test]
    fn unusable_keys_in_a_set_are_ignored() {
        let keys = json!([
            7,
            {},
            { "kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA" },
            { "kty": "OKP", "crv": "X25519", "x": "AA" },
            { "kty": "EC", "crv": "P-384", "x": "AA", "y": "AA" },
            { "kty": "oct", "k": "AA" },
            { "kty": "EC", "crv": "P-256", "kid": "p256", "x": "AA", "y": "AA" },
            { "kty": "OKP", "crv": "Ed25519", "kid": "ed25519", "x": "AA" },
        ]);
        let find = |algorithm| find(&keys, algorithm, None);
        assert_eq!(find(Algorithm::ES256).as_deref(), Ok("p256"));
        assert_eq!(find(Algorithm::EdDSA).as_deref(), Ok("ed25519"));
        assert_eq!(find(Algorithm::PS256), Err(InvalidToken::NoKey));
        assert!(KeySet::parse(br#"{"keys":{}}"#).is_err());
        assert!(KeySet::parse(b"{}").is_err());
    }
}
