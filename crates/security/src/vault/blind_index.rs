//! Blind index: keyed hash for detecting duplicate codes.
//!
//! Two HMACs are stored with the encrypted code, each under a unique index, so that the database rejects a
//! duplicate without knowing the code: the blind index of brand, code and PIN, and the code index of brand
//! and code, which finds the same code with another PIN. The key never changes; beyond this it derives the
//! keys of the audit checkpoints, of request fingerprints and of the rows that grant access. The brand is
//! compared trimmed and without regard to case. Brand, code and PIN are identifiers: another spelling that
//! looks the same has the same index.
//!
//! An attacker with both the key and the index could find short codes by trying them all. The key is
//! therefore stored wrapped like the data keys, and the index is never shown.

use std::borrow::Cow;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use vouchsafe_domain::product::{CodeCase, CodeScope};

use super::aead::KeyBytes;
use super::checkpoint_key::CheckpointKey;
use super::code::VoucherCode;
use crate::secret::{hidden, keyed_hash};

/// Begins the message of a code index. No brand is as long, so the message differs from that of every blind
/// index, also of a code without a PIN.
const CODE_INDEX_PREFIX: [u8; 8] = [0xff; 8];

/// The keyed hash of a code of a brand, 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlindIndex([u8; 32]);

impl BlindIndex {
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

hidden!(BlindIndex);

pub(super) struct BlindIndexKey(KeyBytes);

impl BlindIndexKey {
    pub(super) const fn new(bytes: KeyBytes) -> Self {
        Self(bytes)
    }

    /// The key of the audit checkpoints.
    pub(super) fn derive_checkpoint_key(&self) -> CheckpointKey {
        CheckpointKey::new(*self.derive(b"vouchsafe audit checkpoint v1"))
    }

    /// Index of brand, code and PIN. Brand and code are prefixed with their lengths and the PIN comes last,
    /// so that the parts cannot run into each other.
    pub(super) fn compute(&self, scope: CodeScope<'_>, code: &VoucherCode) -> BlindIndex {
        let [code, pin] = code.identity();
        self.hash(&[], scope, code, pin)
    }

    /// Index of brand and code.
    pub(super) fn compute_without_pin(&self, scope: CodeScope<'_>, code: &VoucherCode) -> BlindIndex {
        self.hash(&CODE_INDEX_PREFIX, scope, code.identity()[0], "")
    }

    /// Derives a key for another purpose. Read as the length of a brand, the first eight bytes of `context`
    /// must exceed every brand: no index has the same value then.
    pub(super) fn derive(&self, context: &[u8]) -> KeyBytes {
        KeyBytes::new(self.mac().chain_update(context).finalize().into_bytes().into())
    }

    fn mac(&self) -> Hmac<Sha256> {
        keyed_hash(&*self.0)
    }

