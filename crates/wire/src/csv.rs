//! Lists as CSV (RFC 4180), with texts neutralised that a spreadsheet would calculate (CSV injection).

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use vouchsafe_domain::deceptive::escape_value;

use crate::column::Column;

pub const MEDIA_TYPE: &str = "text/csv";

/// Characters at the beginning of a text that a spreadsheet takes for a formula, also in their wide forms.
/// Tabs, carriage returns and line feeds are written as escapes.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// The fields of a list's columns: a column of the file each, headed by its name in the API.
#[derive(Debug, Clone)]
pub struct CsvTable(Vec<&'static str>);

impl CsvTable {
    /// All fields of the columns, each once.
    #[must_use]
    pub fn of(columns: &[Column]) -> Self {
        let mut fields = Vec::new();
        for field in columns.iter().flat_map(|column| column.fields.split(' ')) {
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        Self(fields)
    }

    /// The line of headings, without its end.
    #[must_use]
    pub fn header(&self) -> String {
        self.0.join(",")
    }

    /// The line of an entry, without its end.
    ///
    /// # Errors
    /// The entry is no JSON object.
    pub fn line(&self, entry: &RawValue) -> serde_json::Result<String> {
        let fields = parse_object(entry)?;
        let cells = self.0.iter().map(|path| match path.split_once('.') {
            None => fields.get(*path).map_or_else(String::new, |value| cell(value)),
            Some((name, rest)) => fields
                .get(name)
                .and_then(|value| find(value, rest))
                .map_or_else(String::new, cell),
        });
        Ok(cells.collect::<Vec<_>>().join(","))
    }
}

fn parse_object(json: &RawValue) -> serde_json::Result<BTreeMap<String, &RawValue>> {
    serde_json::from_str(json.get())
}

/// The value at a path of field names. `last` is the last entry of a list.
fn find<'a>(value: &'a RawValue, path: &str) -> Option<&'a RawValue> {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    let found = if name == "last" {
        let entries: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
        entries.last().copied()
    } else {
        parse_object(value).ok()?.get(name).copied()
    }?;
    match rest {
        Some(rest) => find(found, rest),
        None => Some(found),
    }
}

/// Numbers keep their digits, lists of texts are joined, objects stay JSON.
fn cell(value: &RawValue) -> String {
    let json = value.get();
    match json.as_bytes().first() {
        Some(b'n') => String::new(),
        Some(b'"') => text_cell(&text_of(value)),
        Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(json) {
            Ok(entries) if entries.iter().all(|entry| !entry.get().starts_with(['{', '['])) => {
                text_cell(&entries.into_iter().map(text_of).collect::<Vec<_>>().join(", "))
            }
            _ => text_cell(json),
        },
        Some(b'{') => text_cell(json),
        _ => json.to_owned(),
    }
}

/// The text of a string; that of another value is its JSON.
fn text_of(value: &RawValue) -> String {
    serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

fn text_cell(text: &str) -> String {
    let text = escape_value(text);
    let apostrophe = if text.starts_with(FORMULA) { "'" } else { "" };
    if text.contains(['"', ',', ';', '\'']) || !apostrophe.is_empty() {
        format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::col;

    fn line(columns: &[Column], entry: &str) -> String {
        let entry: Box<RawValue> = serde_json::from_str(entry).unwrap();
        CsvTable::of(columns).line(&entry).unwrap()
    }

    #[test]
    fn text_that_looks_like_a_formula_is_neutralised_and_number_stays_one() {
        let columns = [col("Text", "text"), col("Number", "number")];
        for (text, cell) in [
            ("=1+1", "\"'=1+1\""),
            ("+49", "\"'+49\""),
            ("-25.00", "\"'-25.00\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("＝1", "\"'＝1\""),
            (r"\t=1", r"\t=1"),
            (r"\r=1", r"\u000d=1"),
            (r#"a;=1,\"b\""#, "\"a;=1,\"\"b\"\"\""),
            ("a-b", "a-b"),
            ("日本", "日本"),
        ] {
            let entry = format!(r#"{{"text":"{text}","number":-25.00}}"#);
            assert_eq!(line(&columns, &entry), format!("{cell},-25.00"), "{text}");
        }
    }

    #[test]
    fn each_field_is_a_column_once() {
        let columns = [
            col("Order", "order_id").terminal_only(),
            col("Total", "amount currency"),
            col("Code", "attempts.last.status circuit.state").console_only(),
            col("Currency", "currency"),
        ];
        assert_eq!(
            CsvTable::of(&columns).header(),
            "order_id,amount,currency,attempts.last.status,circuit.state"
        );
        let entry = r#"{"amount":90071992547409.93,"currency":"USD","order_id":null,
            "attempts":[{"status":1},{"status":200}],"circuit":{"state":"OPEN"}}"#;
        assert_eq!(line(&columns, entry), ",90071992547409.93,USD,200,OPEN");
    }

    #[test]
    fn list_of_texts_is_joined_and_object_is_json() {
        let columns = [col("A", "a"), col("B", "b"), col("C", "c"), col("D", "d.x")];
        let entry = r#"{"a":["=x",25.00],"b":{"x":true},"c":[{"y":1}],"d":[]}"#;
        assert_eq!(
            line(&columns, entry),
            r#""'=x, 25.00","{""x"":true}","[{""y"":1}]","#
        );
        assert!(
            CsvTable::of(&columns)
                .line(&serde_json::from_str::<Box<RawValue>>("1").unwrap())
                .is_err()
        );
    }
}
