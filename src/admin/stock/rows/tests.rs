//! What each kind of line becomes.

use time::macros::date;

use super::*;
use crate::admin::stock::blocks::Blocks;

const CALENDAR: Calendar = Calendar {
    today: date!(2026 - 11 - 20),
    otherwise: None,
};

fn read(mut format: Format, body: &[u8]) -> Result<Parsed, HeaderFault> {
    let mut blocks = Blocks::new();
    blocks.push(body);
    blocks.finish();
    let mut all = Parsed::default();
    while let Some(block) = blocks.take() {
        let mut parsed = format.read(&block, CALENDAR)?;
        all.rows.append(&mut parsed.rows);
        all.rejected.append(&mut parsed.rejected);
    }
    format.finish().map(|()| all)
}

fn csv(body: &str) -> Result<Parsed, HeaderFault> {
    read(Format::Csv(None), body.as_bytes())
}

fn ndjson(body: &str) -> Parsed {
    read(Format::Ndjson, body.as_bytes()).unwrap()
}

/// Each voucher as its parts joined by a bar, its expiry behind.
fn texts(parsed: &Parsed) -> Vec<String> {
    let text = |row: &Row| {
        let parts: Vec<_> = row
            .code
            .credentials()
            .map(|(part, text)| format!("{part}={text}"))
            .collect();
        let expiry = row.expiry.map(|day| format!(" {day}")).unwrap_or_default();
        format!("{}{expiry}", parts.join("|"))
    };
    parsed.rows.iter().map(text).collect()
}

#[test]
fn columns_come_in_any_order_and_code_alone_is_enough() {
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
fn a_header_names_known_columns_once_and_the_code() {
    for (body, fault) in [
        ("", HeaderFault::Missing),
        ("\n\n", HeaderFault::Missing),
        ("code,shoe\nA,1", HeaderFault::Unknown(2)),
        ("code;pin\nA;1", HeaderFault::Unknown(1)),
        ("AB-12-34\nCD-56-78", HeaderFault::Unknown(1)),
        ("code,pin,CODE\n", HeaderFault::Repeated("code")),
        ("pin,expiry\n1,2027-01-01", HeaderFault::NoCode),
        (
            "code,pin,serial,url,expiry,more,still more\n",
            HeaderFault::Missing,
        ),
        ("\"code\n", HeaderFault::Missing),
    ] {
        assert_eq!(csv(body).unwrap_err(), fault, "{body:?}");
    }
}

#[test]
fn a_bad_line_is_rejected_and_the_others_go_on() {
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
            "7: code holds a control character",
            "8: expired on 2026-11-19",
            "9: expiry is not a date as YYYY-MM-DD",
            "10: expiry is not a date as YYYY-MM-DD",
            "11: the line has more than 16384 bytes",
            "12: code has 513 bytes, at most 512 are allowed",
            "13: a quote is not closed on its line",
        ]
    );
}

#[test]
fn a_line_that_is_no_text_is_rejected() {
    let parsed = read(Format::Csv(None), b"code\nA\n\xff\xfe\nB\n").unwrap();
    assert_eq!(
        (texts(&parsed).len(), parsed.rejected),
        (2, vec![(3, Reason::NotText)])
    );
}

#[test]
fn an_object_a_line_holds_the_same() {
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
fn an_object_with_something_else_is_rejected() {
    let wrong = [
        ("{\"code\":\"A\",\"shoe\":1}", Reason::NotAVoucher),
        ("{\"code\":\"A\",\"code\":\"B\"}", Reason::NotAVoucher),
        ("{\"code\":12345678}", Reason::NotAVoucher),
        ("{\"pin\":\"1\"}", Reason::NotAVoucher),
        ("[\"A\"]", Reason::NotAVoucher),
        ("\"A\"", Reason::NotAVoucher),
        ("A-1234", Reason::NotJson),
        ("{\"code\":\"A\"", Reason::NotJson),
        ("{\"code\":\"A\"} {\"code\":\"B\"}", Reason::NotJson),
        ("{\"code\":\"\"}", Reason::Code(InvalidCode::Missing)),
        ("{\"code\":\"A\",\"expiry\":\"31.01.2027\"}", Reason::NotADate),
    ];
    let body: String = wrong.iter().map(|(line, _)| format!("{line}\n")).collect();
    let parsed = ndjson(&body);
    assert!(parsed.rows.is_empty());
    let reasons: Vec<_> = parsed.rejected.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(reasons, wrong.map(|(_, reason)| reason));
}

#[test]
fn no_reason_quotes_a_line() {
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
fn a_line_without_an_expiry_has_that_of_its_product() {
    let mut blocks = Blocks::new();
    blocks.push(b"code,expiry\nA,\nB,2027-01-01\n");
    let end = date!(2026 - 12 - 31);
    blocks.finish();
    let mut format = Format::Csv(None);
    let calendar = Calendar {
        otherwise: Some(end),
        ..CALENDAR
    };
    let parsed = format.read(&blocks.take().unwrap(), calendar).unwrap();
    let expiries: Vec<_> = parsed.rows.iter().map(|row| row.expiry).collect();
    assert_eq!(expiries, [Some(end), Some(date!(2027 - 01 - 01))]);
}
