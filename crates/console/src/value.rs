//! Rendering of JSON values: times, states, links to objects, and texts of partners, vendors and receivers.

use maud::{Markup, html};
use vouchsafe_ui::visible;

use crate::json::Json;
use crate::page::{Column, Object};
use crate::template::{encode, fill};
use crate::{decisions, number};

/// Prefixes of IDs with a page, and its path.
const ID_PAGES: [(&str, &str); 7] = [
    ("ord_", "/orders/"),
    ("ptn_", "/partners/"),
    ("po_", "/payouts/"),
    ("wh_", "/webhooks/"),
    ("dlv_", "/deliveries/"),
    ("crq_", "/requests/"),
    ("blk_", "/bulk-jobs/"),
];

/// Fields of other IDs with a page, and its path.
const FIELD_PAGES: [(&str, &str); 4] = [
    ("purchase_id", "/purchases/"),
    ("product_id", "/products/"),
    ("vendor_id", "/vendors/"),
    ("vendor", "/vendors/"),
];

/// Fields that are shown as a state.
const STATE_FIELDS: [&str; 7] = [
    "status",
    "state",
    "outcome",
    "result",
    "resolution",
    "kind",
    "availability",
];

/// Bytes of a word that a column has room for.
const MAX_WORD: usize = 24;

/// A share that is shown as a bar, too.
const BAR_FIELD: &str = "share";

/// States by colour. Others are neutral.
const GOOD: &str = " DELIVERED PAID EXECUTED active delivered resolved closed PASSED SOLD CONFIRMED DONE ";
const WAITING: &str =
    " PENDING PROCESSING PARTIALLY_DELIVERED WAITING pending half_open open escalated RUNNING REQUESTED ";
const BAD: &str =
    " FAILED REJECTED REFUSED DECLINED EXPIRED failing failed disabled refused CANCELLED INTERRUPTED ";

/// The page of an ID, by its prefix or by its field.
pub(crate) fn page_of(field: &str, id: &str) -> Option<String> {
    if let Some((_, page)) = FIELD_PAGES.iter().find(|(known, _)| *known == field) {
        return Some(format!("{page}{}", encode(id)));
    }
    // The trail names a wallet by its partner and currency.
    let id = id.split('/').next().unwrap_or(id);
    let (_, page) = ID_PAGES.iter().find(|(prefix, _)| is_id(id, prefix))?;
    Some(format!("{page}{id}"))
}

