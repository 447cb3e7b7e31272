//! Lists as CSV (RFC 4180), for spreadsheets.

use vouchsafe_wire::column::Column;

/// A line of headings and a line per row.
pub(super) fn format_csv(columns: &[Column], rows: &[Vec<String>]) -> String {
    let headings = columns.iter().map(|column| quote(column.heading));
    let headings = headings.collect::<Vec<_>>().join(",");
    let lines = rows.iter().map(|cells| {
        let cells = cells.iter().map(|cell| quote(&neutralize(cell)));
        cells.collect::<Vec<_>>().join(",")
    });
    std::iter::once(headings)
        .chain(lines)
        .collect::<Vec<_>>()
        .join("\n")
}

/// A spreadsheet would calculate a text of a partner that looks like a formula.
fn neutralize(cell: &str) -> String {
    let number = cell.strip_prefix('-').unwrap_or(cell);
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number;
    if is_formula {
        format!("'{cell}")
    } else {
        cell.to_owned()
    }
}

fn quote(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use vouchsafe_wire::column::col;

    use super::*;

    #[test]
    fn formula_is_a_text_and_number_stays_one() {
        let columns = [col("Name", "name"), col("Amount", "amount")];
        let row = |name: &str, amount: &str| vec![name.to_owned(), amount.to_owned()];
        let rows = [row("=1+1", "-25.00"), row("a \"b\", c", ""), row("-x", "7")];
        assert_eq!(
            format_csv(&columns, &rows),
            "Name,Amount\n'=1+1,-25.00\n\"a \"\"b\"\", c\",\n'-x,7"
        );
    }
}
