//! Formats JSON responses for a terminal: an object as lines, a list as a table.
//!
//! Numbers are printed with their original digits and never parsed as floats.

use std::fmt;

use anyhow::Context as _;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Heading of a column and name of its field.
pub(super) type Column = (&'static str, &'static str);

/// Fields of an object in their original order.
struct OrderedFields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for OrderedFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OrderedFieldsVisitor)
    }
}

struct OrderedFieldsVisitor;

impl<'de> Visitor<'de> for OrderedFieldsVisitor {
    type Value = OrderedFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedFields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(OrderedFields(fields))
    }
}

impl OrderedFields {
    fn cell(&self, name: &str) -> String {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or_else(|| "-".to_owned(), |(_, value)| format_cell(value))
    }
}

#[derive(Deserialize)]
struct ListBody {
    data: Vec<OrderedFields>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// Formats a value without quotes; `null` is a dash.
fn format_cell(value: &RawValue) -> String {
    let text = value.get();
    match text.bytes().next() {
        Some(b'"') => serde_json::from_str(text).unwrap_or_else(|_| text.to_owned()),
        Some(b'[') => match serde_json::from_str::<Vec<Box<RawValue>>>(text) {
            Ok(values) => values
                .iter()
                .map(|value| format_cell(value))
                .collect::<Vec<_>>()
                .join(", "),
            Err(_) => text.to_owned(),
        },
        Some(b'n') => "-".to_owned(),
        _ => text.to_owned(),
    }
}

/// Formats an object, one field per line; nested objects are indented.
pub(super) fn format_object(body: &str) -> anyhow::Result<String> {
    if body.is_empty() {
        return Ok(String::new());
    }
    let fields: OrderedFields = serde_json::from_str(body)?;
    Ok(format_fields(&fields, 0).join("\n"))
}

fn format_fields(fields: &OrderedFields, depth: usize) -> Vec<String> {
    let width = fields
        .0
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or_default();
    let indent = "  ".repeat(depth);
    let mut lines = Vec::new();
    for (name, value) in &fields.0 {
        match nested_objects(value) {
            Some(objects) => {
                lines.push(format!("{indent}{name}:"));
                lines.extend(objects.iter().flat_map(|object| format_fields(object, depth + 1)));
            }
            None => lines.push(format!("{indent}{name:width$}  {}", format_cell(value))),
        }
    }
    lines
}

/// The value as a non-empty object or list of objects.
fn nested_objects(value: &RawValue) -> Option<Vec<OrderedFields>> {
    let one = serde_json::from_str::<OrderedFields>(value.get()).map(|object| vec![object]);
    let objects = one
        .or_else(|_| serde_json::from_str::<Vec<OrderedFields>>(value.get()))
        .ok()?;
    (!objects.is_empty() && objects.iter().all(|object| !object.0.is_empty())).then_some(objects)
}

/// Formats the list in a field of an object as a table.
pub(super) fn format_field_table(body: &str, field: &str, columns: &[Column]) -> anyhow::Result<String> {
    let object: OrderedFields = serde_json::from_str(body)?;
    let list = object.0.into_iter().find(|(name, _)| name == field);
    let list = list.with_context(|| format!("it has no {field}"))?.1;
    Ok(format_rows(
        &serde_json::from_str::<Vec<OrderedFields>>(list.get())?,
        columns,
    ))
}

/// Formats a list as a table, with the cursor of the next page.
pub(super) fn format_list(body: &str, columns: &[Column]) -> anyhow::Result<String> {
    let list: ListBody = serde_json::from_str(body)?;
    let mut text = format_rows(&list.data, columns);
    if list.data.is_empty() {
        text.push_str("\n(no entries)");
    }
    if let Some(cursor) = list.next_cursor {
        text.push_str(&format!("\nNext page: --cursor {cursor}"));
    }
    Ok(text)
}

/// A line of headings, then one line per object.
fn format_rows(objects: &[OrderedFields], columns: &[Column]) -> String {
    let heads = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
    let row = |fields: &OrderedFields| columns.iter().map(|(_, name)| fields.cell(name)).collect();
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(objects.iter().map(row)).collect();
    align_columns(&rows)
}

fn align_columns(rows: &[Vec<String>]) -> String {
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
    fn object_prints_one_field_per_line() {
        let body = r#"{"id":"p1","amount":90071992547409.93,"list":["a","b"],"none":null,"limits":{},
            "inner":{"x":25.00},"many":[{"y":1},{"y":2}]}"#;
        let expected = "id      p1\namount  90071992547409.93\nlist    a, b\nnone    -\nlimits  {}\ninner:\n  x  25.00\nmany:\n  y  1\n  y  2";
        assert_eq!(format_object(body).unwrap(), expected);
        assert_eq!(format_object("").unwrap(), "");
    }

    #[test]
    fn list_in_object_prints_as_table() {
        let body = r#"{"id":"p1","points":[{"name":"one","at":null}]}"#;
        let columns = [("NAME", "name"), ("WHEN", "at")];
        assert_eq!(
            format_field_table(body, "points", &columns).unwrap(),
            "NAME  WHEN\none   -"
        );
        assert!(format_field_table(body, "others", &columns).is_err());
    }

    #[test]
    fn list_prints_as_table_with_next_cursor() {
        let columns = [("PRODUCT", "product_id"), ("PRICE", "price"), ("GONE", "gone")];
        let body = r#"{"data":[{"price":25.00,"product_id":"ä"},{"product_id":"longer-one","price":1}],
            "has_more":true,"next_cursor":"abc"}"#;
        let expected =
            "PRODUCT     PRICE  GONE\nä           25.00  -\nlonger-one  1      -\nNext page: --cursor abc";
        assert_eq!(format_list(body, &columns).unwrap(), expected);
        let empty = r#"{"data":[],"has_more":false,"next_cursor":null}"#;
        assert_eq!(
            format_list(empty, &columns[..1]).unwrap(),
            "PRODUCT\n(no entries)"
        );
    }
}
