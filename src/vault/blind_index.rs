//! Was this code sold before?
//!
//! A keyed hash of brand, code and PIN stands beside the sealed code under a unique index, so that the database can
//! refuse a code twice without knowing it. The rules: the key is used for nothing else and never changes; the brand is
//! compared without regard to case and space around it, code and PIN exactly as they were taken in (trimmed). No
//! Unicode normalisation is done: vendors print codes in ASCII, and two encodings of one letter count as two codes.
//!
//! Short codes could be found by trying them all, by whoever has the key as well as the index. So the key is kept as
//! the data keys are, and the index is never shown.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::aead::KeyBytes;
use super::code::VoucherCode;

/// The keyed hash of one code of one brand, 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlindIndex([u8; 32]);

impl BlindIndex {
    /// The bytes, as written to the database.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for BlindIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BlindIndex(***)")
    }
}

/// The key of the index.
pub(super) struct BlindIndexKey(KeyBytes);

impl BlindIndexKey {
    pub(super) const fn new(bytes: KeyBytes) -> Self {
        Self(bytes)
    }

    /// The index of a code: brand and code behind their lengths, then the PIN, so that no two run into each other.
    pub(super) fn compute(&self, brand: &str, code: &VoucherCode) -> BlindIndex {
        let brand = brand.trim().to_lowercase();
        let (code, pin) = code.identity();
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(&*self.0) else {
            unreachable!("HMAC takes a key of any length");
        };
        let framed = mac
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
        BlindIndexKey::new(Zeroizing::new([key; 32])).compute(brand, &code)
    }

    #[test]
    fn one_code_and_pin_of_a_brand_have_one_index() {
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
    fn serial_and_url_do_not_make_it_another_code() {
        let parts = CodeParts {
            code: "AB",
            pin: None,
            serial: Some("s"),
            url: Some("https://x.example"),
        };
        let code = VoucherCode::parse(parts).unwrap();
        let with = BlindIndexKey::new(Zeroizing::new([1; 32])).compute("Acme", &code);
        assert_eq!(with, index(1, "Acme", "AB", None));
    }

    #[test]
    fn another_key_brand_code_or_pin_is_another_index() {
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
    fn it_stays_the_same_from_build_to_build() {
        let message = b"\0\0\0\0\0\0\0\x04acme\0\0\0\0\0\0\0\x02AB42";
        let mac = Hmac::<Sha256>::new_from_slice(&[1; 32])
            .unwrap()
            .chain_update(message);
        let expected: [u8; 32] = mac.finalize().into_bytes().into();
        assert_eq!(index(1, "Acme", "AB", Some("42")).as_bytes(), &expected);
        assert_eq!(format!("{:?}", index(1, "Acme", "AB", None)), "BlindIndex(***)");
    }
}
