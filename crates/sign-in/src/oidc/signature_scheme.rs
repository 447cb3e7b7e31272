//! Signature algorithms of tokens (RFC 7518, RFC 8037), verified with ring.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, EcdsaVerificationAlgorithm,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};

use super::error::InvalidToken;

/// An asymmetric algorithm: with a symmetric one, the client secret would sign identities.
#[derive(Clone, Copy)]
pub(super) enum SignatureScheme {
    Rsa(&'static RsaParameters),
    Ecdsa(Curve),
    Ed25519,
}

#[derive(Clone, Copy)]
pub(super) enum Curve {
    P256,
    P384,
}

impl SignatureScheme {
    /// `None` if signatures of the algorithm are not accepted.
    pub(super) const fn of(algorithm: Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::RS256 => Self::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Self::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Self::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Self::Rsa(&RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Self::Rsa(&RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Self::Rsa(&RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Self::Ecdsa(Curve::P256),
            Algorithm::ES384 => Self::Ecdsa(Curve::P384),
            Algorithm::EdDSA => Self::Ed25519,
            _ => return None,
        })
    }

    /// Whether a key is of the type and on the curve that the algorithm requires.
    pub(super) fn has_type_of(self, key: &AlgorithmParameters) -> bool {
        match (self, key) {
            (Self::Rsa(_), AlgorithmParameters::RSA(_)) => true,
            (Self::Ecdsa(Curve::P256), AlgorithmParameters::EllipticCurve(key)) => {
                key.curve == EllipticCurve::P256
            }
            (Self::Ecdsa(Curve::P384), AlgorithmParameters::EllipticCurve(key)) => {
                key.curve == EllipticCurve::P384
            }
            (Self::Ed25519, AlgorithmParameters::OctetKeyPair(key)) => key.curve == EllipticCurve::Ed25519,
            _ => false,
        }
    }

    pub(super) fn verify(self, key: &Jwk, message: &[u8], signature: &[u8]) -> Result<(), InvalidToken> {
        let key = DecodingKey::from_jwk(key).map_err(|_| InvalidToken::Key)?;
        let verified = match (self, key.kind()) {
            (Self::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let key = rsa_key(n, e)?;
                key.verify(parameters, message, signature)
            }
            (Self::Ecdsa(curve), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(curve.algorithm(), point).verify(message, signature)
            }
            (Self::Ed25519, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            _ => return Err(InvalidToken::Key),
        };
        verified.map_err(|_| InvalidToken::Signature)
    }
}

impl Curve {
    fn algorithm(self) -> &'static EcdsaVerificationAlgorithm {
        match self {
            Self::P256 => &ECDSA_P256_SHA256_FIXED,
            Self::P384 => &ECDSA_P384_SHA384_FIXED,
        }
    }
}

/// Checks the size here: ring does not tell a small key from a wrong signature.
fn rsa_key<'a>(
    modulus: &'a [u8],
    exponent: &'a [u8],
) -> Result<RsaPublicKeyComponents<&'a [u8]>, InvalidToken> {
    let (n, e) = (without_leading_zeros(modulus), without_leading_zeros(exponent));
    let bits = n
        .first()
        .map_or(0, |first| n.len() * 8 - first.leading_zeros() as usize);
    if (2048..=8192).contains(&bits) {
        Ok(RsaPublicKeyComponents { n, e })
    } else {
        Err(InvalidToken::RsaKeySize(bits))
    }
}

/// Some providers prefix a zero as in DER, against RFC 7518 6.3.1.1; ring refuses it.
fn without_leading_zeros(integer: &[u8]) -> &[u8] {
    let zeros = integer.iter().take_while(|byte| **byte == 0).count();
    integer.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oidc::testing::{ALGORITHMS, SigningKey};

    #[test]
    fn signature_is_valid_for_its_own_algorithm_key_and_message_only() {
        for (signed_with, key) in
            ALGORITHMS.map(|algorithm| (algorithm, SigningKey::for_algorithm(algorithm)))
        {
            let signature = key.sign(signed_with, b"a message");
            for algorithm in ALGORITHMS {
                let scheme = SignatureScheme::of(algorithm).unwrap();
                let verified = scheme.verify(&key.jwk(), b"a message", &signature);
                assert_eq!(
                    verified.is_ok(),
                    algorithm == signed_with,
                    "{signed_with:?} as {algorithm:?}: {verified:?}"
                );
            }
            let scheme = SignatureScheme::of(signed_with).unwrap();
            let verify = |key, message, signature| scheme.verify(key, message, signature);
            let invalid = Err(InvalidToken::Signature);
            let (key, other_key) = (key.jwk(), key.other_jwk());
            assert_eq!(
                verify(&other_key, b"a message", &signature),
                invalid,
                "{signed_with:?}"
            );
            assert_eq!(verify(&key, b"A message", &signature), invalid, "{signed_with:?}");
            assert_eq!(
                verify(&key, b"a message", &signature[1..]),
                invalid,
                "{signed_with:?}"
            );
            assert_eq!(verify(&key, b"a message", &[]), invalid, "{signed_with:?}");
            let mut altered = signature.clone();
            altered[9] ^= 1;
            assert_eq!(verify(&key, b"a message", &altered), invalid, "{signed_with:?}");
        }
    }

    #[test]
    fn symmetric_algorithms_have_no_scheme() {
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            assert!(SignatureScheme::of(algorithm).is_none(), "{algorithm:?}");
        }
    }

    #[test]
    fn rsa_key_has_2048_to_8192_bits_and_perhaps_leading_zeros() {
        let size = |modulus: &[u8]| rsa_key(modulus, &[0, 3]).map(|key| (key.n.len(), key.e.len()));
        let too_small = |bits| Err(InvalidToken::RsaKeySize(bits));
        assert_eq!(size(&[0x80; 128]), too_small(1024));
        assert_eq!(size(&[0x7f; 256]), too_small(2047));
        assert_eq!(size(&[]), too_small(0));
        assert_eq!(size(&[0; 256]), too_small(0));
        assert_eq!(size(&[0x80; 256]), Ok((256, 1)));
        assert_eq!(size(&[&[0, 0][..], &[0x80; 256]].concat()), Ok((256, 1)));
        assert_eq!(size(&[0xff; 1024]), Ok((1024, 1)));
        assert_eq!(size(&[1; 1025]), too_small(8193));
    }
}
