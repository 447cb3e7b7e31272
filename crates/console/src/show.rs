//! Rendering of a page: its list with filters, or its object with facts and tables.

use maud::{Markup, html};
use serde_json::value::RawValue;
use vouchsafe_wire::csv::CsvTable;
use vouchsafe_wire::operation::Method;

use crate::api::{AdminApi, Refusal, get};
use crate::csv::download_link;
use crate::form::{self, Submission};
use crate::json::Json;
use crate::label::get_named;
use crate::page::{Action, Column, Object, Section, Source, View, col};
use crate::table::{NO_FORMS, table};
use crate::template::{self, fill};
use crate::time_input::api_time;
use vouchsafe_ui::visible;

use crate::value::{facts, label_of, render};
use crate::visit::{DONE, Shown, Visit};
use crate::{bulk, chart, list, live};

/// # Errors
/// The API does not show the object or list.
pub(crate) async fn show(api: &impl AdminApi, visit: &Visit<'_>) -> Result<Shown, Refusal> {
    match &visit.page.view {
        View::List(list) => list::show(api, visit, list).await,
        View::Object(object) => show_object(api, visit, object).await,
        View::BulkStart => bulk::show(api, visit).await,
    }
}

/// What a form changes.
pub(crate) enum Subject {
    /// The object exists, with this content.
    Existing(Json),
    /// The form creates an object, and there is one already.
    Replaced,
    /// The entry is not in the list any more.
    Gone,
    None,
}

/// Reads what a form of the page changes.
pub(crate) async fn read_subject(
    api: &impl AdminApi,
    visit: &Visit<'_>,
    action: &Action,
    submission: &Submission,
) -> Subject {
    let of_params = |name: &str| template::find(&visit.params, name).map(ToOwned::to_owned);
    let list = match &visit.page.view {
        View::Object(object) => {
            let Some(target) = object.api else {
                return Subject::None;
            };
            let read = get(api, target.fill(of_params)).await;
            return read.map_or(Subject::None, |read| Subject::Existing(read.json));
        }
        View::List(list) => list,
        View::BulkStart => return Subject::None,
    };
    let query = visit.query_without(&[DONE]);
    let separator = if query.is_empty() { "" } else { "?" };
    let read = get(api, format!("{}{separator}{query}", list.api.fill(of_params))).await;
    let Ok(read) = read else {
        return Subject::None;
    };
    let mut rows = read.json.get("data").entries().iter();
    let carried: Vec<_> = form::carried(action, &visit.params).collect();
    if !carried.is_empty() {
        let row = rows.find(|row| carried.iter().all(|name| row.is(name, submission.get(name))));
        return row.map_or(Subject::Gone, |row| Subject::Existing(row.clone()));
    }
    // The operator chose the ID.
    let has_id = |row: &Json| {
        action
            .api
            .placeholders()
            .all(|name| row.is(name, submission.get(name)))
    };
    let of_submission = |name: &str| Some(submission.get(name).to_owned());
    let is_taken = rows.any(has_id) || get(api, action.api.fill(of_submission)).await.is_ok();
    if is_taken && matches!(action.method(), Method::Put) {
        Subject::Replaced
    } else {
        Subject::None
    }
}

async fn show_object(
    api: &impl AdminApi,
    visit: &Visit<'_>,
    object: &'static Object,
) -> Result<Shown, Refusal> {
    let of_params = |name: &str| template::find(&visit.params, name).map(ToOwned::to_owned);
    let json = match object.api {
        None => Json::Null,
        Some(target) => match get_named(api, target.fill(of_params)).await {
            Ok(read) => read.json,
            Err(refusal) if refusal.status == 404 && !object.none.is_empty() => Json::Null,
            Err(refusal) => return Err(refusal),
        },
    };
    let is_missing = json == Json::Null && !object.none.is_empty();
    let live_event = match live::has_live_table(object) {
        true => get(api, live::FEED.fill(of_params)).await?.json,
        false => Json::Null,
    };
    let mut tables = Vec::new();
    for section in object.sections {
        tables.push(read_section(api, visit, section, &json, &live_event).await);
    }
    let name = json
        .get(object.name)
        .text()
        .or_else(|| visit.params.first().map(|(_, value)| value.as_str()));
    let name = name.unwrap_or_default();
    let has_chart = object
        .sections
        .iter()
        .any(|section| matches!(section.source, Source::Chart { .. }));
    let content = html! {
        @if has_chart { (vouchsafe_ui::chart_script()) }
        h1 { (visit.page.title) @if !name.is_empty() { " " span.name { (visible(name)) } } }
        (visit.notice())
        @if let Some(failed) = visit.failed { (form::render_refusal(failed.refusal)) }
        @let banner = (object.banner)(&json);
        @if !banner.is_empty() { p.banner role="note" { (banner) } }
        @if let Some((is_due, label, page)) = object.follow_up && is_due(&json) {
            p { a.button href=(fill(page, |field| json.get(field).text().map(ToOwned::to_owned))) { (label) } }
        }
        @if is_missing { p { (object.none) } }
        @else if !object.facts.is_empty() {
            @match live::event_of_facts(object) {
                Some(event) => div sse-swap=(event) { (facts(object, &json)) },
                None => (facts(object, &json)),
            }
        }
        div.actions { (visit.forms(visit.page.actions, &json, "page")) }
        @if !is_missing { @for table in tables { (table) } }
    };
    let content = if live::is_live(object) {
        live::follow(&content)
    } else {
        content
    };
    Ok(Shown {
        title: format!("{} {name}", visit.page.title).trim_end().to_owned(),
        content,
        only_result: None,
    })
}

