//! Values of inputs: from the text of a form to JSON, and back.

use vouchsafe_wire::operator::stock::row::{DamagePolicy, VoucherFields};
use vouchsafe_wire::operator::stock::voucher_list::{ListPurpose, VoucherList, read_whole};
use vouchsafe_wire::operator::table::reader::Format;

use crate::json::Json;
use crate::page::{Input, InputKind};

/// The JSON of an input; `None` if it is omitted. What does not parse is sent as text: the API says what it expects.
pub(crate) fn parse(input: &Input, text: &str) -> Option<Json> {
    let as_text = || Json::Text(text.to_owned());
    if matches!(input.kind, InputKind::Flag) {
        // An operator may have cleared a flag that was set.
        let is_sent = !text.is_empty() || input.is_required || input.is_prefilled;
        return is_sent.then_some(Json::Bool(!text.is_empty()));
    }
    if matches!(input.kind, InputKind::Lines) && (input.is_required || input.is_nullable || !text.is_empty())
    {
        let lines = text
            .split([',', '\n'])
            .map(str::trim)
            .filter(|line| !line.is_empty());
        return Some(Json::List(
            lines.map(|line| Json::Text(line.to_owned())).collect(),
        ));
    }
    if text.is_empty() {
        return match (input.is_nullable, input.is_required) {
            (true, _) => Some(Json::Null),
            (false, true) => Some(as_text()),
            (false, false) => None,
        };
    }
    Some(match input.kind {
        InputKind::Number => parse_number(text).unwrap_or_else(as_text),
        InputKind::Json => match Json::parse(text.as_bytes()) {
            object @ Json::Object(_) => object,
            _ => as_text(),
        },
        InputKind::Limit => parse_limit(text).unwrap_or_else(as_text),
        InputKind::Rows => parse_rows(text),
        _ => as_text(),
    })
}

/// A whole number; JSON has none with leading zeros.
fn parse_number(text: &str) -> Option<Json> {
    let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = text.trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    is_whole.then(|| Json::Number(digits.to_owned()))
}

fn parse_limit(text: &str) -> Option<Json> {
    let (quota, window) = text.split_once('/')?;
    let mut limit = Json::Null;
    limit.set("quota", parse_number(quota)?);
    limit.set("window_s", parse_number(window)?);
    Some(limit)
}

/// Objects of the records of a list. A record that does not parse is null: the API rejects it by its
/// position, and no error quotes a code.
fn parse_rows(text: &str) -> Json {
    // The API checks what a spreadsheet may have damaged.
    let list = VoucherList::new(ListPurpose::Store, Format::Csv, DamagePolicy::AcceptAsIs);
    let Ok(list) = read_whole(list, text.as_bytes(), |listed| Ok(row_object(&listed.voucher))) else {
        return Json::List(vec![Json::Null]);
    };
    let rejected = list.rejected.into_iter().map(|(line, _)| (line, Json::Null));
    let mut rows: Vec<(u64, Json)> = list.values.into_iter().chain(rejected).collect();
    rows.sort_by_key(|(line, _)| *line);
    Json::List(rows.into_iter().map(|(_, row)| row).collect())
}

fn row_object(fields: &VoucherFields<'_>) -> Json {
    let VoucherFields { parts, expiry } = *fields;
    let texts = [
        ("code", Some(parts.code)),
        ("pin", parts.pin),
        ("serial", parts.serial),
        ("url", parts.url),
        ("expiry", expiry),
    ];
    let present = texts
        .into_iter()
        .filter_map(|(name, text)| Some((name.to_owned(), Json::Text(text?.to_owned()))));
    Json::Object(present.collect())
}

/// The text that an operator would type for a value.
pub(crate) fn text_of(input: &Input, value: &Json) -> String {
    match (input.kind, value) {
        (_, Json::Null) => String::new(),
        (InputKind::Flag, Json::Bool(value)) => if *value { "on" } else { "" }.to_owned(),
        (InputKind::Lines, Json::List(entries)) => {
            let lines: Vec<_> = entries.iter().filter_map(Json::text).collect();
            lines.join("\n")
        }
        (InputKind::Limit, limit @ Json::Object(_)) => {
            let part = |name| limit.get(name).text().unwrap_or_default();
            format!("{}/{}", part("quota"), part("window_s"))
        }
        (_, Json::Text(text) | Json::Number(text)) => text.clone(),
        (_, value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_csv_and_a_line_with_too_many_values_is_not_cut() {
        let rows = parse_rows("code,pin\r\n\"A,B\",1\r\n\r\nC,\r\nD,2,E\r\n\"F\r\n");
        assert_eq!(
            rows.to_string(),
            r#"[{"code":"A,B","pin":"1"},{"code":"C"},null,null]"#
        );
        assert_eq!(
            parse_rows("A-1,1\nA-2,2").to_string(),
            r#"[{"code":"A-1","pin":"1"},{"code":"A-2","pin":"2"}]"#
        );
        assert_eq!(parse_rows("code,colour\nSECRET-1,1").to_string(), "[null]");
    }

    #[test]
    fn number_with_leading_zeros_keeps_its_value() {
        for (text, number) in [("030", "30"), ("0", "0"), ("000", "0"), ("7", "7")] {
            assert_eq!(
                parse_number(text),
                Some(Json::Number(number.to_owned())),
                "{text}"
            );
        }
        assert_eq!(
            [parse_number(""), parse_number("1.5"), parse_number("-1")],
            [None, None, None]
        );
        assert_eq!(
            parse_limit("010/060").unwrap().to_string(),
            r#"{"quota":10,"window_s":60}"#
        );
    }
}
