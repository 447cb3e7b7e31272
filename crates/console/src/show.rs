//! Rendering of a page: its list with filters, or its object with facts and tables, and the forms that the viewer's role permits.

use maud::{Markup, html};

use crate::api::{AdminApi, ApiResult, Refusal, get};
use crate::form::{self, FailedForm, FormContext};
use crate::json::Json;
use crate::layout::Viewer;
use crate::page::{Action, Column, Filter, List, Object, Outcome, Page, Section, Source, View};
use crate::template::{self, Params, fill, pairs};
use crate::value::{cell, fact, is_number, page_of, render, visible};

/// Parameters of the console itself, which the API does not know.
pub(crate) const DONE: &str = "done";

/// A page that a viewer asks for.
pub(crate) struct Visit<'a> {
    pub(crate) viewer: &'a Viewer,
    pub(crate) page: &'static Page,
    /// Path of the page and its parameters.
    pub(crate) path: String,
    pub(crate) params: Params,
    /// Parameters of the list, and the slug of a change that was made.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) failed: Option<&'a FailedForm<'a>>,
}

/// A rendered page: its title and content.
pub(crate) struct Shown {
    pub(crate) title: String,
    pub(crate) content: Markup,
    /// The only result of a search.
    pub(crate) only_result: Option<String>,
}

impl<'a> Visit<'a> {
    pub(crate) fn new(
        viewer: &'a Viewer,
        page: &'static Page,
        path: String,
        params: Params,
        query: &str,
    ) -> Self {
        let query = pairs(query.as_bytes());
        Self {
            viewer,
            page,
            path,
            params,
            query: query.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
            failed: None,
        }
    }

    /// The query without the parameters with these names.
    pub(crate) fn query_without(&self, names: &[&str]) -> String {
        let kept = self
            .query
            .iter()
            .filter(|(name, _)| !names.contains(&name.as_str()));
        template::query(&kept.cloned().collect::<Vec<_>>())
    }

