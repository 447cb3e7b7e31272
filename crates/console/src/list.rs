//! Page of a list: its filters, its entries and the way to the next page.

use maud::{Markup, html};

use crate::api::{AdminApi, ApiResult, Refusal};
use crate::bulk;
use crate::csv::download_link;
use crate::form;
use crate::json::Json;
use crate::label::get_named;
use crate::number;
use crate::page::{Filter, List};
use crate::table::table;
use crate::template;
use crate::time_input::{SUGGESTIONS, api_time};
use vouchsafe_ui::visible;

use crate::value::page_of;
use crate::visit::{DONE, Shown, Visit};

/// # Errors
/// The API does not show the list.
pub(crate) async fn show(
    api: &impl AdminApi,
    visit: &Visit<'_>,
    list: &'static List,
) -> Result<Shown, Refusal> {
    let visit = &with_defaults(visit, list);
    let query = api_query(visit, list.filters);
    let is_read = list.is_complete || !query.is_empty();
    let separator = if query.is_empty() { "" } else { "?" };
    let path = list
        .api
        .fill(|name| template::find(&visit.params, name).map(ToOwned::to_owned));
    let target = format!("{path}{separator}{query}");
    let read: ApiResult = get_named(api, target.clone()).await;
    let (json, note, refusal) = match read {
        Ok(read) => {
            let note = read.replica_note();
            (read.json, note, None)
        }
        Err(_) if !is_read => (Json::Null, html! {}, None),
        // A filter that does not parse is corrected in the page.
        Err(refusal) if matches!(refusal.status, 400 | 422) => (Json::Null, html! {}, Some(refusal)),
        Err(refusal) => return Err(refusal),
    };
    let rows = json.get("data").entries();
    let only_result = match rows {
        [row] if !list.is_complete => Some(row).and_then(result_page),
        _ => None,
    };
    let content = html! {
        h1 { (visit.page.title) @for (_, value) in &visit.params { " " span.name { (visible(value)) } } }
        (visit.notice())
        @if let Some(failed) = visit.failed { (form::render_refusal(failed.refusal)) }
        @if let Some(refusal) = &refusal { (form::render_refusal(refusal)) }
        div.actions { (visit.forms(visit.page.actions, &Json::Null, "page")) }
        @if !list.variants.is_empty() { (visit.variants("Often used filters", list.variants)) }
        @if !list.filters.is_empty() { (filters(visit, list.filters)) }
        @if is_read && refusal.is_none() {
            (visit.form_without_row(list.row_actions, rows))
            (note)
            @let id_field = bulk::id_field(visit, &list.api.route).filter(|_| !rows.is_empty());
            @if id_field.is_some() { (bulk::choice(visit, &list.api.route, &query)) }
            (table(visit.page.title, list.api.route.columns, rows, "Nothing matches.", id_field, visit.forms_of_rows(list.row_actions)))
            @if list.api.route.is_list && !rows.is_empty() { (count(visit, &query, &json)) }
            (paging(visit, &query, &json))
            @if list.api.route.is_list && !rows.is_empty() { p.more { (download_link(&target)) } }
        }
    };
    Ok(Shown {
        title: visit.page.title.to_owned(),
        content,
        only_result,
    })
}

/// The page of a search result, or of the order or partner that it belongs to.
fn result_page(row: &Json) -> Option<String> {
    let id = row.get("id").text()?;
    if row.is("kind", "operator") {
        return Some(format!("/operators/{}/tokens", template::encode(id)));
    }
    let by_kind = row
        .get("kind")
        .text()
        .map(|kind| format!("{kind}_id"))
        .unwrap_or_default();
    let owners = ["order_id", "partner_id"].into_iter();
    let owner = owners
        .filter_map(|field| page_of(field, row.get(field).text()?))
        .next();
    page_of(&by_kind, id).or(owner)
}

/// The visit with the default filters of the list, if its address has none.
fn with_defaults<'a>(visit: &Visit<'a>, list: &List) -> Visit<'a> {
    let mut visit = visit.clone();
    if visit.query.iter().all(|(name, _)| name == DONE) {
        let defaults = list.defaults.iter();
        visit
            .query
            .extend(defaults.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    }
    visit
}

