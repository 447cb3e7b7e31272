//! Whole lists as CSV on standard output, page by page.

use std::io::{self, Write as _};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use vouchsafe_wire::column::{Column, of_terminal};
use vouchsafe_wire::csv::CsvTable;

use super::table_options::TableOptions;

/// The fields of a page that a CSV needs.
#[derive(Deserialize)]
struct ListPage<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    next_cursor: Option<String>,
}

/// The chosen columns; without a choice all, also those of the console.
pub(super) fn choose_table(columns: &[Column], options: &TableOptions) -> anyhow::Result<CsvTable> {
    if options.columns.is_empty() {
        return Ok(CsvTable::of(columns));
    }
    Ok(CsvTable::of(&options.choose(of_terminal(columns))?))
}

/// Prints a page, the first one below its headings. Returns the cursor of the next page.
pub(super) fn print_page(table: &CsvTable, body: &str, is_first: bool) -> anyhow::Result<Option<String>> {
    let page: ListPage<'_> = serde_json::from_str(body).context("unexpected response format")?;
    let lines: Result<Vec<_>, _> = page.data.into_iter().map(|entry| table.line(entry)).collect();
    let lines = lines.context("unexpected response format")?;
    let heading = is_first.then(|| table.header());
    for line in heading.into_iter().chain(lines) {
        // A reader that wants no more, such as `head`, closes the pipe.
        if writeln!(io::stdout(), "{line}").is_err() {
            return Ok(None);
        }
    }
    Ok(page.next_cursor)
}
