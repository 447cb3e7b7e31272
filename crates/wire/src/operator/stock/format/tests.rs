//! Parsing of CSV and NDJSON lines.

use time::macros::date;
use vouchsafe_security::vault::code::InvalidCode;

use super::*;
use crate::operator::stock::blocks::{BlockSplitter, MAX_LINE_BYTES};

const EXPIRY_DEFAULTS: ExpiryDefaults = ExpiryDefaults {
    today: date!(2026 - 11 - 20),
    default_expiry: None,
};

fn read(mut format: Format, body: &[u8]) -> Result<ParsedBlock, HeaderError> {
    let mut blocks = BlockSplitter::default();
    blocks.push(body);
    blocks.finish();
    let mut all = ParsedBlock::default();
    while let Some(block) = blocks.take() {
        let mut parsed = format.read(&block, EXPIRY_DEFAULTS)?;
        all.rows.append(&mut parsed.rows);
        all.rejected.append(&mut parsed.rejected);
    }
    format.finish().map(|()| all)
}

fn csv(body: &str) -> Result<ParsedBlock, HeaderError> {
    read(Format::Csv(None), body.as_bytes())
}

fn ndjson(body: &str) -> ParsedBlock {
    read(Format::Ndjson, body.as_bytes()).unwrap()
}

/// Each voucher as its parts joined by `|`, then its expiry.
fn texts(parsed: &ParsedBlock) -> Vec<String> {
    let text = |row: &VoucherRow| {
        let parts: Vec<_> = row
            .code
            .parts()
            .map(|(part, text)| format!("{part}={text}"))
            .collect();
        let expiry = row.expiry.map(|day| format!(" {day}")).unwrap_or_default();
        format!("{}{expiry}", parts.join("|"))
    };
    parsed.rows.iter().map(text).collect()
}

#[test]
fn columns_in_any_order_are_parsed_and_only_code_is_required() {
    for (body, expected) in [
        ("code\nA1\nA2\n", &["code=A1", "code=A2"][..]),
        (
            "code,pin,serial,url,expiry\nA,1,S,https://x,2027-01-31",
            &["code=A|pin=1|serial=S|url=https://x 2027-01-31"],
        ),
        (
            "expiry,pin,code\n2026-11-20,,A\n,7,B",
            &["code=A 2026-11-20", "code=B|pin=7"],
        ),
        (" Code , PIN \nA, 1 \n", &["code=A|pin=1"]),
        (
            "code,pin\n\"A,1\",\"say \"\"hi\"\"\"\n",
            &["code=A,1|pin=say \"hi\""],
        ),
        ("\u{feff}code\r\nA\r\n\r\nB\r\n", &["code=A", "code=B"]),
        ("code\n", &[]),
        ("code\nA", &["code=A"]),
    ] {
        let parsed = csv(body).unwrap();
        assert_eq!(
            (texts(&parsed), parsed.rejected.len()),
            (expected.iter().map(ToString::to_string).collect(), 0),
            "{body:?}"
        );
    }
}

#[test]
fn header_with_unknown_repeated_or_missing_column_is_rejected() {
    for (body, error) in [
        ("", HeaderError::Missing),
        ("\n\n", HeaderError::Missing),
        ("code,shoe\nA,1", HeaderError::Unknown(2)),
        ("code;pin\nA;1", HeaderError::Unknown(1)),
        ("AB-12-34\nCD-56-78", HeaderError::Unknown(1)),
        ("code,pin,CODE\n", HeaderError::Repeated("code")),
        ("pin,expiry\n1,2027-01-01", HeaderError::MissingCode),
        (
            "code,pin,serial,url,expiry,more,still more\n",
            HeaderError::Missing,
        ),
        ("\"code\n", HeaderError::Missing),
    ] {
        assert_eq!(csv(body).unwrap_err(), error, "{body:?}");
    }
}

#[test]
fn invalid_lines_are_rejected_and_others_imported() {
    let long = "x".repeat(MAX_LINE_BYTES + 1);
    let body = format!(
        "code,pin,expiry\nGOOD,1,\n,2,\nA,1\nA,1,,\n\"open,1,\nB\tC,1,\nD,1,2026-11-19\nE,1,tomorrow\nF,1,2027-02-30\n{long}\n{code},1,\nG\rH,1,\nLAST,9,2026-11-20\n",
        code = "y".repeat(513),
    );
    let parsed = csv(&body).unwrap();
    assert_eq!(texts(&parsed), ["code=GOOD|pin=1", "code=LAST|pin=9 2026-11-20"]);
    let reasons: Vec<_> = parsed
        .rejected
        .iter()
        .map(|(line, reason)| format!("{line}: {reason}"))
        .collect();
    assert_eq!(
        reasons,
        [
            "3: the code is missing",
            "4: expected 3 fields, found 2",
            "5: expected 3 fields, found 4",
            "6: a quote is not closed on its line",
            "7: code contains a control character",
            "8: expired on 2026-11-19",
            "9: expiry is not a date as YYYY-MM-DD",
            "10: expiry is not a date as YYYY-MM-DD",
            "11: the line has more than 16384 bytes",
            "12: code has 513 bytes; at most 512 are allowed",
            "13: a quote is not closed on its line",
        ]
    );
}

