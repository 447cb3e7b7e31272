//! Answers for people: an object as lines, a list as a table.
//!
//! Rule: amounts are shown with the very digits that came; no number goes through a float.

use std::fmt;

use anyhow::Context as _;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The heading of a column, and the field below it.
pub(super) type Column = (&'static str, &'static str);

/// An object's fields in the order in which they came.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}

impl Fields {
    fn cell(&self, name: &str) -> String {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or_else(|| "-".to_owned(), |(_, value)| cell(value))
    }
}

#[derive(Deserialize)]
struct List {
    data: Vec<Fields>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// A value without its quotes; nothing is a dash.
fn cell(value: &RawValue) -> String {
    let text = value.get();
    match text.bytes().next() {
        Some(b'"') => serde_json::from_str(text).unwrap_or_else(|_| text.to_owned()),
        Some(b'[') => match serde_json::from_str::<Vec<Box<RawValue>>>(text) {
            Ok(values) => values
                .iter()
                .map(|value| cell(value))
                .collect::<Vec<_>>()
                .join(", "),
            Err(_) => text.to_owned(),
        },
        Some(b'n') => "-".to_owned(),
        _ => text.to_owned(),
    }
}

/// An object, a field a line; objects and lists of objects in it are set in.
pub(super) fn object(answer: &str) -> anyhow::Result<String> {
    if answer.is_empty() {
        return Ok(String::new());
    }
    let fields: Fields = serde_json::from_str(answer)?;
    Ok(lines(&fields, 0).join("\n"))
}

fn lines(fields: &Fields, depth: usize) -> Vec<String> {
    let width = fields
        .0
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or_default();
    let indent = "  ".repeat(depth);
    let mut lines = Vec::new();
    for (name, value) in &fields.0 {
        match nested(value) {
            Some(objects) => {
                lines.push(format!("{indent}{name}:"));
                lines.extend(objects.iter().flat_map(|object| self::lines(object, depth + 1)));
            }
            None => lines.push(format!("{indent}{name:width$}  {}", cell(value))),
        }
    }
    lines
}

/// The objects that a value is or holds, if there are any.
fn nested(value: &RawValue) -> Option<Vec<Fields>> {
    let one = serde_json::from_str::<Fields>(value.get()).map(|object| vec![object]);
    let objects = one
        .or_else(|_| serde_json::from_str::<Vec<Fields>>(value.get()))
        .ok()?;
    (!objects.is_empty() && objects.iter().all(|object| !object.0.is_empty())).then_some(objects)
}

/// The list of objects in a field of an object, as a table.
pub(super) fn table_of(answer: &str, field: &str, columns: &[Column]) -> anyhow::Result<String> {
    let object: Fields = serde_json::from_str(answer)?;
    let list = object.0.into_iter().find(|(name, _)| name == field);
    let list = list.with_context(|| format!("it has no {field}"))?.1;
    Ok(rows_of(
        &serde_json::from_str::<Vec<Fields>>(list.get())?,
        columns,
    ))
}

/// A list as a table, with the way to the next page.
pub(super) fn table(answer: &str, columns: &[Column]) -> anyhow::Result<String> {
    let list: List = serde_json::from_str(answer)?;
    let mut text = rows_of(&list.data, columns);
    if list.data.is_empty() {
        text.push_str("\n(nothing)");
    }
    if let Some(cursor) = list.next_cursor {
        text.push_str(&format!("\nThere are more: --cursor {cursor}"));
    }
    Ok(text)
}

/// A line of headings, and one for each object.
fn rows_of(objects: &[Fields], columns: &[Column]) -> String {
    let heads = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
    let row = |fields: &Fields| columns.iter().map(|(_, name)| fields.cell(name)).collect();
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(objects.iter().map(row)).collect();
    aligned(&rows)
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_a_field_a_line() {
        let answer = r#"{"id":"p1","amount":90071992547409.93,"list":["a","b"],"none":null,"limits":{},
            "inner":{"x":25.00},"many":[{"y":1},{"y":2}]}"#;
        let expected = "id      p1\namount  90071992547409.93\nlist    a, b\nnone    -\nlimits  {}\ninner:\n  x  25.00\nmany:\n  y  1\n  y  2";
        assert_eq!(object(answer).unwrap(), expected);
        assert_eq!(object("").unwrap(), "");
    }

    #[test]
    fn a_list_in_an_object_is_a_table() {
        let answer = r#"{"id":"p1","points":[{"name":"one","at":null}]}"#;
        let columns = [("NAME", "name"), ("WHEN", "at")];
        assert_eq!(
            table_of(answer, "points", &columns).unwrap(),
            "NAME  WHEN\none   -"
        );
        assert!(table_of(answer, "others", &columns).is_err());
    }

    #[test]
    fn a_list_is_a_table() {
        let columns = [("PRODUCT", "product_id"), ("PRICE", "price"), ("GONE", "gone")];
        let answer = r#"{"data":[{"price":25.00,"product_id":"ä"},{"product_id":"longer-one","price":1}],
            "has_more":true,"next_cursor":"abc"}"#;
        let expected = "PRODUCT     PRICE  GONE\nä           25.00  -\nlonger-one  1      -\nThere are more: --cursor abc";
        assert_eq!(table(answer, &columns).unwrap(), expected);
        let nothing = r#"{"data":[],"has_more":false,"next_cursor":null}"#;
        assert_eq!(table(nothing, &columns[..1]).unwrap(), "PRODUCT\n(nothing)");
    }
}