    fn hash(&self, prefix: &[u8], scope: CodeScope<'_>, code: &str, pin: &str) -> BlindIndex {
        let brand = scope.brand_key();
        let [code, pin] = [code, pin].map(|text| match scope.case {
            CodeCase::Exact => Cow::Borrowed(text),
            CodeCase::Ignored => Cow::Owned(text.to_lowercase()),
        });
        let (code, pin) = (&*code, &*pin);
        let framed = self
            .mac()
            .chain_update(prefix)
            .chain_update(length_prefix(&brand))
            .chain_update(&brand)
            .chain_update(length_prefix(code))
            .chain_update(code)
            .chain_update(pin);
        BlindIndex(framed.finalize().into_bytes().into())
    }
}

fn length_prefix(text: &str) -> [u8; 8] {
    (text.len() as u64).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use hmac::KeyInit as _;
    use zeroize::Zeroizing;

    use super::*;
    use crate::vault::code::CodeParts;

    fn index(key: u8, brand: &str, code: &str, pin: Option<&str>) -> BlindIndex {
        let code = VoucherCode::parse(CodeParts {
            code,
            pin,
            ..CodeParts::default()
        })
        .unwrap();
        BlindIndexKey::new(Zeroizing::new([key; 32])).compute(CodeScope::exact(brand), &code)
    }

    #[test]
    fn index_ignores_brand_case_and_outer_white_space() {
        let one = index(1, "Acme", "AB-12", Some("42"));
        for (brand, code, pin) in [
            ("Acme", " AB-12 ", " 42"),
            (" acme", "AB-12", "42"),
            ("ACME ", "AB-12\n", "42"),
        ] {
            assert_eq!(
                index(1, brand, code, Some(pin)),
                one,
                "{brand:?} {code:?} {pin:?}"
            );
        }
        assert_eq!(index(1, "Acme", "AB", None), index(1, "Acme", "AB", Some(" ")));
    }

    #[test]
    fn index_ignores_case_where_the_brand_says_so() {
        let key = BlindIndexKey::new(Zeroizing::new([1; 32]));
        let index = |case, code: &str, pin: &str| {
            let parts = CodeParts {
                code,
                pin: Some(pin),
                ..CodeParts::default()
            };
            let code = VoucherCode::parse(parts).unwrap();
            let scope = CodeScope { brand: "Acme", case };
            (key.compute(scope, &code), key.compute_without_pin(scope, &code))
        };
        assert_eq!(
            index(CodeCase::Ignored, "ab-\u{e9}", "X"),
            index(CodeCase::Ignored, "AB-E\u{301}", "x")
        );
        assert_ne!(
            index(CodeCase::Exact, "ab-1", "x"),
            index(CodeCase::Exact, "AB-1", "x")
        );
        assert_eq!(
            index(CodeCase::Exact, "ab-1", "x"),
            index(CodeCase::Ignored, "AB-1", "X")
        );
    }

    #[test]
    fn index_ignores_serial_and_url() {
        let parts = CodeParts {
            code: "AB",
            pin: None,
            serial: Some("s"),
            url: Some("https://x.example"),
        };
        let code = VoucherCode::parse(parts).unwrap();
        let with = BlindIndexKey::new(Zeroizing::new([1; 32])).compute(CodeScope::exact("Acme"), &code);
        assert_eq!(with, index(1, "Acme", "AB", None));
    }

    #[test]
    fn index_differs_by_key_brand_code_and_pin() {
        let one = index(1, "Acme", "AB-12", Some("42"));
        for other in [
            index(2, "Acme", "AB-12", Some("42")),
            index(1, "Acm", "eAB-12", Some("42")),
            index(1, "AcmeA", "B-12", Some("42")),
            index(1, "Acme", "AB-1", Some("242")),
            index(1, "Acme", "AB-1242", None),
            index(1, "Acme", "ab-12", Some("42")),
            index(1, "Acme", "AB-12", None),
        ] {
            assert_ne!(other, one);
        }
    }

    #[test]
    fn code_index_ignores_the_pin_only() {
        let code_index = |brand: &str, code: &str, pin: Option<&str>| {
            let parts = CodeParts {
                code,
                pin,
                ..CodeParts::default()
            };
            let code = VoucherCode::parse(parts).unwrap();
            BlindIndexKey::new(Zeroizing::new([1; 32])).compute_without_pin(CodeScope::exact(brand), &code)
        };
        let one = code_index("Acme", "AB-12", Some("42"));
        assert_eq!(code_index(" acme", "AB-12 ", None), one);
        for (brand, code) in [("Acm", "eAB-12"), ("Acme", "AB-1"), ("Acme", "AB-1242")] {
            assert_ne!(code_index(brand, code, Some("42")), one, "{brand} {code}");
        }
        assert_ne!(
            index(1, "Acme", "AB-12", None),
            one,
            "the two kinds of index differ"
        );
    }

    #[test]
    fn index_is_stable_across_versions() {
        let message = b"\0\0\0\0\0\0\0\x04acme\0\0\0\0\0\0\0\x02AB42";
        let mac = Hmac::<Sha256>::new_from_slice(&[1; 32])
            .unwrap()
            .chain_update(message);
        let expected: [u8; 32] = mac.finalize().into_bytes().into();
        assert_eq!(index(1, "Acme", "AB", Some("42")).as_bytes(), &expected);
        let without_pin = b"\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\x04acme\0\0\0\0\0\0\0\x02AB";
        let mac = Hmac::<Sha256>::new_from_slice(&[1; 32])
            .unwrap()
            .chain_update(without_pin);
        let expected: [u8; 32] = mac.finalize().into_bytes().into();
        let parts = CodeParts {
            code: "AB",
            pin: Some("42"),
            ..CodeParts::default()
        };
        let code = VoucherCode::parse(parts).unwrap();
        let found =
            BlindIndexKey::new(Zeroizing::new([1; 32])).compute_without_pin(CodeScope::exact("Acme"), &code);
        assert_eq!(found.as_bytes(), &expected);
        assert_eq!(format!("{:?}", index(1, "Acme", "AB", None)), "BlindIndex(***)");
    }
}