#[test]
fn line_with_invalid_utf8_is_rejected() {
    let parsed = read(Format::Csv(None), b"code\nA\n\xff\xfe\nB\n").unwrap();
    assert_eq!(
        (texts(&parsed).len(), parsed.rejected),
        (2, vec![(3, LineError::NotUtf8)])
    );
}

#[test]
fn ndjson_objects_are_parsed() {
    let parsed = ndjson(concat!(
        "{\"code\":\"A\"}\n",
        "{\"expiry\":\"2027-01-31\",\"code\":\"B\\u0031\",\"pin\":\"2\",\"serial\":null}\n",
        "\n",
        "  {\"code\":\"C\",\"url\":\"https://x\"}  ",
    ));
    assert_eq!(
        texts(&parsed),
        ["code=A", "code=B1|pin=2 2027-01-31", "code=C|url=https://x"]
    );
    assert!(parsed.rejected.is_empty() && ndjson("").rows.is_empty());
}

#[test]
fn invalid_ndjson_objects_are_rejected() {
    let wrong = [
        ("{\"code\":\"A\",\"shoe\":1}", LineError::NotAVoucher),
        ("{\"code\":\"A\",\"code\":\"B\"}", LineError::NotAVoucher),
        ("{\"code\":12345678}", LineError::NotAVoucher),
        ("{\"pin\":\"1\"}", LineError::NotAVoucher),
        ("[\"A\"]", LineError::NotAVoucher),
        ("\"A\"", LineError::NotAVoucher),
        ("A-1234", LineError::NotJson),
        ("{\"code\":\"A\"", LineError::NotJson),
        ("{\"code\":\"A\"} {\"code\":\"B\"}", LineError::NotJson),
        ("{\"code\":\"\"}", LineError::Code(InvalidCode::Missing)),
        ("{\"code\":\"A\",\"expiry\":\"31.01.2027\"}", LineError::NotADate),
    ];
    let body: String = wrong.iter().map(|(line, _)| format!("{line}\n")).collect();
    let parsed = ndjson(&body);
    assert!(parsed.rows.is_empty());
    let reasons: Vec<_> = parsed.rejected.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(reasons, wrong.map(|(_, reason)| reason));
}

#[test]
fn reasons_never_quote_a_line() {
    let canary = "CNRY-7391";
    let lines = [
        format!("{canary},x,2020-01-01"),
        format!("{canary},x"),
        format!("\"{canary},x,"),
        format!("{canary}\u{7},x,"),
        format!("{canary},x,{canary}"),
    ];
    let parsed = csv(&format!("code,pin,expiry\n{}\n", lines.join("\n"))).unwrap();
    assert_eq!(parsed.rejected.len(), lines.len());
    let objects = [
        format!("{{\"code\":\"{canary}\",\"{canary}\":1}}"),
        format!("{{\"code\":[\"{canary}\"]}}"),
        canary.to_owned(),
    ];
    let more = ndjson(&objects.join("\n"));
    assert_eq!(more.rejected.len(), objects.len());
    for (_, reason) in parsed.rejected.iter().chain(&more.rejected) {
        assert!(!reason.to_string().contains("CNRY"), "{reason}");
    }
}

#[test]
fn missing_expiry_defaults_to_product_expiry() {
    let mut blocks = BlockSplitter::default();
    blocks.push(b"code,expiry\nA,\nB,2027-01-01\n");
    let end = date!(2026 - 12 - 31);
    blocks.finish();
    let mut format = Format::Csv(None);
    let expiry_defaults = ExpiryDefaults {
        default_expiry: Some(end),
        ..EXPIRY_DEFAULTS
    };
    let parsed = format.read(&blocks.take().unwrap(), expiry_defaults).unwrap();
    let expiries: Vec<_> = parsed.rows.iter().map(|row| row.expiry).collect();
    assert_eq!(expiries, [Some(end), Some(date!(2027 - 01 - 01))]);
}
