//! Tests that an encrypted code decrypts only in its own row, and that no output reveals it.

use proptest::prelude::*;
use vouchsafe_domain::money::Amount;

use super::*;
use crate::vault::code::CodeParts;

const BLIND: KeyId = KeyId(1);

fn generate(key_id: KeyId, purpose: KeyPurpose) -> DataKey {
    DataKey::generate(key_id, purpose).unwrap()
}

/// A blind index key and the given data keys.
fn keys(codes: &[i32]) -> Vec<DataKey> {
    let codes = codes.iter().map(|&id| generate(KeyId(id), KeyPurpose::Codes));
    [generate(BLIND, KeyPurpose::BlindIndex)]
        .into_iter()
        .chain(codes)
        .collect()
}

pub(super) fn vault() -> Vault {
    Vault::new(&keys(&[2]), 0).unwrap()
}

fn sku(product: &str, denomination: i64) -> Sku {
    Sku {
        product_id: product.parse().unwrap(),
        denomination: Amount::from_minor(denomination),
    }
}

fn code(text: &str) -> VoucherCode {
    VoucherCode::parse(CodeParts {
        code: text,
        pin: Some("0042"),
        ..CodeParts::default()
    })
    .unwrap()
}

fn parts_of(code: &VoucherCode) -> Vec<(&'static str, String)> {
    code.parts()
        .map(|(part, text)| (part.into_str(), text.to_owned()))
        .collect()
}

#[test]
fn sealed_code_opens_in_its_row() {
    let (vault, sku) = (vault(), sku("amzn-us", 2500));
    let sealed = vault.seal(CodeId(7), &sku, &code("AB-12")).unwrap();
    let opened = vault.open(CodeId(7), &sku, &sealed).unwrap();
    assert_eq!(
        parts_of(&opened),
        [("code", "AB-12".to_owned()), ("pin", "0042".to_owned())]
    );
    assert_eq!(sealed.key_id, KeyId(2));
    assert!(!sealed.ciphertext.windows(5).any(|part| part == b"AB-12"));
}

#[test]
fn code_of_another_row_or_sku_is_refused() {
    let (vault, place) = (vault(), sku("amzn-us", 2500));
    let sealed = vault.seal(CodeId(7), &place, &code("AB-12")).unwrap();
    for (code_id, other) in [
        (8, place.clone()),
        (-7, place.clone()),
        (7, sku("amzn-us", 5000)),
        (7, sku("amzn-us", 250)),
        (7, sku("amzn-u", 2500)),
        (7, sku("amzn-us2", 2500)),
    ] {
        let code_id = CodeId(code_id);
        let refused = vault.open(code_id, &other, &sealed).err();
        assert_eq!(
            refused,
            Some(OpenError::AuthenticationFailed { code_id }),
            "{other}"
        );
    }
}

#[test]
fn swapped_rows_are_refused() {
    let (vault, sku) = (vault(), sku("amzn-us", 2500));
    let first = vault.seal(CodeId(1), &sku, &code("first")).unwrap();
    let second = vault.seal(CodeId(2), &sku, &code("second")).unwrap();
    assert!(vault.open(CodeId(1), &sku, &second).is_err());
    assert!(vault.open(CodeId(2), &sku, &first).is_err());
}

#[test]
fn blob_with_any_altered_byte_is_refused() {
    let (vault, sku) = (vault(), sku("amzn-us", 2500));
    let good = vault.seal(CodeId(7), &sku, &code("AB-12")).unwrap();
    let refused = Some(OpenError::AuthenticationFailed { code_id: CodeId(7) });
    for at in 0..good.ciphertext.len() {
        let mut sealed = good.clone();
        sealed.ciphertext[at] ^= 0x80;
        assert_eq!(vault.open(CodeId(7), &sku, &sealed).err(), refused, "byte {at}");
        sealed = SealedBlob {
            ciphertext: good.ciphertext[..at].to_vec(),
            ..good.clone()
        };
        assert_eq!(vault.open(CodeId(7), &sku, &sealed).err(), refused, "cut at {at}");
    }
    for at in 0..NONCE_BYTES {
        let mut sealed = good.clone();
        sealed.nonce[at] ^= 1;
        assert_eq!(
            vault.open(CodeId(7), &sku, &sealed).err(),
            refused,
            "nonce byte {at}"
        );
    }
}

