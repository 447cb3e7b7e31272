//! Options of commands that print a list.

use anyhow::bail;
use clap::Args;
use vouchsafe_wire::column::Column;

/// How a list is printed.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct TableOptions {
    /// Columns to print, by their headings, such as `order,total`; also those that a narrow terminal leaves
    /// out.
    #[arg(long, value_name = "HEADINGS", value_delimiter = ',')]
    pub(super) columns: Vec<String>,
    /// Print the whole list as CSV, with the names of fields as headings; texts that look like formulas begin
    /// with an apostrophe.
    #[arg(long, conflicts_with_all = ["limit", "cursor", "count"])]
    pub(super) csv: bool,
}

impl TableOptions {
    /// The chosen columns in the order of the option; all without it.
    ///
    /// # Errors
    /// If there is no such column.
    pub(super) fn choose(&self, columns: Vec<Column>) -> anyhow::Result<Vec<Column>> {
        if self.columns.is_empty() {
            return Ok(columns);
        }
        let mut chosen = Vec::with_capacity(self.columns.len());
        for heading in &self.columns {
            let is_named = |column: &&Column| column.heading.eq_ignore_ascii_case(heading.trim());
            let Some(column) = columns.iter().find(is_named) else {
                let headings: Vec<_> = columns
                    .iter()
                    .map(|column| column.heading.to_lowercase())
                    .collect();
                bail!(
                    "no column is called {heading}: the columns are {}",
                    headings.join(", ")
                );
            };
            chosen.push(*column);
        }
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use vouchsafe_wire::column::col;

    use super::*;

    #[test]
    fn columns_are_chosen_by_heading_in_any_case() {
        let columns = vec![
            col("Order", "order_id"),
            col("Total", "total_amount"),
            col("Status", "status"),
        ];
        let choose = |headings: &[&str]| {
            let options = TableOptions {
                columns: headings.iter().map(ToString::to_string).collect(),
                csv: false,
            };
            let chosen = options.choose(columns.clone())?;
            anyhow::Ok(chosen.iter().map(|column| column.fields).collect::<Vec<_>>())
        };
        assert_eq!(choose(&["status", "ORDER"]).unwrap(), ["status", "order_id"]);
        assert_eq!(choose(&[]).unwrap().len(), 3);
        assert_eq!(
            choose(&["sum"]).unwrap_err().to_string(),
            "no column is called sum: the columns are order, total, status"
        );
    }
}
