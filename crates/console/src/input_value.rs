//! Values of inputs: from the text of a form to JSON, and back.

use vouchsafe_wire::operator::stock::row::{DamagePolicy, VoucherFields};
use vouchsafe_wire::operator::stock::voucher_list::{ListPurpose, VoucherList, WholeList, read_whole};
use vouchsafe_wire::operator::table::notice::FileError;
use vouchsafe_wire::operator::table::reader::Format;

use crate::field::{Field, FieldKind};
use crate::json::Json;
use crate::time_input::api_time;

/// The JSON of a field without parts; `None` if it is omitted. What does not parse is sent as text: the API
/// says what it expects.
pub(crate) fn parse(field: &Field, text: &str) -> Option<Json> {
    let as_text = || Json::Text(text.to_owned());
    let is_sent = !text.is_empty() || field.is_required || field.is_prefilled;
    match field.kind {
        // An operator may have cleared a flag that was set.
        FieldKind::Flag => return is_sent.then_some(Json::Bool(!text.is_empty())),
        FieldKind::Lines | FieldKind::Choices(_) if is_sent => {
            let lines = entries(text).map(|line| Json::Text(line.to_owned()));
            return Some(Json::List(lines.collect()));
        }
        FieldKind::Amounts if is_sent => return Some(parse_amounts(text)),
        _ => {}
    }
    if text.is_empty() {
        return match (field.is_nullable, field.is_required) {
            (true, _) => Some(Json::Null),
            (false, true) => Some(as_text()),
            (false, false) => None,
        };
    }
    Some(match field.kind {
        FieldKind::Number => parse_number(text).unwrap_or_else(as_text),
        FieldKind::Limit => parse_limit(text).unwrap_or_else(as_text),
        FieldKind::Rows => parse_rows(text),
        FieldKind::Time => Json::Text(api_time(text)),
        _ => as_text(),
    })
}

/// The object of a group's fields; null if it is not set.
pub(crate) fn group(is_set: bool, parts: &[Field], value: impl Fn(&Field) -> Option<Json>) -> Json {
    if !is_set {
        return Json::Null;
    }
    let values = parts
        .iter()
        .filter_map(|part| Some((part.key().to_owned(), value(part)?)));
    Json::Object(values.collect())
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n'])
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}

/// `USD 500.00` per line. The API names a currency without an amount.
fn parse_amounts(text: &str) -> Json {
    let mut amounts = Json::Object(Vec::new());
    for entry in entries(text) {
        let (currency, amount) = entry.split_once(char::is_whitespace).unwrap_or((entry, ""));
        amounts.set(currency, Json::Text(amount.trim().to_owned()));
    }
    amounts
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

/// Objects of the records of a list. A form with a record that does not parse is not sent.
fn parse_rows(text: &str) -> Json {
    let rows = read_rows(text).map(|list| list.values).unwrap_or_default();
    Json::List(rows.into_iter().map(|(_, row)| row).collect())
}

fn read_rows(text: &str) -> Result<WholeList<Json>, FileError> {
    // The API checks what a spreadsheet may have damaged.
    let list = VoucherList::new(ListPurpose::Store, Format::Csv, DamagePolicy::AcceptAsIs);
    read_whole(list, text.as_bytes(), |listed| {
        listed.voucher.check_code()?;
        Ok(row_object(&listed.voucher))
    })
}

/// The lines of a list that do not parse, all of them, each with its reason. No reason quotes a code.
pub(crate) fn rejected_rows(text: &str) -> Vec<String> {
    let list = match read_rows(text) {
        Ok(list) => list,
        Err(error) => return vec![error.to_string()],
    };
    let rejected = list.rejected.iter();
    rejected
        .map(|(line, reason)| format!("line {line}: {reason}"))
        .collect()
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

/// The text that an operator would type for a value; of a group its JSON, as the form would send it.
pub(crate) fn text_of(field: &Field, value: &Json) -> String {
    match (&field.kind, value) {
        (FieldKind::Group(_), value) => value_of(field, value).unwrap_or(Json::Null).to_string(),
        (_, Json::Null) => String::new(),
        (FieldKind::Flag, Json::Bool(value)) => if *value { "on" } else { "" }.to_owned(),
        (FieldKind::Choices(choices), Json::List(chosen)) => {
            let is_chosen = |choice: &&str| chosen.iter().any(|entry| entry.text() == Some(choice));
            let chosen = choices.iter().map(String::as_str).filter(is_chosen);
            chosen.collect::<Vec<_>>().join("\n")
        }
        (FieldKind::Lines, Json::List(entries)) => {
            let lines: Vec<_> = entries.iter().filter_map(Json::text).collect();
            lines.join("\n")
        }
        (FieldKind::Amounts, Json::Object(amounts)) => {
            let line = |(currency, amount): &(String, Json)| Some(format!("{currency} {}", amount.text()?));
            amounts.iter().filter_map(line).collect::<Vec<_>>().join("\n")
        }
        (FieldKind::Limit, limit @ Json::Object(_)) => {
            let part = |name| limit.get(name).text().unwrap_or_default();
            format!("{}/{}", part("quota"), part("window_s"))
        }
        (_, Json::Text(text) | Json::Number(text)) => text.clone(),
        (_, value) => value.to_string(),
    }
}

/// What a form sends for a value that the operator leaves alone.
fn value_of(field: &Field, value: &Json) -> Option<Json> {
    match &field.kind {
        FieldKind::Group(parts) => {
            let is_set = !field.is_nullable || *value != Json::Null;
            Some(group(is_set, parts, |part| value_of(part, value.get(part.key()))))
        }
        _ => parse(field, &text_of(field, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_csv_and_a_line_with_too_many_values_is_not_cut() {
        let rows = parse_rows("code,pin\r\n\"A,B\",1\r\n\r\nC,\r\nD,2,E\r\n\"F\r\n");
        assert_eq!(rows.to_string(), r#"[{"code":"A,B","pin":"1"},{"code":"C"}]"#);
        assert_eq!(
            rejected_rows("code,pin\r\n\"A,B\",1\r\n\r\nC,\r\nD,2,E\r\n\"F\r\n")
                .iter()
                .map(|line| line.split(':').next().unwrap().to_owned())
                .collect::<Vec<_>>(),
            ["line 5", "line 6"]
        );
        assert_eq!(
            parse_rows("A-1,1\nA-2,2").to_string(),
            r#"[{"code":"A-1","pin":"1"},{"code":"A-2","pin":"2"}]"#
        );
        let rejected = rejected_rows("code,colour\nSECRET-1,1").join("");
        assert!(
            rejected.contains("colour") && !rejected.contains("SECRET"),
            "{rejected}"
        );
        assert!(rejected_rows("A-1,1\nA-2,2").is_empty());
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
