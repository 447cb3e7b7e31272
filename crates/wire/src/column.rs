//! Columns of the tables in which console and command line show lists of the operator API.

/// A column of a table, or a fact about an object.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub heading: &'static str,
    /// Paths of fields, whose values it joins.
    pub fields: &'static str,
    /// Page of the console about the row, with fields as placeholders; empty: only IDs are links.
    pub page: &'static str,
    /// The width to which a terminal may shorten values; `None`: it never does.
    pub min_width: Option<usize>,
    /// Its place among the columns of a terminal, which leaves out the last ones if they do not fit.
    position: Option<usize>,
    surface: Surface,
}

/// Where a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surface {
    Everywhere,
    Console,
    Terminal,
}

pub const fn col(heading: &'static str, fields: &'static str) -> Column {
    Column {
        heading,
        fields,
        page: "",
        min_width: None,
        position: None,
        surface: Surface::Everywhere,
    }
}

impl Column {
    /// Links its value to a page of the console.
    #[must_use]
    pub const fn link(self, page: &'static str) -> Self {
        Self { page, ..self }
    }

    /// Texts that a terminal may shorten to this width.
    #[must_use]
    pub const fn text(mut self, min_width: usize) -> Self {
        self.min_width = Some(min_width);
        self
    }

    /// Moves it to this position in a terminal.
    #[must_use]
    pub const fn at(mut self, position: usize) -> Self {
        self.position = Some(position);
        self
    }

    #[must_use]
    pub const fn console_only(mut self) -> Self {
        self.surface = Surface::Console;
        self
    }

    #[must_use]
    pub const fn terminal_only(mut self) -> Self {
        self.surface = Surface::Terminal;
        self
    }
}

/// The columns of a page of the console.
pub fn of_console(columns: &[Column]) -> impl Iterator<Item = &Column> + Clone {
    columns
        .iter()
        .filter(|column| column.surface != Surface::Terminal)
}

/// The columns of a terminal, the most important first.
#[must_use]
pub fn of_terminal(columns: &[Column]) -> Vec<Column> {
    let shown = columns.iter().filter(|column| column.surface != Surface::Console);
    let (mut moved, mut ordered): (Vec<_>, Vec<_>) =
        shown.copied().partition(|column| column.position.is_some());
    moved.sort_by_key(|column| column.position);
    for column in moved {
        let position = column.position.unwrap_or_default().min(ordered.len());
        ordered.insert(position, column);
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_orders_columns_by_position_and_each_surface_has_its_own() {
        let columns = [
            col("A", "a"),
            col("B", "b").console_only(),
            col("C", "c").at(9),
            col("D", "d").at(0),
            col("E", "e").terminal_only(),
        ];
        let headings = |columns: Vec<Column>| columns.iter().map(|column| column.heading).collect::<String>();
        assert_eq!(headings(of_terminal(&columns)), "DAEC");
        assert_eq!(headings(of_console(&columns).copied().collect()), "ABCD");
    }
}
