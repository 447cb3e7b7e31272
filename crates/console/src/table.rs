//! Tables of values.

use maud::{Markup, html};

use vouchsafe_wire::column::of_console;

use crate::bulk;
use crate::json::Json;
use crate::label::shorten;
use crate::page::Column;
use crate::value::{cell, is_number};

/// No forms in the rows.
pub(crate) const NO_FORMS: Option<fn(usize, &Json) -> Markup> = None;

/// A table, or the text `none` without rows. Check boxes choose entries by the field `id_field`; `forms`
/// renders the last cell of the row with this index.
pub(crate) fn table(
    caption: &str,
    columns: &[Column],
    rows: &[Json],
    none: &str,
    id_field: Option<&str>,
    forms: Option<impl Fn(usize, &Json) -> Markup>,
) -> Markup {
    if rows.is_empty() {
        return html! { p.hint { (none) } };
    }
    let body = html! { tbody { (table_rows(columns, rows, id_field, forms.as_ref())) } };
    frame(caption, columns, rows, forms.is_some(), &body)
}

/// Caption and header of a table around its body.
pub(crate) fn frame(
    caption: &str,
    columns: &[Column],
    rows: &[Json],
    has_forms: bool,
    body: &Markup,
) -> Markup {
    html! {
        // Scrolls on its own in a narrow window; the keyboard reaches it.
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption.hidden { (caption) }
                thead {
                    tr {
                        @for (position, column) in of_console(columns).enumerate() {
                            th.number[position > 0 && is_aligned(column, rows)] scope="col" { (column.heading) }
                        }
                        @if has_forms { th.row-actions scope="col" { "Actions" } }
                    }
                }
                (body)
            }
        }
    }
}

/// The rows of a table.
pub(crate) fn table_rows(
    columns: &[Column],
    rows: &[Json],
    id_field: Option<&str>,
    forms: Option<&impl Fn(usize, &Json) -> Markup>,
) -> Markup {
    html! {
        @for (index, row) in rows.iter().enumerate() {
            @let short = shorten(row);
            tr {
                @for (position, column) in of_console(columns).enumerate() {
                    @if position == 0 {
                        th scope="row" {
                            @if let Some(id) = id_field.and_then(|field| row.get(field).text()) {
                                input type="checkbox" form=(bulk::FORM) name="id" value=(id) aria-label={ "Select " (id) };
                                " "
                            }
                            (cell(column, &short))
                        }
                    }
                    @else {
                        td.number[is_aligned(column, rows)] data-label=(column.heading) { (cell(column, &short)) }
                    }
                }
                @if let Some(forms) = forms { td.row-actions { (forms(index, row)) } }
            }
        }
    }
}

/// Whether the column has numbers, as far as its first value shows.
fn is_aligned(column: &Column, rows: &[Json]) -> bool {
    rows.iter().any(|row| is_number(column, row))
}
