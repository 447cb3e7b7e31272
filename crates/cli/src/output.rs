//! Formats JSON responses for a terminal: an object as lines, a list as a table.
//!
//! Numbers are printed with their original digits and never parsed as floats.

use std::fmt;

use anyhow::Context as _;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use vouchsafe_domain::deceptive::escape_value;
use vouchsafe_domain::period::parse_timestamp;
use vouchsafe_wire::column::{Column, of_terminal};
use vouchsafe_wire::query;

use super::table::{format_table, wrap};
use super::table_options::TableOptions;

/// Fields of an object in their original order.
pub(super) struct OrderedFields(pub(super) Vec<(String, Box<RawValue>)>);

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
        while let Some((name, value)) = map.next_entry::<String, _>()? {
            // Partners choose the names in metadata.
            fields.push((escape_value(&name), value));
        }
        Ok(OrderedFields(fields))
    }
}

impl OrderedFields {
    /// The values of these fields that are not null. `object.field` is a field of an object,
    /// `list.last.field` a field of the last object in a list.
    fn cell(&self, fields: &str) -> String {
        let values = fields.split(' ').filter_map(|path| self.find(path));
        let values: Vec<_> = values.filter(|value| value != NULL).collect();
        if values.is_empty() {
            NULL.to_owned()
        } else {
            values.join(" ")
        }
    }

    fn find(&self, path: &str) -> Option<String> {
        let (name, inner) = match path.split_once('.') {
            Some((name, inner)) => (name, Some(inner)),
            None => (path, None),
        };
        let value = &self.0.iter().find(|(known, _)| known == name)?.1;
        let Some(inner) = inner else {
            return Some(without_fraction(format_cell(value)));
        };
        let Some(of_last) = inner.strip_prefix("last.") else {
            return serde_json::from_str::<Self>(value.get()).ok()?.find(inner);
        };
        let objects: Vec<Self> = serde_json::from_str(value.get()).ok()?;
        objects.last()?.find(of_last)
    }
}

#[derive(Deserialize)]
struct ListBody {
    data: Vec<OrderedFields>,
    #[serde(default)]
    next_cursor: Option<String>,
    #[serde(default)]
    count: Option<u32>,
}

/// A value that is null.
const NULL: &str = "-";

/// Formats a value without quotes, on one line: partners, vendors and receivers send some of the texts.
fn format_cell(value: &RawValue) -> String {
    let text = value.get();
    match text.bytes().next() {
        Some(b'"') => match serde_json::from_str::<String>(text) {
            Ok(text) => escape_value(&text),
            // A lone surrogate.
            Err(_) => text.to_owned(),
        },
        Some(b'[') => match serde_json::from_str::<Vec<Box<RawValue>>>(text) {
            Ok(values) if values.is_empty() => NULL.to_owned(),
            Ok(values) => values
                .iter()
                .map(|value| format_cell(value))
                .collect::<Vec<_>>()
                .join(", "),
            Err(_) => text.to_owned(),
        },
        Some(b'n') => NULL.to_owned(),
        _ => text.to_owned(),
    }
}

/// Removes the fraction of a second from a time.
fn without_fraction(text: String) -> String {
    match text.split_once('.') {
        Some((seconds, _)) if parse_timestamp(&text).is_some() => format!("{seconds}Z"),
        _ => text,
    }
}

/// Formats an object, one field per line; nested objects are indented, and those of a list begin with a
/// hyphen.
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
                let is_list = value.get().starts_with('[');
                for object in &objects {
                    let mut of_object = format_fields(object, depth + 1 + usize::from(is_list));
                    if let Some(first) = of_object.first_mut().filter(|_| is_list) {
                        *first = format!("{indent}  - {}", first.trim_start());
                    }
                    lines.append(&mut of_object);
                }
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
    Ok(format_rows(&list_in(body, field)?, &of_terminal(columns)))
}

fn list_in(body: &str, field: &str) -> anyhow::Result<Vec<OrderedFields>> {
    let object: OrderedFields = serde_json::from_str(body)?;
    let list = object.0.into_iter().find(|(name, _)| name == field);
    let list = list.with_context(|| format!("it has no {field}"))?.1;
    Ok(serde_json::from_str(list.get())?)
}

/// Formats the texts in a list of an object as paragraphs, without those of objects whose field has the
/// value.
pub(super) fn format_paragraphs(
    body: &str,
    field: &str,
    texts: [&str; 2],
    without: (&str, &str),
) -> anyhow::Result<String> {
    let [name, text] = texts;
    let objects = list_in(body, field)?;
    let shown = objects
        .iter()
        .filter(|object| object.cell(without.0) != without.1);
    let paragraphs = shown.map(|object| {
        format!(
            "\n{}",
            wrap(&format!("{}: {}", object.cell(name), object.cell(text)))
        )
    });
    Ok(paragraphs.collect())
}