    fn parameter(&self, name: &str) -> &str {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// The message after a change.
    fn notice(&self) -> Markup {
        let slug = self.parameter(DONE);
        let actions = all_actions(self.page);
        let made = actions.into_iter().find(|action| action.slug == slug);
        html! {
            @match made.map(|action| action.outcome) {
                Some(Outcome::Message(message)) => p.notice role="status" { (message) },
                _ if slug == REQUESTED => p.notice role="status" {
                    "Nothing is changed yet: this change needs a second operator. Another operator confirms or declines it here."
                },
                _ => "",
            }
        }
    }

    fn forms(&self, actions: &'static [Action], row: &Json, id: &str) -> Markup {
        let query = self.query_without(&[DONE]);
        let context = FormContext {
            path: &self.path,
            query: &query,
            params: &self.params,
            failed: self.failed,
        };
        let failed = self.failed.map_or("", |failed| failed.slug);
        let offered = actions.iter().filter(|action| {
            // A form that failed stays, also if somebody else has made the change.
            self.viewer.role >= action.role && ((action.is_offered)(row) || action.slug == failed)
        });
        html! { @for action in offered { (form::render(&context, action, row, id)) } }
    }
}

/// Slug of a change that waits for a second operator.
pub(crate) const REQUESTED: &str = "requested";

/// The changes of a page, its tables and entries.
pub(crate) fn all_actions(page: &'static Page) -> Vec<&'static Action> {
    let rows: Vec<&'static [Action]> = match &page.view {
        View::List(list) => vec![list.row_actions],
        View::Object(object) => object
            .sections
            .iter()
            .map(|section| section.row_actions)
            .collect(),
    };
    page.actions.iter().chain(rows.into_iter().flatten()).collect()
}

/// # Errors
/// The API does not show the object or list.
pub(crate) async fn show(api: &impl AdminApi, visit: &Visit<'_>) -> Result<Shown, Refusal> {
    match &visit.page.view {
        View::List(list) => show_list(api, visit, list).await,
        View::Object(object) => show_object(api, visit, object).await,
    }
}

async fn show_list(api: &impl AdminApi, visit: &Visit<'_>, list: &'static List) -> Result<Shown, Refusal> {
    let query = visit.query_without(&[DONE]);
    let is_read = list.is_complete || !query.is_empty();
    let separator = if query.is_empty() { "" } else { "?" };
    let path = fill(list.api, |name| {
        template::find(&visit.params, name).map(ToOwned::to_owned)
    });
    let read: ApiResult = get(api, format!("{path}{separator}{query}")).await;
    let (json, refusal) = match read {
        Ok(read) => (read.json, None),
        Err(_) if !is_read => (Json::Null, None),
        // A filter that does not parse is corrected in the page.
        Err(refusal) if matches!(refusal.status, 400 | 422) => (Json::Null, Some(refusal)),
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
        @if !list.filters.is_empty() { (filters(visit, list.filters)) }
        @if is_read && refusal.is_none() {
            (table(visit, visit.page.title, list.columns, rows, list.row_actions, "Nothing matches."))
            (paging(visit, &json))
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
                        input id=(id) type="text" name=(filter.name) value=(value) title=[hint] placeholder=[hint.map(|_| "YYYY-MM-DD")]
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

fn paging(visit: &Visit<'_>, json: &Json) -> Markup {
    let others = visit.query_without(&[DONE, "cursor"]);
    let link = |cursor: Option<&str>| {
        let cursor = cursor.map(|cursor| template::query(&[("cursor".to_owned(), cursor.to_owned())]));
        let query: Vec<_> = [others.clone(), cursor.unwrap_or_default()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        format!("{}?{}", visit.path, query.join("&"))
    };
    let next = json.get("next_cursor").text();
    let is_first = visit.parameter("cursor").is_empty();
    html! {
        @if next.is_some() || !is_first {
            nav.paging aria-label="Pages of the list" {
                @if !is_first { a href=(link(None)) { "First page" } }
                @if let Some(next) = next { a rel="next" href=(link(Some(next))) { "Next page" } }
            }
        }
    }
}

async fn show_object(
    api: &impl AdminApi,
    visit: &Visit<'_>,
    object: &'static Object,
) -> Result<Shown, Refusal> {
    let of_params = |name: &str| template::find(&visit.params, name).map(ToOwned::to_owned);
    let json = match object.api {
        "" => Json::Null,
        path => match get(api, fill(path, of_params)).await {
            Ok(read) => read.json,
            Err(refusal) if refusal.status == 404 && !object.none.is_empty() => Json::Null,
            Err(refusal) => return Err(refusal),
        },
    };
    let is_missing = json == Json::Null && !object.none.is_empty();
    let mut tables = Vec::new();
    for section in object.sections {
        tables.push(read_section(api, visit, section, &json).await);
    }
    let name = json
        .get(object.name)
        .text()
        .or_else(|| visit.params.first().map(|(_, value)| value.as_str()));
    let name = name.unwrap_or_default();
    let content = html! {
        h1 { (visit.page.title) @if !name.is_empty() { " " span.name { (visible(name)) } } }
        (visit.notice())
        @if let Some(failed) = visit.failed { (form::render_refusal(failed.refusal)) }
        @if is_missing { p { (object.none) } }
        @else if !object.facts.is_empty() { (facts(object.facts, &json)) }
        div.actions { (visit.forms(visit.page.actions, &json, "page")) }
        @if !is_missing { @for table in tables { (table) } }
    };
    Ok(Shown {
        title: format!("{} {name}", visit.page.title).trim_end().to_owned(),
        content,
        only_result: None,
    })
}

fn facts(columns: &[Column], json: &Json) -> Markup {
    html! {
        dl.facts {
            @for column in columns { div { dt { (column.heading) } dd { (fact(column, json)) } } }
        }
    }
}

async fn read_section(
    api: &impl AdminApi,
    visit: &Visit<'_>,
    section: &'static Section,
    object: &Json,
) -> Markup {
    let value = |name: &str| {
        let of_page = template::find(&visit.params, name);
        of_page.or_else(|| object.get(name).text()).map(ToOwned::to_owned)
    };
    let (rows, more) = match section.source {
        Source::Field(field) => (Ok(object.get(field).entries().to_vec()), None),
        Source::Api { path, field, page } => {
            let read = get(api, fill(path, value)).await;
            let has_more = read
                .as_ref()
                .is_ok_and(|read| *read.json.get("has_more") == Json::Bool(true));
            let more = (!page.is_empty()).then(|| (fill(page, value), has_more));
            (read.map(|read| read.json.get(field).entries().to_vec()), more)
        }
    };
    html! {
        section {
            h2 { (section.heading) }
            @match rows {
                Ok(rows) => (table(visit, section.heading, section.columns, &rows, section.row_actions, section.none)),
                Err(refusal) => p.hint { (refusal.message) },
            }
            @if let Some((page, has_more)) = more {
                p.more { a href=(page) { @if has_more { "Show more" } @else { "Show as a list" } span.hidden { ": " (section.heading) } } }
            }
        }
    }
}

fn table(
    visit: &Visit<'_>,
    caption: &str,
    columns: &[Column],
    rows: &[Json],
    actions: &'static [Action],
    none: &str,
) -> Markup {
    let is_offered = |action: &Action| visit.viewer.role >= action.role;
    let has_actions = actions.iter().any(is_offered);
    let is_aligned = |column: &Column| rows.first().is_some_and(|row| is_number(column, row));
    html! {
        @if rows.is_empty() { p.hint { (none) } }
        @else {
            // Scrolls on its own in a narrow window; the keyboard reaches it.
            div.scroll tabindex="0" role="region" aria-label=(caption) {
                table {
                    caption.hidden { (caption) }
                    thead {
                        tr {
                            @for column in columns { th.number[is_aligned(column)] scope="col" { (column.heading) } }
                            @if has_actions { th scope="col" { "Actions" } }
                        }
                    }
                    tbody {
                        @for (index, row) in rows.iter().enumerate() {
                            tr {
                                @for (position, column) in columns.iter().enumerate() {
                                    @if position == 0 { th scope="row" { (cell(column, row)) } }
                                    @else { td.number[is_aligned(column)] { (cell(column, row)) } }
                                }
                                @if has_actions { td { (visit.forms(actions, row, &format!("row{index}"))) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the response of a change, which is shown once.
pub(crate) fn render_response(heading: &str, json: &Json, path: &str) -> Markup {
    let columns: Vec<_> = match json {
        Json::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .collect(),
        _ => Vec::new(),
    };
    html! {
        h1 { (heading) }
        dl.facts.response {
            @for (name, value) in columns {
                div { dt { (visible(name)) } dd { (render(name, value)) } }
            }
        }
        p { a href=(path) { "Continue" } }
    }
}
