//! Tables that change each second: the live feed of the API as server-sent events with the tables' new rows,
//! which htmx puts in place.

use maud::{Markup, html};
use vouchsafe_wire::operator::monitoring::{FOLLOW_LIVE_FEED, GET_OVERVIEW};

use crate::json::Json;
use crate::page::{ApiTarget, Object, Section, Source, View, target};
use crate::pages::all_pages;
use crate::table::{NO_FORMS, frame, table_rows};
use crate::value::facts;

/// The feed of the API; its response without streaming is one event.
pub(crate) const FEED: ApiTarget = target(FOLLOW_LIVE_FEED);

/// The facts of the overview in an event.
const OVERVIEW: &str = "overview";

/// The event with the traffic sample, for the charts.
const SAMPLE: &str = "sample";

/// Whether an object's page follows the feed.
pub(crate) fn is_live(object: &Object) -> bool {
    object.sections.iter().any(|section| {
        matches!(
            section.source,
            Source::Live(_) | Source::Chart { is_live: true, .. }
        )
    })
}

/// Whether an object's page begins with the rows of an event.
pub(crate) fn has_live_table(object: &Object) -> bool {
    let mut sections = object.sections.iter();
    sections.any(|section| matches!(section.source, Source::Live(_)))
}

/// Content that follows the feed. The script shows the button; without script nothing changes.
pub(crate) fn follow(content: &Markup) -> Markup {
    html! {
        div hx-ext="sse" sse-connect="/live" data-live {
            div.live hidden {
                button type="button" aria-pressed="false" { "Pause" }
                " "
                span.hint role="status" {}
            }
            span hidden sse-swap="chart" hx-swap="none" {}
            (content)
        }
    }
}

/// A table whose rows the feed replaces.
pub(crate) fn table(section: &Section, field: &'static str, event: &Json) -> Markup {
    let rows = rows_of(event.get(field));
    let body =
        html! { tbody sse-swap=(field) { (table_rows(section.columns, rows, None, NO_FORMS.as_ref())) } };
    frame(section.heading, section.columns, rows, false, &body)
}

/// An event of the live feed, given as JSON, as server-sent events for the pages.
#[must_use]
pub fn render_event(json: &[u8]) -> String {
    let event = Json::parse(json);
    let mut text = String::new();
    let mut push = |name: &str, data: &str| {
        text.push_str("event: ");
        text.push_str(name);
        for line in data.lines() {
            text.push_str("\ndata: ");
            text.push_str(line);
        }
        text.push_str("\n\n");
    };
    for (field, section) in live_sections() {
        let rows = table_rows(
            section.columns,
            rows_of(event.get(field)),
            None,
            NO_FORMS.as_ref(),
        );
        push(field, &rows.into_string());
    }
    let overview = event.get(OVERVIEW);
    if *overview != Json::Null
        && let Some(object) = overview_object()
    {
        push(OVERVIEW, &facts(object, overview).into_string());
    }
    push("chart", &event.get(SAMPLE).to_string());
    text
}

/// The event that replaces the facts of a page.
pub(crate) fn event_of_facts(object: &Object) -> Option<&'static str> {
    let is_overview = object
        .api
        .is_some_and(|target| target.route.id == GET_OVERVIEW.route.id);
    is_overview.then_some(OVERVIEW)
}

/// The overview, whose facts the feed replaces.
fn overview_object() -> Option<&'static Object> {
    all_pages().find_map(|page| match &page.view {
        View::Object(object) if event_of_facts(object).is_some() => Some(object),
        _ => None,
    })
}

/// The sections that the feed changes, one of each field.
fn live_sections() -> Vec<(&'static str, &'static Section)> {
    let mut found: Vec<(&'static str, &'static Section)> = Vec::new();
    for page in all_pages() {
        let View::Object(object) = &page.view else {
            continue;
        };
        for section in object.sections {
            if let Source::Live(field) = section.source
                && !found.iter().any(|(known, _)| *known == field)
            {
                found.push((field, section));
            }
        }
    }
    found
}

/// An object is a table with one row.
fn rows_of(value: &Json) -> &[Json] {
    match value {
        Json::List(rows) => rows,
        Json::Null => &[],
        object => std::slice::from_ref(object),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"overview":{"orders_to_approve":59,"is_ready":true},"sample":{"at":"2026-11-25T10:00:00.123456Z","orders_per_s":12.5},
        "actors":{"sums":[{"kind":"wallet","actors":2}],"data":[{"kind":"wallet","key":"<b>\n\nevent: forged","handled":7}]}}"#;

    #[test]
    fn event_has_the_rows_of_each_live_table() {
        let text = render_event(EVENT.as_bytes());
        let events: Vec<_> = text.trim_end().split("\n\n").collect();
        let names: Vec<_> = events.iter().filter_map(|event| event.lines().next()).collect();
        assert_eq!(
            names,
            [
                "event: sample",
                "event: actors.sums",
                "event: actors.data",
                "event: overview",
                "event: chart"
            ]
        );
        assert!(events[0].contains(">12.5<"), "{}", events[0]);
        assert!(events[2].contains("&lt;b&gt;"), "{}", events[2]);
        assert!(events[3].contains("Orders to approve <b>59</b>"), "{}", events[3]);
        assert!(events[3].contains("<dd>yes</dd>"), "{}", events[3]);
        assert!(events[4].ends_with(r#""orders_per_s":12.5}"#), "{}", events[4]);
    }

    #[test]
    fn tables_of_one_field_have_the_same_columns() {
        let headings = |section: &Section| {
            section
                .columns
                .iter()
                .map(|column| column.heading)
                .collect::<Vec<_>>()
        };
        for page in all_pages() {
            let View::Object(object) = &page.view else {
                continue;
            };
            for section in object.sections {
                let Source::Live(field) = section.source else {
                    continue;
                };
                let (_, first) = live_sections()
                    .into_iter()
                    .find(|(known, _)| *known == field)
                    .unwrap();
                assert_eq!(headings(section), headings(first), "{field}");
            }
        }
    }
}
