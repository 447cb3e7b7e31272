//! Lists of vouchers as people and their programs write them.

use time::macros::date;

use super::*;
use crate::operator::table::line_error::MAX_LINE_BYTES;

const POLICY: RowPolicy = RowPolicy {
    today: date!(2026 - 11 - 20),
    default_expiry: None,
    damage: DamagePolicy::Refuse,
};

/// Each voucher as its parts joined by `|`, then its expiry.
fn text_of(row: &VoucherRow) -> String {
    let parts: Vec<_> = row
        .code
        .parts()
        .map(|(part, text)| format!("{part}={text}"))
        .collect();
    let expiry = row.expiry.map(|day| format!(" {day}")).unwrap_or_default();
    format!("{}{expiry}", parts.join("|"))
}

/// Vouchers, rejections with their lines, and notices.
struct Read {
    vouchers: Vec<String>,
    rejected: Vec<String>,
    notices: Vec<String>,
}

fn read(purpose: ListPurpose, format: Format, policy: RowPolicy, bytes: &[u8]) -> Result<Read, FileError> {
    let (sku, currency) = ("card/2500".parse().unwrap(), "USD".parse().unwrap());
    let convert = |listed: &ListedVoucher<'_>| {
        listed.check_sku(&sku, currency)?;
        policy.parse_row(&listed.voucher)
    };
    let list = VoucherList::new(purpose, format, policy.damage);
    let mut whole = read_whole(list, bytes, convert)?;
    whole.rejected.sort_by_key(|(line, _)| *line);
    let rejected = whole.rejected.iter();
    Ok(Read {
        vouchers: whole.values.iter().map(|(_, row)| text_of(row)).collect(),
        rejected: rejected
            .map(|(line, reason)| format!("{line}: {reason}"))
            .collect(),
        notices: whole.notices.iter().map(ToString::to_string).collect(),
    })
}

fn csv(body: &str) -> Result<Read, FileError> {
    read(ListPurpose::Store, Format::Csv, POLICY, body.as_bytes())
}

fn ndjson(body: &str) -> Read {
    read(ListPurpose::Store, Format::Ndjson, POLICY, body.as_bytes()).unwrap()
}

fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(to_bytes).collect()
}

