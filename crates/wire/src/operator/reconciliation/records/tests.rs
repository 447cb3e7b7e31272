//! Record files: column order, and rejection with line number and reason.

use time::macros::date;

use super::*;
use crate::operator::table::blocks::BlockSplitter;
use crate::operator::table::notice::QuotedName;

const HEADER: &str = "reference,product_id,denomination,currency,sold_at,purchase_id";

const LINE: &str = "A-1,game-us,25.00,USD,2026-11-20T12:00:00Z,0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f";

fn read(text: &str) -> Result<Vec<RecordLine>, RejectedLine> {
    let mut blocks = BlockSplitter::default();
    blocks.push(text.as_bytes()).unwrap();
    blocks.finish().unwrap();
    let mut reader = RecordReader::new(date!(2026 - 11 - 20));
    let mut lines = Vec::new();
    while let Some(block) = blocks.take() {
        lines.extend(reader.read(&block)?);
    }
    lines.extend(reader.finish()?);
    Ok(lines)
}

#[test]
fn columns_in_any_order_are_parsed() {
    let lines = read(&format!("\u{feff}{HEADER}\r\n{LINE}\r\n\r\n")).unwrap();
    assert_eq!(lines.len(), 1);
    let RecordLine {
        reference,
        terms: message,
        ..
    } = &lines[0];
    assert_eq!(
        (reference.as_str(), message.denomination.amount.minor()),
        ("A-1", 2_500)
    );
    let reordered = "Sold_At, currency ,denomination,product_id,reference\n2026-11-20T23:59:59.9Z,JPY,\"1000\",game-jp,A-2";
    let lines = read(reordered).unwrap();
    assert_eq!(
        (lines[0].terms.purchase, lines[0].reference.as_str()),
        (None, "A-2")
    );
    assert_eq!(read(HEADER), Ok(Vec::new()), "a day without sales");
    let semicolons = format!("{HEADER}\r{LINE}\r").replace(',', ";");
    assert_eq!(read(&semicolons).unwrap().len(), 1);
}

#[test]
fn invalid_line_rejects_file_without_quoting_it() {
    let field = RecordError::Field;
    let names = COLUMN_NAMES.join(", ");
    for (text, line, error) in [
        (String::new(), 1, FileError::Empty(names.clone()).into()),
        (
            "code,pin\nA,B".to_owned(),
            1,
            FileError::NoHeader {
                reason: "column 1 has none of the known names".to_owned(),
                names: names.clone(),
            }
            .into(),
        ),
        (
            format!("{HEADER},code\n{LINE},X"),
            1,
            FileError::UnknownColumn {
                position: 7,
                name: QuotedName::new("code"),
                names: names.clone(),
            }
            .into(),
        ),
        (
            HEADER.replace("purchase_id", "reference"),
            1,
            FileError::RepeatedColumn("reference").into(),
        ),
        (
            HEADER.replace("reference,", ""),
            1,
            FileError::MissingColumn("reference".to_owned()).into(),
        ),
        (
            format!("{HEADER}\n{LINE}\nA-2,game-us"),
            3,
            LineError::Fields {
                expected: 6,
                found: 2,
            }
            .into(),
        ),
        (format!("{HEADER}\n\"{LINE}"), 2, LineError::OpenQuote.into()),
        (
            format!("{HEADER}\n{}", LINE.replace("A-1", "")),
            2,
            field("reference"),
        ),
        (
            format!("{HEADER}\n{}", LINE.replace("A-1", "A 1")),
            2,
            field("reference"),
        ),
        (
            format!("{HEADER}\n{}", LINE.replace("game-us", "Game US")),
            2,
            field("product_id"),
        ),
        (
            format!("{HEADER}\n{}", LINE.replace("25.00", "25.001")),
            2,
            field("denomination"),
        ),
        (
            format!("{HEADER}\n{}", LINE.replace("25.00", "\"25,00\"")),
            2,
            RecordError::DecimalComma,
        ),
        (
            format!("{HEADER}\n{}", LINE.replace("USD", "usd")),
            2,
            field("currency"),
        ),
        (
            format!("{HEADER}\n{}", LINE.replace("T12:00:00Z", "")),
            2,
            field("sold_at"),
        ),
        (
            format!("{HEADER}\n{}", LINE.replace("0198c1f2-", "")),
            2,
            field("purchase_id"),
        ),
        (
            format!("{HEADER}\n{}", LINE.replace("T12:00:00Z", "T23:00:00-02:00")),
            2,
            RecordError::OtherDay,
        ),
    ] {
        let expected = RejectedLine { line, error };
        assert_eq!(read(&text), Err(expected.clone()), "{text}");
        let message = InvalidRequest::from(expected).message;
        assert!(
            !message.contains("A-1") && !message.contains("Game US"),
            "{message}"
        );
    }
}
