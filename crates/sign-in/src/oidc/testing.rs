//! Keys and tokens of a provider for tests.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;
use jsonwebtoken::jwk::Jwk;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaEncoding, RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};

use super::key_set::KeySet;

/// All algorithms that are accepted.
pub(super) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// A key for tests only: PKCS #8 of an RSA key of 2048 bits in base64, made by `openssl genpkey`.
const RSA_TEST_KEY: &str = include_str!("rsa_test_key.b64");

pub(super) enum SigningKey {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(&'static str, EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    pub(super) fn for_algorithm(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::ES256 | Algorithm::ES384 => {
                let (curve, scheme) = match algorithm {
                    Algorithm::ES256 => ("P-256", &ECDSA_P256_SHA256_FIXED_SIGNING),
                    _ => ("P-384", &ECDSA_P384_SHA384_FIXED_SIGNING),
                };
                let random = SystemRandom::new();
                let pkcs8 = EcdsaKeyPair::generate_pkcs8(scheme, &random).unwrap();
                let key = EcdsaKeyPair::from_pkcs8(scheme, pkcs8.as_ref(), &random).unwrap();
                Self::Ecdsa(curve, key)
            }
            Algorithm::EdDSA => Self::ed25519(1),
            _ => {
                let pkcs8 = STANDARD.decode(RSA_TEST_KEY.replace('\n', "")).unwrap();
                Self::Rsa(Box::new(RsaKeyPair::from_pkcs8(&pkcs8).unwrap()))
            }
        }
    }

    pub(super) fn ed25519(seed: u8) -> Self {
        Self::Ed25519(Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap())
    }

    /// Signs with an algorithm of the key's type.
    pub(super) fn sign(&self, algorithm: Algorithm, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Rsa(key) => {
                let encoding: &dyn RsaEncoding = match algorithm {
                    Algorithm::RS256 => &RSA_PKCS1_SHA256,
                    Algorithm::RS384 => &RSA_PKCS1_SHA384,
                    Algorithm::RS512 => &RSA_PKCS1_SHA512,
                    Algorithm::PS256 => &RSA_PSS_SHA256,
                    Algorithm::PS384 => &RSA_PSS_SHA384,
                    Algorithm::PS512 => &RSA_PSS_SHA512,
                    _ => panic!("{algorithm:?}"),
                };
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(encoding, &SystemRandom::new(), message, &mut signature)
                    .unwrap();
                signature
            }
            Self::Ecdsa(_, key) => key.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec(),
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
        }
    }

    pub(super) fn jwk_json(&self) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Rsa(key) => {
                let key = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({ "kty": "RSA", "n": encode(&key.n), "e": encode(&key.e) })
            }
            Self::Ecdsa(curve, key) => {
                let point = &key.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                json!({ "kty": "EC", "crv": curve, "x": encode(x), "y": encode(y) })
            }
            Self::Ed25519(key) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(key.public_key().as_ref()) })
            }
        }
    }

    pub(super) fn jwk(&self) -> Jwk {
        serde_json::from_value(self.jwk_json()).unwrap()
    }

    /// A public key of the same type that is not that of this key.
    pub(super) fn other_jwk_json(&self) -> Value {
        match self {
            Self::Rsa(key) => {
                let mut key = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                key.n[100] ^= 1;
                json!({ "kty": "RSA", "n": URL_SAFE_NO_PAD.encode(&key.n), "e": "AQAB" })
            }
            Self::Ecdsa("P-256", _) => Self::for_algorithm(Algorithm::ES256).jwk_json(),
            Self::Ecdsa(..) => Self::for_algorithm(Algorithm::ES384).jwk_json(),
            Self::Ed25519(_) => Self::ed25519(99).jwk_json(),
        }
    }

    pub(super) fn other_jwk(&self) -> Jwk {
        serde_json::from_value(self.other_jwk_json()).unwrap()
    }

    /// A token with these fields in its header besides the algorithm.
    pub(super) fn token(&self, algorithm: Algorithm, header: &Value, claims: &Value) -> String {
        let mut header = header.clone();
        header["alg"] = json!(algorithm);
        self.sign_message(algorithm, &message(&header, claims))
    }

    /// A token with claims that may not be valid JSON, signed with Ed25519.
    pub(super) fn token_of_text(&self, claims: &str) -> String {
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"EdDSA"}"#);
        let message = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims));
        self.sign_message(Algorithm::EdDSA, &message)
    }

    pub(super) fn sign_message(&self, algorithm: Algorithm, message: &str) -> String {
        let signature = self.sign(algorithm, message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Header and claims, as they are signed.
pub(super) fn message(header: &Value, claims: &Value) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", encode(header), encode(claims))
}

pub(super) fn sign_hs256(secret: &str, claims: &Value) -> String {
    let message = message(&json!({ "alg": "HS256" }), claims);
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signature = hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

pub(super) fn key_set(keys: &[Value]) -> KeySet {
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}