#[test]
fn columns_in_any_order_are_parsed_and_only_code_is_required() {
    for (body, expected) in [
        ("code\nA1\nA2\n", &["code=A1", "code=A2"][..]),
        (
            "code,pin,serial,url,expiry\nA,1,S,https://x,2027-01-31",
            &["code=A|pin=1|serial=S|url=https://x/ 2027-01-31"],
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
        (
            "code,pin,product_id,denomination\nA,1,card,25\nB,1,card,25.00\n",
            &["code=A|pin=1", "code=B|pin=1"],
        ),
    ] {
        let list = csv(body).unwrap();
        assert_eq!(
            (&list.vouchers[..], list.rejected.len()),
            (
                &expected.iter().map(ToString::to_string).collect::<Vec<_>>()[..],
                0
            ),
            "{body:?}"
        );
        assert_eq!(list.notices, [""; 0], "{body:?}");
    }
}

#[test]
fn unusual_files_with_one_meaning_are_accepted_with_a_notice() {
    let table = "code\tpin\nGC-1\t0012\n";
    for (bytes, notice) in [
        (
            [b"\xff\xfe".to_vec(), utf16(table, u16::to_le_bytes)].concat(),
            "UTF-16",
        ),
        (
            [b"\xfe\xff".to_vec(), utf16(table, u16::to_be_bytes)].concat(),
            "UTF-16",
        ),
        (utf16(table, u16::to_le_bytes), "UTF-16"),
        (utf16(table, u16::to_be_bytes), "UTF-16"),
        (table.into(), "tabs"),
        (b"code;pin\r\nGC-1;0012\r\n".to_vec(), "semicolons"),
        (b"code,pin\rGC-1,0012\r".to_vec(), "carriage returns"),
        (
            b"code,pin,,\nGC-1,0012,,\n,,,\n".to_vec(),
            "2 columns without a name",
        ),
        (
            b"GC-1,0012\n".to_vec(),
            "no header line: its fields were read as code, pin",
        ),
        (b"GC-1\t0012\n".to_vec(), "no header line"),
        (b"{\"Code\":\"GC-1\",\"PIN\":\"0012\"}\n".to_vec(), "NDJSON"),
    ] {
        let list = read(ListPurpose::Store, Format::Csv, POLICY, &bytes).unwrap();
        assert_eq!(list.vouchers, ["code=GC-1|pin=0012"], "{notice}");
        assert_eq!(list.rejected, [""; 0], "{notice}");
        assert!(
            list.notices.iter().any(|found| found.contains(notice)),
            "{notice}: {:?}",
            list.notices
        );
    }
}

#[test]
fn file_that_is_no_list_is_refused_by_its_cause() {
    for (bytes, cause) in [
        (&b""[..], "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"code,shoe\nA,1", "column 2 of the header, `shoe`, is unknown"),
        (b"code,AB-12\nA,1", "column 2 of the header is unknown"),
        (b"code,pin,CODE\n", "names code more than once"),
        (b"pin,expiry\n1,2027-01-01", "lacks the column code"),
        (b"card number\nGC-1\n", "no digit as a code has"),
        (b"GC-1;0012\n", "semicolons, which may be separators"),
        (b"GC-1,0012,S-1\n", "none of the known names"),
        (b"\"code\n", "its quotes do not match"),
        (b"PK\x03\x04\x14\0", "workbook or an archive"),
        (b"\x1f\x8b\x08\0", "gzip"),
        (b"\xff\xfe\0\0c\0\0\0", "UTF-32"),
        (b"K\xe4rten\nGC-1\n", "Windows-1252 or Latin-1"),
        (b"code,voucher_id\nGC-1,vch_1\n", "list of sold vouchers"),
    ] {
        let error = read(ListPurpose::Store, Format::Csv, POLICY, bytes).err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(cause), "{cause}: {error}");
    }
}

#[test]
fn invalid_lines_are_rejected_and_others_read() {
    let long = "x".repeat(MAX_LINE_BYTES + 1);
    let body = format!(
        "code,pin,expiry\nGOOD,1,\n,2,\nA,1\nA,1,,2\nB\tC,1,\nD,1,2026-11-19\nE,1,tomorrow\nF,1,2027-02-30\n{long}\n{code},1,\nG\rH,1,\n\
         A,1,,,\nLAST,9,2026-11-20\n",
        code = "y".repeat(513),
    );
    let list = csv(&body).unwrap();
    assert_eq!(
        list.vouchers,
        ["code=GOOD|pin=1", "code=A|pin=1", "code=LAST|pin=9 2026-11-20"]
    );
    assert_eq!(
        list.rejected,
        [
            "3: the code is missing",
            "4: expected 3 fields, found 2",
            "5: expected 3 fields, found 4",
            "6: code has a forbidden character: control character (U+0009) at position 2",
            "7: expired on 2026-11-19",
            "8: expiry is not a date as YYYY-MM-DD",
            "9: expiry is not a date as YYYY-MM-DD",
            "10: the line has more than 16384 bytes",
            "11: code has 513 bytes; at most 512 are allowed",
            "12: code has a forbidden character: control character (U+000D) at position 2",
        ]
    );
    let latin = read(
        ListPurpose::Store,
        Format::Csv,
        POLICY,
        b"code\nA1\nK\xe4rte\nB1\n",
    )
    .unwrap();
    assert_eq!(latin.vouchers, ["code=A1", "code=B1"]);
    assert!(latin.rejected[0].contains("Windows-1252"), "{:?}", latin.rejected);
}

#[test]
fn broken_quoting_never_yields_a_fragment() {
    for (body, vouchers, rejected) in [
        // A value of two lines.
        (
            "code,pin\nA1,1\n\"B\n1\",2\nC1,3\n",
            &["code=A1|pin=1", "code=C1|pin=3"][..],
            &["3: a quoted field goes on to line 4"][..],
        ),
        (
            "code\nA1\n\"B\n1\"\nC1\n",
            &["code=A1", "code=C1"],
            &["3: a quoted field goes on to line 4"],
        ),
        // A quote that nothing closes: lines with all fields are records, those of one field may be parts of
        // the value.
        (
            "code,pin\n\"A1,1\nB1,2\nX\nC1,3\n",
            &["code=B1|pin=2", "code=C1|pin=3"],
            &["2: a quote is not closed", "4: expected 2 fields"],
        ),
        (
            "code\nA1\n\"B1\nC1\n",
            &["code=A1"],
            &["3: a quote is not closed", "4: a quote that was opened before"],
        ),
        // A PIN would be sold with its quotes, or a code without them.
        (
            "code,pin\nA1, \"12\"\nB\"1\",2\n\"C1\"x,3\nD1,4\n",
            &["code=D1|pin=4"],
            &["2: a quote stands", "3: a quote stands", "4: a quote stands"],
        ),
        ("code,pin\n\"A1\" ,1\n", &[], &["2: a quote stands"]),
    ] {
        let list = csv(body).unwrap();
        assert_eq!(list.vouchers, vouchers, "{body:?}");
        assert_eq!(
            list.rejected.len(),
            rejected.len(),
            "{body:?}: {:?}",
            list.rejected
        );
        for (found, expected) in list.rejected.iter().zip(rejected) {
            assert!(found.starts_with(expected), "{body:?}: {found}");
        }
    }
    // More lines than are kept are read again.
    let many = format!("code,pin\n\"A1,1\n{}", "B,1\n".repeat(2_500));
    let list = csv(&many).unwrap();
    assert_eq!((list.vouchers.len(), list.rejected.len()), (2_500, 1));
}

#[test]
fn damage_of_spreadsheets_is_rejected_unless_it_is_accepted() {
    let body = "code,pin\n6.03571E+15,19\n\"=\"\"0060357100001111\"\"\",1\n'0060,1\n#N/A,1\n########,1\nGC-1,#REF!\nGC-2,0019\n";
    let list = csv(body).unwrap();
    assert_eq!(list.vouchers, ["code=GC-2|pin=0019"]);
    assert_eq!(list.rejected.len(), 6);
    assert!(
        list.rejected[0].starts_with("2: code is a number in scientific notation"),
        "{:?}",
        list.rejected
    );
    assert!(
        list.rejected[5].starts_with("7: pin is an error value"),
        "{:?}",
        list.rejected
    );
    let as_is = RowPolicy {
        damage: DamagePolicy::AcceptAsIs,
        ..POLICY
    };
    let list = read(ListPurpose::Store, Format::Csv, as_is, body.as_bytes()).unwrap();
    assert_eq!((list.vouchers.len(), list.rejected.len()), (7, 0));
}

#[test]
fn ndjson_objects_are_parsed() {
    let list = ndjson(concat!(
        "{\"code\":\"A\"}\n",
        "{\"expiry\":\"2027-01-31\",\"Code\":\"B\\u0031\",\"pin\":\"2\",\"serial\":null}\n",
        "\n",
        "  {\"code\":\"C\",\"url\":\"https://x\"}  ",
    ));
    assert_eq!(
        list.vouchers,
        ["code=A", "code=B1|pin=2 2027-01-31", "code=C|url=https://x/"]
    );
    assert!(list.rejected.is_empty() && ndjson("").vouchers.is_empty());
    let marked = read(
        ListPurpose::Store,
        Format::Ndjson,
        POLICY,
        b"\xef\xbb\xbf{\"code\":\"A\"}",
    )
    .unwrap();
    assert_eq!(marked.vouchers, ["code=A"]);
}

#[test]
fn invalid_ndjson_objects_are_rejected() {
    for (line, expected) in [
        (
            "{\"code\":\"A\",\"shoe\":1}",
            RowError::from(LineError::NotAnObject),
        ),
        ("{\"code\":\"A\",\"CODE\":\"B\"}", LineError::NotAnObject.into()),
        ("{\"code\":12345678}", LineError::NotAnObject.into()),
        ("{\"code\":[\"A\"]}", LineError::NotAnObject.into()),
        ("{\"pin\":\"1\"}", InvalidCode::Missing.into()),
        ("[\"A\"]", LineError::NotAnObject.into()),
        ("\"A\"", LineError::NotAnObject.into()),
        ("A-1234", LineError::NotJson.into()),
        ("{\"code\":\"A\"", LineError::NotJson.into()),
        ("{\"code\":\"A\"} {\"code\":\"B\"}", LineError::NotJson.into()),
        ("{\"code\":\"\"}", InvalidCode::Missing.into()),
        ("{\"code\":\"A\",\"expiry\":\"31.01.2027\"}", RowError::NotADate),
        (
            "{\"code\":\"A\",\"product_id\":\"other\"}",
            RowError::OtherSku("product_id"),
        ),
        (
            "{\"code\":\"A\",\"denomination\":10}",
            RowError::OtherSku("denomination"),
        ),
        ("{\"code\":\"A\",\"code_id\":7}", RowError::SoldVoucher),
    ] {
        let list = ndjson(line);
        assert_eq!(
            (list.vouchers.len(), list.rejected),
            (0, vec![format!("1: {expected}")]),
            "{line}"
        );
    }
}

#[test]
fn reasons_never_quote_a_line() {
    let canary = "CNRY-7391";
    let lines = [
        format!("{canary},x,2020-01-01"),
        format!("{canary},x"),
        format!("{canary}\u{7},x,"),
        format!("{canary},x,{canary}"),
        format!("{canary},'{canary},"),
        format!("\"{canary},x,"),
    ];
    let list = csv(&format!("code,pin,expiry\n{}\n", lines.join("\n"))).unwrap();
    assert_eq!(list.rejected.len(), lines.len());
    let objects = [
        format!("{{\"code\":\"{canary}\",\"{canary}\":1}}"),
        format!("{{\"code\":[\"{canary}\"]}}"),
        canary.to_owned(),
    ];
    let more = ndjson(&objects.join("\n"));
    assert_eq!(more.rejected.len(), objects.len());
    for reason in list.rejected.iter().chain(&more.rejected) {
        assert!(!reason.contains("CNRY"), "{reason}");
    }
    for file in [
        format!("{canary};1"),
        format!("\"{canary}"),
        format!("{canary},1,2"),
    ] {
        let error = csv(&file).err().unwrap().to_string();
        assert!(!error.contains("CNRY"), "{error}");
    }
}

#[test]
fn unused_columns_are_named_and_missing_expiry_defaults_to_that_of_the_product() {
    let end = date!(2026 - 12 - 31);
    let policy = RowPolicy {
        default_expiry: Some(end),
        ..POLICY
    };
    let body = b"code,expiry\nA,\nB,2027-01-01\n";
    let list = read(ListPurpose::Store, Format::Csv, policy, body).unwrap();
    assert_eq!(list.vouchers, ["code=A 2026-12-31", "code=B 2027-01-01"]);
    let list = read(ListPurpose::Void, Format::Csv, policy, body).unwrap();
    assert_eq!(
        list.notices,
        ["the columns expiry are not used here and were ignored"]
    );
}
