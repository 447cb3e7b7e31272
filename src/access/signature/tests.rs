//! Is exactly the signed request accepted, at its time, and every other one refused by the right name?

use proptest::prelude::*;

use super::*;
use crate::access::credential::generate_key_pair;
use crate::access::environment::Environment;

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

/// The signer of a partner, written without the code under test.
fn partner_signs(secret: &ApiSecret, message: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).unwrap();
    mac.update(message.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

fn good_v1() -> String {
    partner_signs(&secret(), &format!("{NOW}POST/api/v1/orders{{\"items\":[]}}"))
}

fn verify_at(
    timestamps: &[&str],
    signatures: &[&str],
    request: SignedRequest<'_>,
    now_s: i64,
) -> Result<(), SignatureError> {
    let presented = AuthHeaders {
        api_key: UniqueHeader::Missing,
        api_secret: UniqueHeader::Missing,
        timestamp: UniqueHeader::from_values(timestamps.iter().map(|t| t.as_bytes())),
        signature: UniqueHeader::from_values(signatures.iter().map(|s| s.as_bytes())),
        idempotency_key: UniqueHeader::Missing,
    };
    verify(
        &secret(),
        &presented,
        request,
        OffsetDateTime::from_unix_timestamp(now_s).unwrap(),
    )
}

fn verify_headers(timestamps: &[&str], signatures: &[&str]) -> Result<(), SignatureError> {
    verify_at(timestamps, signatures, REQUEST, NOW_S)
}

#[test]
fn hmac_is_that_of_rfc_4231() {
    // Test case 2: key "Jefe", data "what do ya want for nothing?".
    let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
    mac.update(b"what do ya want for nothing?");
    let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(hex::encode(mac.finalize().into_bytes()), expected);
}

#[test]
fn either_form_of_the_path_and_either_case_of_hex_is_accepted() {
    let short = partner_signs(&secret(), &format!("{NOW}POST/orders{{\"items\":[]}}"));
    for v1 in [good_v1(), good_v1().to_uppercase(), short] {
        assert_eq!(
            verify_headers(&[NOW], &[&format!("t={NOW},v1={v1}")]),
            Ok(()),
            "{v1}"
        );
    }
}

#[test]
fn what_sign_writes_is_accepted() {
    let secret = generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap().api_secret;
    let timestamp = Timestamp::from_unix_s(NOW_S).unwrap();
    let header = sign(&secret, timestamp, &CanonicalRequest::new(timestamp, REQUEST).unwrap());
    let presented = AuthHeaders {
        api_key: UniqueHeader::Missing,
        api_secret: UniqueHeader::Missing,
        timestamp: UniqueHeader::Single(timestamp.digits()),
        signature: UniqueHeader::Single(header.as_bytes()),
        idempotency_key: UniqueHeader::Missing,
    };
    let now = OffsetDateTime::from_unix_timestamp(NOW_S).unwrap();
    assert_eq!(verify(&secret, &presented, REQUEST, now), Ok(()));
}

#[test]
fn a_signature_is_good_for_three_hundred_seconds_either_way() {
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
fn a_fraction_of_a_second_does_not_narrow_the_window() {
    let timestamp = Timestamp::from_unix_s(NOW_S).unwrap();
    let late = OffsetDateTime::from_unix_timestamp(NOW_S + 300).unwrap() + time::Duration::milliseconds(999);
    assert_eq!(check_skew(timestamp, late), Ok(()));
}

#[test]
fn the_extremes_of_both_clocks_do_not_overflow() {
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
fn a_timestamp_that_is_none_is_refused_as_a_timestamp() {
    use TimestampError::{Mismatch, Malformed, Missing};
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
        (&["99999999999999999999"], "99999999999999999999", Malformed),
        (&[NOW], "1763640001", Mismatch),
        (&[NOW], "01763640000", Mismatch),
        (&[NOW], "", Mismatch),
        (&["0763640000"], NOW, Mismatch),
    ] {
        let verdict = verify_headers(timestamps, &[&format!("t={t},v1={v1}")]);
        assert_eq!(
            verdict,
            Err(SignatureError::Timestamp(expected)),
            "{timestamps:?} {t}"
        );
    }
}

#[test]
fn another_form_of_the_header_is_refused() {
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
        format!("t={NOW}, v1={v1}"),
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
fn any_other_message_or_secret_does_not_match() {
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
    let other = generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap().api_secret;
    let by_other = partner_signs(&other, &format!("{NOW}POST/api/v1/orders{{\"items\":[]}}"));
    let verdict = verify_headers(&[NOW], &[&format!("t={NOW},v1={by_other}")]);
    assert_eq!(verdict, Err(SignatureError::Mismatch));
}

#[test]
fn every_single_changed_digit_of_a_signature_is_noticed() {
    let good = good_v1();
    for at in 0..good.len() {
        let mut v1 = good.clone();
        let other = if &good[at..=at] == "0" { "1" } else { "0" };
        v1.replace_range(at..=at, other);
        let verdict = verify_headers(&[NOW], &[&format!("t={NOW},v1={v1}")]);
        assert_eq!(verdict, Err(SignatureError::Mismatch), "digit {at}");
    }
}

#[test]
fn a_part_that_could_be_mistaken_is_refused_although_it_is_signed() {
    let v1 = partner_signs(&secret(), &format!("{NOW}POST/api/v1/orders[]"));
    let request = SignedRequest {
        body: b"[]",
        ..REQUEST
    };
    let verdict = verify_at(&[NOW], &[&format!("t={NOW},v1={v1}")], request, NOW_S);
    assert_eq!(verdict, Err(SignatureError::Framing(FramingError::Body)));
}

proptest! {
    #[test]
    fn no_header_makes_it_panic(
        timestamp in prop::collection::vec(any::<u8>(), 0..24),
        signature in prop::collection::vec(any::<u8>(), 0..96),
        path in ".{0,40}",
        body in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let presented = AuthHeaders {
            api_key: UniqueHeader::Missing,
            api_secret: UniqueHeader::Missing,
            timestamp: UniqueHeader::Single(&timestamp),
            signature: UniqueHeader::Single(&signature),
            idempotency_key: UniqueHeader::Missing,
        };
        let request = SignedRequest { method: "POST", path: &path, body: &body };
        let now = OffsetDateTime::from_unix_timestamp(NOW_S).unwrap();
        prop_assert!(verify(&secret(), &presented, request, now).is_err());
    }

    #[test]
    fn a_header_near_the_right_form_is_right_or_refused(header in "t=[0-9]{9,11},(v1|v0|V1)=[0-9a-fA-F]{62,66}(,v1=0)?") {
        let form = regex_free_form(&header);
        prop_assert_eq!(Signature::parse(header.as_bytes()).is_some(), form, "{}", header);
    }
}

/// The form as the contract has it, checked another way than the parser does: two fields by splitting.
fn regex_free_form(header: &str) -> bool {
    let fields: Vec<_> = header.split(',').collect();
    matches!(fields[..], [t, v1] if t.starts_with("t=") && v1.starts_with("v1=") && v1.len() == 3 + 64)
}