async fn read_section(
    api: &impl AdminApi,
    visit: &Visit<'_>,
    section: &'static Section,
    object: &Json,
    live_event: &Json,
) -> Markup {
    let value = |name: &str| {
        let of_page = template::find(&visit.params, name);
        let of_object = || object.get(name).text();
        let of_query = || Some(visit.parameter(name)).filter(|value| !value.is_empty());
        let value = of_page.or_else(of_object).or_else(of_query)?;
        Some(match name {
            "from" | "to" => api_time(value),
            _ => value.to_owned(),
        })
    };
    let table_of = |rows: &[Json]| {
        table(
            section.heading,
            section.columns,
            rows,
            section.none,
            None,
            visit.forms_of_rows(section.row_actions),
        )
    };
    let content = match section.source {
        Source::Field(field) => table_of(object.get(field).entries()),
        Source::Links(links) => visit.variants(section.heading, links),
        Source::Live(field) => live::table(section, field, live_event),
        Source::Chart { target, field, .. } => {
            let rows = match chart::table_page(section, value) {
                Some(_) => Ok(Vec::new()),
                None => get(api, target.fill(value))
                    .await
                    .map(|read| read.json.get(field).entries().to_vec()),
            };
            match rows {
                Ok(rows) => chart::render(section, value, &table_of(&rows)),
                Err(refusal) => html! { p.hint { (refusal.message) } },
            }
        }
        Source::Api { target, field, page } => match get_named(api, target.fill(value)).await {
            Ok(read) if section.none.is_empty() && read.json.get(field).entries().is_empty() => {
                return html! {};
            }
            Ok(read) => html! {
                @let rows = read.json.get(field).entries();
                (read.replica_note())
                (table_of(rows))
                @if page.is_empty() && target.route.is_list && !rows.is_empty() {
                    p.more { (download_link(&target.fill(value))) }
                }
                @if !page.is_empty() {
                    @let has_more = *read.json.get("has_more") == Json::Bool(true);
                    p.more {
                        a href=(fill(page, value)) {
                            @if has_more { "Show more" } @else { "Show as a list" }
                            span.hidden { ": " (section.heading) }
                        }
                    }
                }
            },
            Err(refusal) => html! { p.hint { (refusal.message) } },
        },
    };
    if let Source::Links(_) = section.source {
        return content;
    }
    html! { section { h2 { (section.heading) } (content) } }
}

/// Fields of responses that are shown once.
const SECRETS: [&str; 4] = ["activation_code", "api_secret", "secret", "token"];

/// Renders the response of a change, which is shown once.
pub(crate) fn render_response(heading: &str, json: &Json, path: &str) -> Markup {
    html! {
        h1 { (heading) }
        @if has_secret(json) {
            p.banner role="note" { "It is shown only now: store it before you leave this page." }
        }
        @let rejected = rejected_rows(json);
        @if !rejected.is_empty() {
            p.alert role="alert" { strong { (rejected_count(json)) " rejected: see the table." } }
        }
        dl.facts.response data-json=[has_secret(json).then(|| json.to_string())] { (response_fields(json)) }
        @if !rejected.is_empty() {
            h2 { "Rejected" }
            (table("Rejected", &REJECTED, &rejected, "", None, NO_FORMS))
            p.more { a href=(csv_address(&rejected)) download="rejected.csv" { "Download CSV" } }
        }
        p { a href=(path) { "Continue" } }
    }
}

/// What an import or a void has rejected. Positions in a list of codes count from 1, as lines do.
const REJECTED: [Column; 2] = [col("Line or number", "number"), col("Reason", "reason")];

fn rejected_count(json: &Json) -> String {
    let count = json.get("rejected_count").text().map(ToOwned::to_owned);
    count.unwrap_or_else(|| json.get("rejected").entries().len().to_string())
}

fn rejected_rows(json: &Json) -> Vec<Json> {
    let row = |entry: &Json| {
        let index = entry
            .get("index")
            .text()
            .and_then(|index| index.parse::<u64>().ok());
        let number = index.map(|index| (index + 1).to_string());
        let number = number.or_else(|| entry.get("line").text().map(ToOwned::to_owned));
        let mut row = Json::Null;
        row.set("number", Json::Number(number?));
        row.set("reason", entry.get("reason").clone());
        Some(row)
    };
    json.get("rejected").entries().iter().filter_map(row).collect()
}

/// The rows as a file in the address of a link, which works without script and is loaded from nowhere.
fn csv_address(rows: &[Json]) -> String {
    let table = CsvTable::of(&REJECTED);
    let lines = rows.iter().filter_map(|row| {
        let entry: Box<RawValue> = serde_json::from_str(&row.to_string()).ok()?;
        table.line(&entry).ok()
    });
    let text: Vec<_> = std::iter::once(table.header()).chain(lines).collect();
    format!(
        "data:text/csv;charset=utf-8,{}",
        template::encode(&(text.join("\r\n") + "\r\n"))
    )
}

/// Whether the response has a secret that no page shows again, in itself or in an object.
fn has_secret(json: &Json) -> bool {
    let Json::Object(fields) = json else {
        return false;
    };
    fields.iter().any(|(name, value)| match value {
        Json::Text(_) => SECRETS.contains(&name.as_str()),
        value => has_secret(value),
    })
}

fn response_fields(json: &Json) -> Markup {
    let fields: &[_] = match json {
        Json::Object(fields) => fields,
        _ => &[],
    };
    html! {
        @for (name, value) in fields.iter().filter(|(name, _)| name != "rejected") {
            div {
                dt { (visible(&label_of(name))) }
                dd {
                    @if let Json::Object(_) = value { dl.nested { (response_fields(value)) } }
                    @else if SECRETS.contains(&name.as_str()) { code data-copy { (visible(value.text().unwrap_or_default())) } }
                    @else { (render(name, value)) }
                }
            }
        }
    }
}
