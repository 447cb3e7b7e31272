//! Charts of samples. The script draws them; the same figures are in a table.

use maud::{Markup, html};
use vouchsafe_wire::operator::operation::ADMIN_PREFIX;

use crate::json::Json;
use crate::page::{Section, Source};
use crate::template::fill;

/// The page with the table of a chart; `None` if the chart has it beside it.
pub(crate) fn table_page(section: &Section, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    match section.source {
        Source::Chart { page, .. } if !page.is_empty() => Some(fill(page, value)),
        _ => None,
    }
}

/// A figure with its lines, and a way to their table.
pub(crate) fn render(
    section: &Section,
    value: impl Fn(&str) -> Option<String> + Copy,
    table: &Markup,
) -> Markup {
    let Source::Chart {
        target,
        field,
        is_live,
        zoom,
        ..
    } = section.source
    else {
        return html! {};
    };
    let source = format!("{ADMIN_PREFIX}{}", target.fill(value));
    // A period that the operator chose is read again, the default one grows with the feed.
    let is_live = is_live && !source.contains('?');
    let lines = section.columns.iter().skip(1).map(|line| {
        let texts = [line.heading, line.fields].map(|text| Json::Text(text.to_owned()));
        Json::List(texts.to_vec())
    });
    let lines = Json::List(lines.collect());
    html! {
        figure.chart data-source=(source) data-field=(field) data-lines=(lines.to_string()) data-live[is_live] data-zoom=[(!zoom.is_empty()).then_some(zoom)] {
            div.plot title=[(!zoom.is_empty()).then_some("Drag over a range to see it alone")] role="img" aria-label={ (section.heading) " as a chart; the table has the same figures" } {}
            @match table_page(section, value) {
                Some(page) => p.more { a href=(page) { "Show as a table" span.hidden { ": " (section.heading) } } },
                None => details { summary { "Show as a table" } (table) },
            }
        }
    }
}
