//! Tests of parsing, encoding and redaction of voucher codes.

use proptest::prelude::*;

use super::*;

fn parts_of(code: &VoucherCode) -> Vec<(&'static str, String)> {
    code.parts()
        .map(|(part, text)| (part.into_str(), text.to_owned()))
        .collect()
}

#[test]
fn parts_present_are_returned_in_order() {
    let full = CodeParts {
        code: " AB-1 2\t",
        pin: Some("0042"),
        serial: Some(" S1"),
        url: Some("https://x.example/1"),
    };
    let expected = [
        ("code", "AB-1 2"),
        ("pin", "0042"),
        ("serial", "S1"),
        ("url", "https://x.example/1"),
    ];
    assert_eq!(
        parts_of(&VoucherCode::parse(full).unwrap()),
        expected.map(|(t, v)| (t, v.to_owned()))
    );

    let sparse = CodeParts {
        code: "AB",
        pin: Some(""),
        serial: Some("  "),
        url: None,
    };
    assert_eq!(
        parts_of(&VoucherCode::parse(sparse).unwrap()),
        [("code", "AB".to_owned())]
    );
}

#[test]
fn invalid_part_is_refused_by_name() {
    use InvalidCode::{Forbidden, Missing, TooLong};
    let forbidden = |part, text: &str| Forbidden {
        part,
        character: identifier::normalize(text).unwrap_err(),
    };
    let text = |n: usize| "x".repeat(n);
    let (t128, t129, t512, t513, t2049) = (text(128), text(129), text(512), text(513), text(2049));
    let t2048 = format!("https://x.example/{}", text(2_030));
    let good = CodeParts {
        code: "AB",
        ..CodeParts::default()
    };
    for (parts, expected) in [
        (good, None),
        (
            CodeParts {
                code: &t512,
                pin: Some(&t128),
                serial: Some(&t128),
                url: Some(&t2048),
            },
            None,
        ),
        (CodeParts { code: "", ..good }, Some(Missing)),
        (
            CodeParts {
                code: " \u{a0}\n",
                ..good
            },
            Some(Missing),
        ),
        (
            CodeParts {
                code: "",
                pin: Some("1"),
                ..good
            },
            Some(Missing),
        ),
        (
            CodeParts { code: &t513, ..good },
            Some(TooLong {
                part: CodePart::Code,
                bytes: 513,
            }),
        ),
        (
            CodeParts {
                pin: Some(&t129),
                ..good
            },
            Some(TooLong {
                part: CodePart::Pin,
                bytes: 129,
            }),
        ),
        (
            CodeParts {
                serial: Some(&t129),
                ..good
            },
            Some(TooLong {
                part: CodePart::Serial,
                bytes: 129,
            }),
        ),
        (
            CodeParts {
                url: Some(&t2049),
                ..good
            },
            Some(TooLong {
                part: CodePart::Url,
                bytes: 2049,
            }),
        ),
        (
            CodeParts { code: "A\0B", ..good },
            Some(forbidden(CodePart::Code, "A\0B")),
        ),
        (
            CodeParts {
                pin: Some("1\n2"),
                ..good
            },
            Some(forbidden(CodePart::Pin, "1\n2")),
        ),
        (
            CodeParts {
                url: Some("https://x\u{85}y"),
                ..good
            },
            Some(forbidden(CodePart::Url, "https://x\u{85}y")),
        ),
    ] {
        assert_eq!(VoucherCode::parse(parts).err(), expected);
    }
}

#[test]
fn url_without_web_scheme_or_host_is_refused() {
    let parse = |url| {
        VoucherCode::parse(CodeParts {
            code: "AB",
            url: Some(url),
            ..CodeParts::default()
        })
    };
    for url in [
        "https://x.example",
        "http://x.example:8080/redeem?c=1#top",
        "HTTPS://X.EXAMPLE/",
        " https://[::1]/ ",
        "https://b\u{fc}cher.example/",
        "",
    ] {
        assert!(parse(url).is_ok(), "{url}");
    }
    for url in [
        "javascript:alert(1)",
        "JavaScript://x.example/%0aalert(1)",
        "data:text/html,x",
        "ftp://x.example/",
        "//x.example/",
        "x.example",
        "https:x.example",
        "https:/x.example",
        "https:///x.example",
        "https://\\x.example",
        "https://",
        "https://?c=1",
        "https://#x",
        "https://:443/",
        "https://user@/",
        "https://x example/",
        "https://x.example:99999/",
        "\u{fc}ttps://x.example",
    ] {
        assert_eq!(parse(url).err(), Some(InvalidCode::NotAWebUrl), "{url}");
    }
}

#[test]
fn encoding_is_stable_across_versions() {
    let code = VoucherCode {
        texts: ["AB", "", "", "u"].map(|text| Zeroizing::new(text.to_owned())),
    };
    let bytes = b"\x01\x00\x02AB\x00\x00\x00\x00\x00\x01u";
    assert_eq!(code.encode()[..], bytes[..]);
    assert_eq!(parts_of(&VoucherCode::decode(bytes).unwrap()), parts_of(&code));
}

#[test]
fn malformed_encoding_is_refused() {
    let good = b"\x01\x00\x02AB\x00\x00\x00\x00\x00\x01u";
    for cut in 0..good.len() {
        assert!(VoucherCode::decode(&good[..cut]).is_err(), "{cut}");
    }
    assert!(VoucherCode::decode(&[&good[..], &[0]].concat()).is_err());
    assert!(VoucherCode::decode(&[&[2], &good[1..]].concat()).is_err());
    assert!(VoucherCode::decode(b"\x01\x00\x02\xff\xfe\x00\x00\x00\x00\x00\x00").is_err());
}

#[test]
fn debug_output_and_errors_hide_the_code() {
    let code = VoucherCode::parse(CodeParts {
        code: "canary",
        ..CodeParts::default()
    })
    .unwrap();
    assert_eq!(format!("{code:?}"), "VoucherCode(***)");
    let error = VoucherCode::parse(CodeParts {
        code: "canary\0canary",
        ..CodeParts::default()
    })
    .err();
    assert!(!format!("{error:?}").contains("canary"));
}

proptest! {
    #[test]
    fn code_round_trips_through_its_encoding(
        code in "[^\\s\\p{C}]{1,64}",
        pin in prop::option::of("[^\\p{C}]{0,16}"),
        serial in prop::option::of("[^\\p{C}]{0,16}"),
        url in prop::option::of("https://[a-z0-9]{1,20}\\.example/[a-z0-9?=&]{0,40}"),
    ) {
        let parts = CodeParts {
            code: &code,
            pin: pin.as_deref(),
            serial: serial.as_deref(),
            url: url.as_deref(),
        };
        // Some categories of letters have invisible ones.
        let Ok(code) = VoucherCode::parse(parts) else { return Ok(()) };
        prop_assert_eq!(parts_of(&VoucherCode::decode(&code.encode()).unwrap()), parts_of(&code));
    }

    #[test]
    fn decoding_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), version in any::<bool>()) {
        let bytes = if version { [&[ENCODING_V1][..], &bytes].concat() } else { bytes };
        if let Ok(code) = VoucherCode::decode(&bytes) {
            prop_assert_eq!(&code.encode()[..], &bytes[..]);
        }
    }
}
