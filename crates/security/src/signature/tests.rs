//! Tests that exactly the signed request is accepted, within the clock skew.

use hmac::KeyInit as _;
use proptest::prelude::*;

use super::*;
use crate::credential::generate_key_pair;
use crate::environment::Environment;

const NOW_S: i64 = 1_763_640_000;
const NOW: &str = "1763640000";
const REQUEST: SignedRequest<'static> = SignedRequest {
    method: "POST",
    path: "/api/v1/orders",
    body: br#"{"items":[]}"#,
};

fn secret() -> ApiSecret {
    ApiSecret::parse(format!("vss_{}", "5a".repeat(32)).as_bytes()).unwrap()
}

/// An independent implementation of a partner's signer.
fn sign_independently(secret: &ApiSecret, message: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).unwrap();
    mac.update(message.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

fn good_v1() -> String {
    sign_independently(&secret(), &format!("{NOW}POST/api/v1/orders{{\"items\":[]}}"))
}

fn verify_at(
    timestamps: &[&str],
    signatures: &[&str],
    request: SignedRequest<'_>,
    now_s: i64,
) -> Result<(), SignatureError> {
    let headers = AuthHeaders {
        api_key: UniqueHeader::Missing,
        api_secret: UniqueHeader::Missing,
        timestamp: UniqueHeader::from_values(timestamps.iter().map(|t| t.as_bytes())),
        signature: UniqueHeader::from_values(signatures.iter().map(|s| s.as_bytes())),
        idempotency_key: UniqueHeader::Missing,
    };
    verify(
        &secret(),
        &headers,
        request,
        OffsetDateTime::from_unix_timestamp(now_s).unwrap(),
    )
}

fn verify_headers(timestamps: &[&str], signatures: &[&str]) -> Result<(), SignatureError> {
    verify_at(timestamps, signatures, REQUEST, NOW_S)
}

#[test]
fn hmac_matches_rfc_4231() {
    // Test case 2: key "Jefe", data "what do ya want for nothing?".
    let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
    mac.update(b"what do ya want for nothing?");
    let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(hex::encode(mac.finalize().into_bytes()), expected);
}

#[test]
fn signature_accepts_both_path_forms_hex_cases_and_a_space_after_the_comma() {
    let short = sign_independently(&secret(), &format!("{NOW}POST/orders{{\"items\":[]}}"));
    for v1 in [good_v1(), good_v1().to_uppercase(), short] {
        for comma in [",", ", "] {
            let header = format!("t={NOW}{comma}v1={v1}");
            assert_eq!(verify_headers(&[NOW], &[&header]), Ok(()), "{header}");
        }
    }
}

#[test]
fn signature_made_by_sign_is_accepted() {
    let secret = generate_key_pair(Environment::Sandbox, getrandom::fill)
        .unwrap()
        .api_secret;
    let timestamp = Timestamp::from_unix_s(NOW_S).unwrap();
    let header = sign(
        &secret,
        timestamp,
        &CanonicalRequest::new(timestamp, REQUEST).unwrap(),
    );
    let headers = AuthHeaders {
        api_key: UniqueHeader::Missing,
        api_secret: UniqueHeader::Missing,
        timestamp: UniqueHeader::Single(timestamp.digits()),
        signature: UniqueHeader::Single(header.as_bytes()),
        idempotency_key: UniqueHeader::Missing,
    };
    let now = OffsetDateTime::from_unix_timestamp(NOW_S).unwrap();
    assert_eq!(verify(&secret, &headers, REQUEST, now), Ok(()));
}

#[test]
fn signature_is_valid_for_300_s_either_way() {
    let header = format!("t={NOW},v1={}", good_v1());
    for (ahead_s, good) in [
        (-301, false),
        (-300, true),
        (-299, true),
        (0, true),
        (299, true),
        (300, true),
        (301, false),
        (1 << 32, false),
    ] {
        let expected = if good {
            Ok(())
        } else {
            Err(TimestampError::Skewed { ahead_s }.into())
        };
        assert_eq!(
            verify_at(&[NOW], &[&header], REQUEST, NOW_S - ahead_s),
            expected,
            "{ahead_s}"
        );
    }
}

#[test]
fn skew_ignores_fractions_of_a_second() {
    let timestamp = Timestamp::from_unix_s(NOW_S).unwrap();
    let late = OffsetDateTime::from_unix_timestamp(NOW_S + 300).unwrap() + time::Duration::milliseconds(999);
    assert_eq!(check_skew(timestamp, late), Ok(()));
}

#[test]
fn skew_of_extreme_clocks_does_not_overflow() {
    for text in ["0000000000", "9999999999"] {
        let timestamp = Timestamp::parse(text.as_bytes()).unwrap();
        for now in [
            OffsetDateTime::UNIX_EPOCH,
            time::PrimitiveDateTime::MIN.assume_utc(),
        ] {
            let _ = check_skew(timestamp, now);
        }
        assert!(check_skew(timestamp, time::PrimitiveDateTime::MAX.assume_utc()).is_err());
    }
}

#[test]
fn invalid_timestamp_is_a_timestamp_error() {
    use TimestampError::{Malformed, Mismatch, Missing};
    let v1 = good_v1();
    for (timestamps, t, expected) in [
        (&[][..], NOW, Missing),
        (&[NOW, NOW], NOW, Malformed),
        (&[NOW, "1763640001"], NOW, Malformed),
        (&[""], "", Malformed),
        (&["+763640000"], "+763640000", Malformed),
        (&[" 1763640000"], NOW, Malformed),
        (&["1763640000 "], NOW, Malformed),
        (&["01763640000"], "01763640000", Malformed),
        (&["176364000"], "176364000", Malformed),
        (&["-763640000"], "-763640000", Malformed),
        (&["17 3640000"], "17 3640000", Malformed),
        (&["1763640000000"], "1763640000000", Malformed),
        (&["0x67b1f2a0"], "0x67b1f2a0", Malformed),
        (&["99999999999999999999"], "99999999999999999999", Malformed),
        (&[NOW], "1763640001", Mismatch),
        (&[NOW], "01763640000", Mismatch),
        (&[NOW], "", Mismatch),
        (&["0763640000"], NOW, Mismatch),
    ] {
        let result = verify_headers(timestamps, &[&format!("t={t},v1={v1}")]);
        assert_eq!(
            result,
            Err(SignatureError::Timestamp(expected)),
            "{timestamps:?} {t}"
        );
    }
}

#[test]
fn malformed_header_is_refused() {
    let v1 = good_v1();
    let (short, long) = (&v1[1..], format!("{v1}0"));
    for header in [
        String::new(),
        v1.clone(),
        format!("t={NOW}"),
        format!("v1={v1}"),
        format!("v1={v1},t={NOW}"),
        format!("t={NOW},v0={v1}"),
        format!("t={NOW},v2={v1}"),
        format!("t={NOW},v1={v1},v1={v1}"),
        format!("t={NOW},v1={v1},v0={v1}"),
        format!("t={NOW},v0={v1},v1={v1}"),
        format!("t={NOW},t={NOW},v1={v1}"),
        format!("t={NOW},v1={v1},"),
        format!("t={NOW},  v1={v1}"),
        format!("t={NOW} ,v1 ={v1}"),
        format!(" t={NOW},v1={v1}"),
        format!("t={NOW},v1={v1} "),
        format!("T={NOW},V1={v1}"),
        format!("t={NOW};v1={v1}"),
        format!("t={NOW},v1={short}"),
        format!("t={NOW},v1={long}"),
        format!("t={NOW},v1="),
        format!("t={NOW},v1=0x{}", &v1[2..]),
        format!("t={NOW},v1={}", v1.replace(char::is_numeric, "g")),
    ] {
        assert_eq!(
            verify_headers(&[NOW], &[&header]),
            Err(SignatureError::Malformed),
            "{header}"
        );
    }
    let good = format!("t={NOW},v1={v1}");
    assert_eq!(verify_headers(&[NOW], &[]), Err(SignatureError::Missing));
    assert_eq!(verify_headers(&[], &[]), Err(SignatureError::Missing));
    assert_eq!(
        verify_headers(&[NOW], &[&good, &good]),
        Err(SignatureError::Malformed)
    );
}

#[test]
fn signature_of_another_message_or_secret_is_a_mismatch() {
    let header = format!("t={NOW},v1={}", good_v1());
    for request in [
        SignedRequest {
            method: "PUT",
            ..REQUEST
        },
        SignedRequest {
            path: "/api/v1/payouts",
            ..REQUEST
        },
        SignedRequest {
            body: br#"{"items":[]} "#,
            ..REQUEST
        },
        SignedRequest { body: b"", ..REQUEST },
    ] {
        assert_eq!(
            verify_at(&[NOW], &[&header], request, NOW_S),
            Err(SignatureError::Mismatch)
        );
    }
    let other = generate_key_pair(Environment::Sandbox, getrandom::fill)
        .unwrap()
        .api_secret;
    let by_other = sign_independently(&other, &format!("{NOW}POST/api/v1/orders{{\"items\":[]}}"));
    let result = verify_headers(&[NOW], &[&format!("t={NOW},v1={by_other}")]);
    assert_eq!(result, Err(SignatureError::Mismatch));
}

#[test]
fn signature_with_any_changed_digit_is_a_mismatch() {
    let good = good_v1();
    for at in 0..good.len() {
        let mut v1 = good.clone();
        let other = if &good[at..=at] == "0" { "1" } else { "0" };
        v1.replace_range(at..=at, other);
        let result = verify_headers(&[NOW], &[&format!("t={NOW},v1={v1}")]);
        assert_eq!(result, Err(SignatureError::Mismatch), "digit {at}");
    }
}

#[test]
fn ambiguous_body_is_refused_although_signed() {
    let v1 = sign_independently(&secret(), &format!("{NOW}POST/api/v1/orders[]"));
    let request = SignedRequest {
        body: b"[]",
        ..REQUEST
    };
    let result = verify_at(&[NOW], &[&format!("t={NOW},v1={v1}")], request, NOW_S);
    assert_eq!(result, Err(SignatureError::Framing(FramingError::Body)));
}

proptest! {
    #[test]
    fn headers_of_any_bytes_do_not_panic(
        timestamp in prop::collection::vec(any::<u8>(), 0..24),
        signature in prop::collection::vec(any::<u8>(), 0..96),
        path in ".{0,40}",
        body in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let headers = AuthHeaders {
            api_key: UniqueHeader::Missing,
            api_secret: UniqueHeader::Missing,
            timestamp: UniqueHeader::Single(&timestamp),
            signature: UniqueHeader::Single(&signature),
            idempotency_key: UniqueHeader::Missing,
        };
        let request = SignedRequest { method: "POST", path: &path, body: &body };
        let now = OffsetDateTime::from_unix_timestamp(NOW_S).unwrap();
        prop_assert!(verify(&secret(), &headers, request, now).is_err());
    }

    #[test]
    fn header_near_the_format_is_parsed_or_refused(header in "t=[0-9]{9,11},(v1|v0|V1)=[0-9a-fA-F]{62,66}(,v1=0)?") {
        let form = is_in_contract_format(&header);
        prop_assert_eq!(Signature::parse(header.as_bytes()).is_some(), form, "{}", header);
    }
}

/// The format of the contract, checked differently from the parser: two fields by splitting.
fn is_in_contract_format(header: &str) -> bool {
    let fields: Vec<_> = header.split(',').collect();
    matches!(fields[..], [t, v1] if t.starts_with("t=") && v1.starts_with("v1=") && v1.len() == 3 + 64)
}