#[test]
fn rotation_seals_with_the_new_key_and_opens_with_both() {
    let (keys, sku) = (keys(&[2, 3]), sku("amzn-us", 2500));
    let before = Vault::new(&keys[..2], 0).unwrap();
    let old = before.seal(CodeId(1), &sku, &code("old")).unwrap();
    let after = Vault::new(&keys, 0).unwrap();
    let new = after.seal(CodeId(2), &sku, &code("new")).unwrap();
    assert_eq!(
        (old.key_id, new.key_id, after.active_key()),
        (KeyId(2), KeyId(3), KeyId(3))
    );
    assert_eq!(
        parts_of(&after.open(CodeId(1), &sku, &old).unwrap()),
        parts_of(&code("old"))
    );
    assert_eq!(
        parts_of(&after.open(CodeId(2), &sku, &new).unwrap()),
        parts_of(&code("new"))
    );
    assert_eq!(
        before.open(CodeId(2), &sku, &new).err(),
        Some(OpenError::UnknownKey { key_id: KeyId(3) })
    );
}

#[test]
fn code_under_another_key_id_is_refused() {
    let (vault, sku) = (Vault::new(&keys(&[2, 3]), 0).unwrap(), sku("amzn-us", 2500));
    let sealed = vault.seal(CodeId(1), &sku, &code("AB")).unwrap();
    let moved = SealedBlob {
        key_id: KeyId(2),
        ..sealed
    };
    assert_eq!(
        vault.open(CodeId(1), &sku, &moved).err(),
        Some(OpenError::AuthenticationFailed { code_id: CodeId(1) })
    );
}

#[test]
fn vault_needs_a_complete_key_set() {
    let complete = keys(&[2]);
    let two_indexes: Vec<_> = keys(&[2]).into_iter().chain(keys(&[])).collect();
    for (keys, expected) in [
        (&complete[..], None),
        (&complete[..1], Some(IncompleteKeySet::NoCodesKey)),
        (
            &complete[1..],
            Some(IncompleteKeySet::BlindIndexKeys { count: 0 }),
        ),
        (&two_indexes, Some(IncompleteKeySet::BlindIndexKeys { count: 2 })),
        (&[], Some(IncompleteKeySet::NoCodesKey)),
    ] {
        assert_eq!(Vault::new(keys, 0).err(), expected);
    }
}

#[test]
fn key_needs_rotation_before_it_is_exhausted() {
    let (keys, sku) = (keys(&[2]), sku("amzn-us", 2500));
    let at = |seals| Vault::new(&keys, seals).unwrap();
    assert!(!at(SEALS_BEFORE_ROTATION - 1).needs_rotation());
    let due = at(SEALS_BEFORE_ROTATION - 1);
    due.seal(CodeId(1), &sku, &code("AB")).unwrap();
    assert!(due.needs_rotation());

    let last = at(MAX_SEALS - 1);
    assert!(last.seal(CodeId(1), &sku, &code("AB")).is_ok());
    let refused = last.seal(CodeId(2), &sku, &code("AB")).err();
    assert_eq!(refused, Some(SealError::KeyExhausted { key_id: KeyId(2) }));
}

#[test]
fn blind_index_survives_restart_and_key_rotation() {
    let keys = keys(&[2, 3]);
    let before = Vault::new(&keys[..2], 0)
        .unwrap()
        .blind_index(CodeScope::exact("Acme"), &code("AB"));
    let after = Vault::new(&keys, 0)
        .unwrap()
        .blind_index(CodeScope::exact("Acme"), &code("AB"));
    assert_eq!(before, after);
    assert_ne!(
        before,
        vault().blind_index(CodeScope::exact("Acme"), &code("AB")),
        "another blind index key"
    );
}

#[test]
fn debug_output_hides_codes_and_keys() {
    let (vault, sku) = (vault(), sku("amzn-us", 2500));
    let canary = code("canary-4711");
    let sealed = vault.seal(CodeId(1), &sku, &canary).unwrap();
    let refused = vault.open(CodeId(2), &sku, &sealed).err();
    let index = vault.blind_index(CodeScope::exact("Acme"), &canary);
    let debug = format!(
        "{vault:?} {canary:?} {sealed:?} {index:?} {refused:?} {:?}",
        generate(BLIND, KeyPurpose::BlindIndex)
    );
    for hidden in ["canary", "4711", "0042", "01010101", "1, 1, 1, 1"] {
        assert!(!debug.contains(hidden), "{debug}");
    }
}

proptest! {
    #[test]
    fn associated_data_differs_between_codes(
        (k1, c1, d1, p1) in (0i32..3, 0i64..3, 0i64..3, "[a-c]{1,3}"),
        (k2, c2, d2, p2) in (0i32..3, 0i64..3, 0i64..3, "[a-c]{1,3}"),
    ) {
        let same = (k1, c1, d1, &p1) == (k2, c2, d2, &p2);
        let first = associated_data(KeyId(k1), CodeId(c1), &sku(&p1, d1));
        prop_assert_eq!(first == associated_data(KeyId(k2), CodeId(c2), &sku(&p2, d2)), same);
    }
}