fn is_id(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The values of a column in a table. Objects are closed, so that a row stays low; long words are broken.
pub(crate) fn cell(column: &Column, row: &Json) -> Markup {
    match row.get(column.fields) {
        Json::Object(fields) if fields.len() > 1 => html! {
            details.value { summary { (fields.len()) " fields" } (fact(column, row)) }
        },
        Json::Text(text) if has_long_word(text) => html! { span.long { (fact(column, row)) } },
        _ => fact(column, row),
    }
}

fn has_long_word(text: &str) -> bool {
    text.split_whitespace().any(|word| word.len() > MAX_WORD) && short_time(text).is_none()
}

/// The values of a column.
pub(crate) fn fact(column: &Column, row: &Json) -> Markup {
    let values = column.fields.split(' ').map(|path| (path, row.get(path)));
    let values: Vec<_> = values.filter(|(_, value)| !value.is_empty()).collect();
    let has_page = !column.page.is_empty();
    let show = |path: &str, value: &Json| match value {
        // A link in a link is no link.
        Json::Id { label, .. } if has_page => visible(label),
        Json::Text(text) if has_page && page_of(path, text).is_some() => visible(text),
        _ => render(path.rsplit('.').next().unwrap_or(path), value),
    };
    let shown = html! {
        @if values.is_empty() { span.none { "–" } }
        @for (index, (path, value)) in values.iter().enumerate() {
            @if index > 0 { " " }
            (show(path, value))
        }
    };
    if !has_page {
        return shown;
    }
    let page = fill(column.page, |name| row.get(name).text().map(ToOwned::to_owned));
    html! { a href=(page) { (shown) } }
}

/// What a page says about its object: what needs a decision, then facts.
pub(crate) fn facts(page: &Object, object: &Json) -> Markup {
    html! {
        @if !page.decisions.is_empty() { (decisions::render(page.decisions, object)) }
        dl.facts { (fact_rows(page.facts, object)) }
    }
}

/// Facts about an object.
pub(crate) fn fact_rows(columns: &[Column], object: &Json) -> Markup {
    html! {
        @for column in columns { div { dt { (column.heading) } dd { (fact(column, object)) } } }
    }
}

/// Whether the column has numbers, which are aligned.
pub(crate) fn is_number(column: &Column, row: &Json) -> bool {
    let first = column.fields.split(' ').next().unwrap_or_default();
    matches!(row.get(first), Json::Number(_))
}

pub(crate) fn render(field: &str, value: &Json) -> Markup {
    match value {
        empty if empty.is_empty() => html! { span.none { "–" } },
        Json::Null => html! {},
        Json::Bool(value) => html! { @if *value { "yes" } @else { "no" } },
        Json::Number(digits) => html! {
            @if field == BAR_FIELD { meter value=(digits) { (digits) } " " }
            (number::format(field, digits))
        },
        Json::Text(text) => render_text(field, text),
        Json::Id { id, label } => html! {
            span.id data-id=(id) title=(id) {
                @if let Some(page) = page_of(field, id) { a href=(page) { (visible(label)) } }
                @else { (visible(label)) }
            }
        },
        Json::List(entries) if entries.iter().all(|entry| entry.text().is_some()) => html! {
            @for (index, entry) in entries.iter().enumerate() {
                @if index > 0 { ", " }
                (render(field, entry))
            }
        },
        Json::List(entries) => html! { @for entry in entries { (render(field, entry)) } },
        Json::Object(fields) => html! {
            dl.nested {
                @for (name, value) in fields {
                    div { dt { (visible(&label_of(name))) } dd { (render(name, value)) } }
                }
            }
        },
    }
}

/// The name of a field as words: `within_s` is "Within, in seconds".
pub(crate) fn label_of(field: &str) -> String {
    let (name, unit) = field
        .strip_suffix("_s")
        .map_or((field, ""), |name| (name, ", in seconds"));
    let words = name.split('_').map(|word| match word {
        "id" | "api" | "url" => word.to_ascii_uppercase(),
        _ => word.to_owned(),
    });
    let mut label = words.collect::<Vec<_>>().join(" ");
    if let Some(first) = label.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    label + unit
}

fn render_text(field: &str, text: &str) -> Markup {
    if let Some(page) = page_of(field, text) {
        return html! { a href=(page) { (visible(text)) } };
    }
    if let Some(time) = short_time(text) {
        return html! { time datetime=(text) title=(text) { (time) } };
    }
    if STATE_FIELDS.contains(&field) {
        return html! { span class={ "state " (colour(text)) } { (visible(text)) } };
    }
    visible(text)
}

fn colour(state: &str) -> &'static str {
    let is_in = |list: &str| list.contains(&format!(" {state} "));
    match () {
        () if is_in(GOOD) => "good",
        () if is_in(WAITING) => "waiting",
        () if is_in(BAD) => "bad",
        () => "neutral",
    }
}

/// `2026-11-25 10:00:00` of a timestamp of the API.
fn short_time(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |index: usize| bytes[index].is_ascii_digit();
    let is_time = bytes.len() == 27
        && bytes[10] == b'T'
        && bytes[26] == b'Z'
        && bytes[4] == b'-'
        && bytes[13] == b':'
        && [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18]
            .into_iter()
            .all(is_digit);
    is_time.then(|| text[..19].replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::col;

    #[test]
    fn value_links_ids_and_shortens_times() {
        let row = br#"{"order_id":"ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f","amount":25.00,"currency":"USD",
            "at":"2026-11-25T10:00:00.123456Z","vendor":"a/b","note":"ord_1","gone":null}"#;
        let row = Json::parse(row);
        let shown = |fields| fact(&col("", fields), &row).into_string();
        assert_eq!(
            shown("order_id"),
            "<a href=\"/orders/ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f\">ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f</a>"
        );
        assert_eq!(shown("amount currency"), "25.00 USD");
        assert!(shown("at").ends_with(">2026-11-25 10:00:00</time>"));
        assert_eq!(shown("vendor"), "<a href=\"/vendors/a%2Fb\">a/b</a>");
        assert_eq!(shown("note"), "ord_1");
        assert_eq!(shown("gone"), "<span class=\"none\">–</span>");
        assert!(is_number(&col("", "amount currency"), &row));
        let linked = fact(&col("", "order_id").link("/x/{vendor}"), &row).into_string();
        assert_eq!(
            linked,
            "<a href=\"/x/a%2Fb\">ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f</a>"
        );
    }
}