/// The query for the API, with the times as it expects them.
fn api_query(visit: &Visit<'_>, filters: &[Filter]) -> String {
    let is_time = |name: &str| filters.iter().any(|filter| filter.name == name && filter.is_time);
    let is_own = |name: &str| name == DONE || name == PREVIOUS;
    let parameters = visit.query.iter().filter(|(name, _)| !is_own(name));
    let parameters = parameters.map(|(name, value)| {
        let value = if is_time(name) {
            api_time(value)
        } else {
            value.clone()
        };
        (name.clone(), value)
    });
    template::query(&parameters.collect::<Vec<_>>())
}

fn filters(visit: &Visit<'_>, filters: &[Filter]) -> Markup {
    html! {
        form.filters action=(visit.path) {
            @for filter in filters {
                @let id = format!("filter-{}", filter.name);
                @let value = visit.parameter(filter.name);
                @let choices = (filter.choices)();
                @let hint = (!filter.hint.is_empty()).then_some(filter.hint);
                div.field {
                    label for=(id) { (filter.label) }
                    @if choices.is_empty() {
                        input id=(id) type="text" name=(filter.name) value=(value) title=[hint] list=[filter.is_time.then_some(SUGGESTIONS)] placeholder=[filter.is_time.then_some("2026-11-25 or 1h")]
                            autocomplete="off" spellcheck="false";
                    } @else {
                        select id=(id) name=(filter.name) {
                            option value="" { "any" }
                            @for choice in choices { option selected[choice == value] { (choice) } }
                        }
                    }
                }
            }
            div.buttons {
                button type="submit" { "Filter" }
                a href=(visit.path) { "Reset" }
            }
        }
    }
}

/// How many entries match. A count may take longer than the page: the page loads first, then its script asks.
fn count(visit: &Visit<'_>, query: &str, json: &Json) -> Markup {
    let counted = match json.get("count") {
        Json::Number(digits) => Some(digits.clone()),
        _ if visit.parameter("cursor").is_empty() && json.get("next_cursor").text().is_none() => {
            Some(json.get("data").entries().len().to_string())
        }
        _ => None,
    };
    let link = format!("{}?{}&count=true", visit.path, query);
    html! {
        @match counted {
            Some(digits) => p.hint #count { (number::format("count", &digits)) @if digits == "1" { " entry" } @else { " entries" } },
            None if visit.parameter("count") == "true" => p.hint #count { "more than 10,000 entries" },
            None => p.hint #count hx-get=(link) hx-trigger="load" hx-select="#count" hx-swap="outerHTML" { a href=(link) { "Count" } },
        }
    }
}

/// Cursors of the pages before this one, which the API does not know.
const PREVIOUS: &str = "previous";

/// Between cursors, which do not contain it.
const SEPARATOR: &str = ".";

/// Pages that the address remembers: it must not become too long.
const MAX_PREVIOUS: usize = 20;

/// The pages of the list that the API was asked for with this query: an age keeps its meaning.
fn paging(visit: &Visit<'_>, query: &str, json: &Json) -> Markup {
    let mut others = template::pairs(query.as_bytes());
    others.retain(|(name, _)| !["cursor", "count", PREVIOUS].contains(&name.as_str()));
    let others = template::query(&others);
    let link = |cursor: &str, previous: &[&str]| {
        let parameters = [
            ("cursor", cursor.to_owned()),
            (PREVIOUS, previous.join(SEPARATOR)),
        ];
        let parameters = parameters.into_iter().filter(|(_, value)| !value.is_empty());
        let place: Vec<_> = parameters.map(|(name, value)| (name.to_owned(), value)).collect();
        let query: Vec<_> = [others.clone(), template::query(&place)]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        format!("{}?{}", visit.path, query.join("&"))
    };
    let next = json.get("next_cursor").text();
    let cursor = visit.parameter("cursor");
    let is_first = cursor.is_empty();
    // The pages between the first one and this one, the newest last.
    let mut passed: Vec<&str> = visit.parameter(PREVIOUS).split(SEPARATOR).collect();
    passed.retain(|passed| !passed.is_empty());
    let onward: Vec<&str> = passed
        .iter()
        .copied()
        .chain((!is_first).then_some(cursor))
        .collect();
    let onward = &onward[onward.len().saturating_sub(MAX_PREVIOUS)..];
    let previous = passed.pop();
    html! {
        @if next.is_some() || !is_first {
            nav.paging aria-label="Pages of the list" {
                @if !is_first { a href=(link("", &[])) { "First page" } }
                @if let Some(previous) = previous { a rel="prev" href=(link(previous, &passed)) { "Previous page" } }
                @if let Some(next) = next { a rel="next" href=(link(next, onward)) { "Next page" } }
            }
        }
    }
}
