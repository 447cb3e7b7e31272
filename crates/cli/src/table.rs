//! Tables as wide as the terminal, and as wide as they need to be where the output is no terminal.
//!
//! A table's columns are in the order of their importance: one that does not fit is left out. Long texts are
//! shortened in the middle. An ID is never shortened, because it is there to be copied.

use std::env;
use std::io::{self, IsTerminal as _};

use unicode_width::UnicodeWidthStr as _;
use vouchsafe_wire::column::Column;

/// Width of help and paragraphs in columns of a terminal, and of tables on a terminal that does not tell its
/// width.
pub const MAX_WIDTH: usize = 100;

const GAP: &str = "  ";

/// A column that fits into the table.
struct FittedColumn {
    index: usize,
    width: usize,
    min_width: usize,
}

/// Formats a line of headings and a line per row, with a note on columns that are left out.
pub(super) fn format_table(columns: &[Column], rows: &[Vec<String>]) -> String {
    format_within(columns, rows, output_width())
}

/// `COLUMNS`, else the width of the terminal; unlimited where the output is no terminal.
fn output_width() -> usize {
    let columns = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.unwrap_or_else(|| match terminal_size::terminal_size() {
        _ if !io::stdout().is_terminal() => usize::MAX,
        Some((width, _)) => usize::from(width.0),
        None => MAX_WIDTH,
    })
}

fn format_within(columns: &[Column], rows: &[Vec<String>], max_width: usize) -> String {
    let headings: Vec<_> = columns
        .iter()
        .map(|column| column.heading.to_ascii_uppercase())
        .collect();
    let fitted = fit(columns, rows, max_width);
    let line = |cells: &Vec<String>| {
        let cells = fitted.iter().map(|FittedColumn { index, width, .. }| {
            let cell = shorten(&cells[*index], *width);
            let padding = width.saturating_sub(cell.width());
            format!("{cell}{:padding$}", "")
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    };
    let mut lines: Vec<_> = std::iter::once(&headings).chain(rows).map(line).collect();
    let is_left_out = |index: &usize| fitted.iter().all(|shown| shown.index != *index);
    let left_out: Vec<_> = (0..columns.len())
        .filter(is_left_out)
        .map(|index| headings[index].as_str())
        .collect();
    if !left_out.is_empty() {
        lines.push(wrap(&format!(
            "Not shown: {}; choose with --columns, or see --json",
            left_out.join(", ")
        )));
    }
    lines.join("\n")
}

/// Selects the columns that fit, the first ones first, and shortens the widest texts.
fn fit(columns: &[Column], rows: &[Vec<String>], max_width: usize) -> Vec<FittedColumn> {
    let mut fitted: Vec<FittedColumn> = Vec::new();
    let total = |fitted: &[FittedColumn], width: fn(&FittedColumn) -> usize| {
        let gaps = fitted.len().saturating_sub(1) * GAP.len();
        fitted.iter().map(width).sum::<usize>() + gaps
    };
    for (index, column) in columns.iter().enumerate() {
        fitted.push(measure(index, column, rows, max_width));
        if fitted.len() > 1 && total(&fitted, |column| column.min_width) > max_width {
            fitted.pop();
        }
    }
    while total(&fitted, |column| column.width) > max_width {
        let shrinkable = fitted.iter_mut().filter(|column| column.width > column.min_width);
        let Some(widest) = shrinkable.max_by_key(|column| column.width) else {
            break;
        };
        widest.width -= 1;
    }
    fitted
}

fn measure(index: usize, column: &Column, rows: &[Vec<String>], max_width: usize) -> FittedColumn {
    let cells = || rows.iter().map(|row| row[index].as_str());
    let widest = |cells: &mut dyn Iterator<Item = &str>| cells.map(str::width).max().unwrap_or_default();
    let width = widest(&mut cells()).max(column.heading.width());
    let Some(min_width) = column.min_width else {
        return FittedColumn {
            index,
            width,
            min_width: width,
        };
    };
    let ids = widest(&mut cells().filter(|cell| is_id(cell)));
    let min_width = width.min(min_width).max(column.heading.width()).max(ids);
    FittedColumn {
        index,
        width: width.min(max_width),
        min_width,
    }
}

/// Whether a text begins with a generated ID, such as `ord_` and 32 hex digits.
fn is_id(text: &str) -> bool {
    let digits = text
        .split_once('_')
        .and_then(|(_, rest)| rest.as_bytes().get(..32));
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// Replaces the middle of a text that is wider than `width`.
fn shorten(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (head_width, tail_width) = (width / 2, width.saturating_sub(1) / 2);
    let starts = text.char_indices().map(|(start, _)| start);
    let head = starts
        .clone()
        .take_while(|end| text[..*end].width() <= head_width)
        .last();
    let tail = starts
        .rev()
        .take_while(|start| text[*start..].width() <= tail_width)
        .last();
    let (head, tail) = (head.unwrap_or_default(), tail.unwrap_or(text.len()));
    format!("{}…{}", &text[..head], &text[tail..])
}

/// Breaks a paragraph into lines; all but the first are indented.
pub(super) fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].width() + 1 + word.width() > MAX_WIDTH {
            lines.push(format!("{GAP}{word}"));
        } else {
            let separator = if lines[last].is_empty() { "" } else { " " };
            lines[last].push_str(separator);
            lines[last].push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use vouchsafe_wire::column::col;

    use super::*;

    const ID: &str = "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn column_width_counts_wide_characters_twice() {
        let columns = [col("A", "a"), col("B", "b")];
        let table = format_table(&columns, &[row(&["日本", "x"]), row(&["ä", "y"])]);
        assert_eq!(table, "A     B\n日本  x\nä     y");
    }

    #[test]
    fn long_text_is_shortened_in_the_middle_and_id_is_not() {
        let columns = [
            col("Order", "order"),
            col("Name", "name").text(12),
            col("Subject", "subject").text(12),
        ];
        let long = format!("begin{}end", "日".repeat(80));
        let table = format_within(&columns, &[row(&[ID, &long, ID])], MAX_WIDTH);
        let line = table.lines().nth(1).unwrap();
        assert_eq!(line.matches(ID).count(), 2, "{table}");
        assert!(
            line.contains("begin") && line.contains('…') && line.contains("end"),
            "{table}"
        );
        assert!(table.lines().all(|line| line.width() <= MAX_WIDTH), "{table}");
    }

    #[test]
    fn column_that_does_not_fit_is_left_out_with_a_note() {
        let columns = [col("One", "1"), col("Two", "2"), col("Three", "3"), col("N", "4")];
        let rows = [row(&[ID, ID, ID, "7"])];
        assert_eq!(
            format_within(&columns, &rows, MAX_WIDTH),
            format!(
                "ONE{0}TWO{0}N\n{ID}  {ID}  7\nNot shown: THREE; choose with --columns, or see --json",
                " ".repeat(35)
            )
        );
        assert_eq!(
            format_within(&columns, &rows, 220),
            format!(
                "ONE{0}TWO{0}THREE{1}N\n{ID}  {ID}  {ID}  7",
                " ".repeat(35),
                " ".repeat(33)
            )
        );
    }

    #[test]
    fn paragraph_is_wrapped_between_words() {
        let text = "word ".repeat(30);
        let wrapped = wrap(text.trim());
        assert!(wrapped.lines().all(|line| line.len() <= MAX_WIDTH), "{wrapped}");
        assert_eq!(wrapped.split_whitespace().count(), 30);
        assert_eq!(wrapped.lines().count(), 2);
    }
}