/// Formats a list as a table, with the options of the next page. A column whose value `query` names is the
/// same in every row and is left out, except states, unless `options` choose columns.
pub(super) fn format_list(
    body: &str,
    columns: &[Column],
    query: &str,
    options: &TableOptions,
) -> anyhow::Result<String> {
    let list: ListBody = serde_json::from_str(body)?;
    let filters = query::split(query).unwrap_or_default();
    let is_filtered = |column: &Column| {
        let names_object = column.fields.ends_with("_id") || ["vendor", "date"].contains(&column.fields);
        names_object && filters.iter().any(|(name, _)| name == column.fields)
    };
    let mut columns = columns.to_vec();
    if options.columns.is_empty() {
        let first = columns.first().map(|column| column.fields);
        columns.retain(|column| Some(column.fields) == first || !is_filtered(column));
    }
    let mut text = format_rows(&list.data, &columns);
    if list.data.is_empty() {
        text.push_str("\n(no entries)");
    }
    match list.count {
        Some(count) => text = format!("{text}\nEntries: {count}"),
        None if filters.iter().any(|(name, _)| name == "count") => text += "\nEntries: more than 10000",
        None => {}
    }
    if let Some(cursor) = list.next_cursor {
        // A cursor is bound to the filters: an age such as 1h would be another time now.
        let times = [("from", "--since"), ("to", "--until")]
            .into_iter()
            .filter_map(|(name, option)| {
                let (_, time) = filters.iter().find(|(known, _)| known == name)?;
                Some(format!("{option} {time} "))
            });
        let times: String = times.collect();
        text = format!("{text}\nNext page: {times}--cursor {cursor}");
    }
    Ok(text)
}

fn format_rows(objects: &[OrderedFields], columns: &[Column]) -> String {
    format_table(columns, &rows_of(objects, columns))
}

fn rows_of(objects: &[OrderedFields], columns: &[Column]) -> Vec<Vec<String>> {
    let row = |object: &OrderedFields| columns.iter().map(|column| object.cell(column.fields)).collect();
    objects.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use vouchsafe_wire::column::col;

    use super::*;

    #[test]
    fn object_prints_one_field_per_line() {
        let body = r#"{"id":"p1","amount":90071992547409.93,"list":["a","b"],"empty":[],"none":null,"limits":{},
            "inner":{"x":25.00},"many":[{"y":1,"z":0},{"y":2}]}"#;
        let expected = "id      p1\namount  90071992547409.93\nlist    a, b\nempty   -\nnone    -\nlimits  \
            {}\ninner:\n  x  25.00\nmany:\n  - y  1\n    z  0\n  - y  2";
        assert_eq!(format_object(body).unwrap(), expected);
        assert_eq!(format_object("").unwrap(), "");
    }

    #[test]
    fn list_in_object_prints_as_table_and_paragraphs() {
        let body =
            r#"{"id":"p1","points":[{"name":"one","at":null,"advice":"do it"},{"name":"two","at":"x"}]}"#;
        let columns = [col("Name", "name"), col("When", "at")];
        assert_eq!(
            format_field_table(body, "points", &columns).unwrap(),
            "NAME  WHEN\none   -\ntwo   x"
        );
        assert!(format_field_table(body, "others", &columns).is_err());
        let paragraphs = format_paragraphs(body, "points", ["name", "advice"], ("at", "x"));
        assert_eq!(paragraphs.unwrap(), "\none: do it");
    }

    #[test]
    fn list_prints_as_table_with_next_cursor() {
        let columns = [
            col("Product", "product_id"),
            col("Price", "price currency"),
            col("Gone", "gone"),
        ];
        let body = r#"{"data":[{"price":25.00,"currency":"USD","product_id":"ä"},{"product_id":"longer-one","price":1}],
            "has_more":true,"next_cursor":"abc"}"#;
        let expected = "PRODUCT     PRICE      GONE\nä           25.00 USD  -\nlonger-one  1          -\nNext page: --cursor abc";
        assert_eq!(
            format_list(body, &columns, "limit=2", &TableOptions::default()).unwrap(),
            expected
        );
        let empty = r#"{"data":[],"has_more":false,"next_cursor":null}"#;
        assert_eq!(
            format_list(empty, &columns[..1], "", &TableOptions::default()).unwrap(),
            "PRODUCT\n(no entries)"
        );
    }

    #[test]
    fn filtered_list_leaves_out_the_known_id_and_repeats_the_times() {
        let columns = [
            col("Webhook", "webhook_id"),
            col("Partner", "partner_id"),
            col("Status", "status"),
        ];
        let body = r#"{"data":[{"webhook_id":"w","partner_id":"p","status":"s"}],"has_more":true,"next_cursor":"c"}"#;
        assert_eq!(
            format_list(
                body,
                &columns,
                "webhook_id=w&partner_id=p&status=s&from=2026-11-20T12%3A00%3A00Z",
                &TableOptions::default()
            )
            .unwrap(),
            "WEBHOOK  STATUS\nw        s\nNext page: --since 2026-11-20T12:00:00Z --cursor c"
        );
    }

    #[test]
    fn cell_shows_seconds_the_last_attempt_and_escapes() {
        let columns = [
            col("At", "at"),
            col("Response", "attempts.last.status attempts.last.fault"),
            col("Note", "note"),
        ];
        let body = r#"{"data":[
            {"at":"2026-11-20T12:00:00.123456Z","attempts":[{"status":200,"fault":null},{"status":null,"fault":"timeout"}]},
            {"at":null,"attempts":[],"note":"a\u001b[31mb\nc\u202e"}],"has_more":false,"next_cursor":null}"#;
        assert_eq!(
            format_list(body, &columns, "", &TableOptions::default()).unwrap(),
            "AT                    RESPONSE  NOTE\n2026-11-20T12:00:00Z  timeout   -\n-                     \
             -         a\\u001b[31mb\\nc\\u202e"
        );
    }

    #[test]
    fn metadata_cannot_forge_lines() {
        let body = r#"{"reference":"a\u009b2J","metadata":{"x\nstatus":"y\nstatus  PAID"}}"#;
        assert_eq!(
            format_object(body).unwrap(),
            "reference  a\\u009b2J\nmetadata:\n  x\\nstatus  y\\nstatus  PAID"
        );
    }
}
