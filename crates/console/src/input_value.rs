//! Values of inputs: from the text of a form to JSON, and back.

use vouchsafe_wire::operator::stock::named_fields::{NamedFields, NamedLines, split_named_lines};

use crate::json::Json;
use crate::page::{Input, InputKind};

const ROW_FIELDS: [&str; 5] = ["code", "pin", "serial", "url", "expiry"];

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

/// Objects of CSV lines; the first line has the names. A line that is not CSV, or has more values than names, is null: the API rejects
/// it by its position, and no error quotes a code.
fn parse_rows(text: &str) -> Json {
    // Without a header the first line has a code, which the API would quote as an unknown field.
    let has_header = |lines: &NamedLines| lines.names.iter().all(|name| ROW_FIELDS.contains(&name.as_str()));
    let Some(lines) = split_named_lines(text).ok().filter(has_header) else {
        return Json::List(vec![Json::Null]);
    };
    let object = |fields: NamedFields| {
        let fields = fields.into_iter().map(|(name, value)| (name, Json::Text(value)));
        Json::Object(fields.collect())
    };
    let rows = lines
        .lines
        .into_iter()
        .map(|fields| fields.map_or(Json::Null, object));
    Json::List(rows.collect())
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
        let rows = parse_rows("code,pin\r\n\"A,B\",1\r\n\r\nC\r\nD,2,E\r\n\"F\r\n");
        assert_eq!(
            rows.to_string(),
            r#"[{"code":"A,B","pin":"1"},{"code":"C"},null,null]"#
        );
        assert_eq!(parse_rows("SECRET-1,1\nSECRET-2,2").to_string(), "[null]");
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
