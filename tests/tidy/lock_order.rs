//! Lock order of SQL statements that lock several rows, compared with the tables of docs/reliability.md.
//!
//! A statement passes if it locks one row by a constant key, locks its rows sorted by the key, or skips
//! locked rows. An UPDATE or DELETE also passes if its statement locks rows of the same table before. The
//! page lists all others with their reasons.

use std::collections::BTreeMap;

/// Statements that neither lock a single row nor sort, by file and kind, with their number.
pub(crate) type Unsorted = BTreeMap<(String, String), usize>;

/// The lock order and its exceptions, as the page lists them.
#[derive(Debug, Default)]
pub(crate) struct LockOrder {
    /// Tables with the columns that their rows are sorted by; none for a table of one row.
    tables: Vec<(String, Vec<String>)>,
    pub(crate) exceptions: Unsorted,
}

impl LockOrder {
    /// Reads the two tables of the section "Lock order": tables with their columns, and files with statement,
    /// number and reason.
    pub(crate) fn parse(page: &str) -> Self {
        let mut order = Self::default();
        let section = page
            .split("\n## ")
            .find(|section| section.starts_with("Lock order"));
        for line in section
            .unwrap_or_default()
            .lines()
            .filter(|line| line.starts_with("| `"))
        {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let names = |cell: &str| -> Vec<String> {
                cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
            };
            match cells[..] {
                [table, columns] => order.tables.push((names(table).remove(0), names(columns))),
                [file, statement, number, _] => {
                    let key = (names(file).remove(0), names(statement).remove(0));
                    order.exceptions.insert(key, number.parse().unwrap());
                }
                _ => panic!("a row of the lock order has another number of cells: {line}"),
            }
        }
        order
    }

    /// Adds the unsorted statements of a source file.
    pub(crate) fn find_unsorted(&self, path: &str, text: &str, found: &mut Unsorted) {
        let texts = if path.ends_with(".rs") {
            string_literals(text)
        } else {
            vec![text.to_owned()]
        };
        for tokens in texts.iter().map(|text| tokens(text)) {
            for statement in tokens.split(|token| token.text == ";") {
                for kind in self.unsorted_locks(statement) {
                    *found.entry((path.to_owned(), kind)).or_default() += 1;
                }
            }
        }
    }

    fn unsorted_locks(&self, statement: &[Token]) -> Vec<String> {
        let (mut unsorted, mut selected) = (Vec::new(), Vec::new());
        for at in 0..statement.len() {
            let Some(end) = locking_clause(statement, at) else {
                continue;
            };
            let block = select_block(statement, at);
            let rest = &statement[end..];
            let of = rest
                .first()
                .filter(|token| token.text == "of")
                .map(|_| &rest[1].text);
            let skips = rest
                .iter()
                .take(4)
                .any(|token| token.text == "skip" || token.text == "nowait");
            for (table, alias) in sources(&block) {
                let Some(columns) = self
                    .columns(table)
                    .filter(|_| of.is_none_or(|of| of == alias || of == table))
                else {
                    continue;
                };
                selected.push(table.to_owned());
                if !(skips || is_one_row(&block, alias, columns) || is_sorted(&block, columns)) {
                    unsorted.push(format!("SELECT FROM {table}"));
                }
            }
        }
        for (at, token) in statement.iter().enumerate() {
            let before = at.checked_sub(1).map_or("", |before| &statement[before].text);
            let is_change = match token.text.as_str() {
                "update" => !["for", "key", "do"].contains(&before),
                "from" => before == "delete",
                _ => false,
            };
            let Some(table) = statement.get(at + 1).filter(|_| is_change) else {
                continue;
            };
            let Some(columns) = self.columns(&table.text) else {
                continue;
            };
            let block: Vec<&Token> = statement[at..]
                .iter()
                .take_while(|other| other.depth >= token.depth)
                .filter(|other| other.depth == token.depth)
                .collect();
            let alias = block
                .get(3)
                .filter(|_| block[2].text == "as")
                .map_or(&table.text, |alias| &alias.text);
            if !selected.contains(&table.text) && !is_one_row(&block, alias, columns) {
                let kind = if token.text == "from" {
                    "DELETE FROM"
                } else {
                    "UPDATE"
                };
                unsorted.push(format!("{kind} {}", table.text));
            }
        }
        unsorted
    }

    fn columns(&self, table: &str) -> Option<&[String]> {
        let (_, columns) = self.tables.iter().find(|(name, _)| name == table)?;
        Some(columns)
    }
}

/// A word, number, quoted text or sign of a statement, in lower case.
#[derive(Debug)]
struct Token {
    text: String,
    /// Number of parentheses around it.
    depth: usize,
}

fn tokens(sql: &str) -> Vec<Token> {
    let (mut tokens, mut rest, mut depth) = (Vec::new(), sql, 0_usize);
    while let Some(c) = rest.chars().next() {
        let until = |end: &str| rest[1..].find(end).map_or(rest.len(), |at| at + 1 + end.len());
        let is_word = |c: char| c.is_alphanumeric() || ['_', '$', '.'].contains(&c);
        let length = match c {
            '-' if rest.starts_with("--") => until("\n"),
            '/' if rest.starts_with("/*") => until("*/"),
            '\'' => until("'"),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let text = rest[..length].to_lowercase();
        rest = &rest[length..];
        if text.starts_with("--") || text.starts_with("/*") || text.trim().is_empty() {
            continue;
        }
        if text == ")" {
            depth = depth.saturating_sub(1);
        }
        tokens.push(Token { text, depth });
        if c == '(' {
            depth += 1;
        }
    }
    tokens
}

/// The end of the locking clause that begins here: FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE or FOR KEY SHARE.
fn locking_clause(statement: &[Token], at: usize) -> Option<usize> {
    let words = |length: usize| {
        statement
            .get(at..at + length)
            .map(|words| words.iter().map(|word| word.text.as_str()).collect())
    };
    let is_clause = |length| {
        words(length).is_some_and(|words: Vec<&str>| {
            [
                &["for", "update"][..],
                &["for", "share"],
                &["for", "key", "share"],
                &["for", "no", "key", "update"],
            ]
            .contains(&&words[..])
        })
    };
    (2..=4)
        .find(|length| is_clause(*length))
        .map(|length| at + length)
}

/// The SELECT that a locking clause ends, without what is in parentheses.
fn select_block(statement: &[Token], end: usize) -> Vec<&Token> {
    let depth = statement[end].depth;
    let outer = statement[..end].iter().rposition(|token| token.depth < depth);
    let mut block: Vec<&Token> = statement[outer.map_or(0, |at| at + 1)..end]
        .iter()
        .filter(|token| token.depth == depth)
        .collect();
    let begin = block
        .iter()
        .rposition(|token| token.text == "select" || token.text == "perform");
    block.drain(..begin.unwrap_or(0));
    block
}

/// Tables of a block with their aliases.
fn sources<'a>(block: &[&'a Token]) -> Vec<(&'a str, &'a str)> {
    let begin = block
        .iter()
        .position(|token| token.text == "from")
        .unwrap_or(block.len());
    let mut sources = Vec::new();
    for at in begin..block.len().saturating_sub(1) {
        if ["from", "join", ","].contains(&block[at].text.as_str()) {
            let (table, rest) = (&block[at + 1].text, &block[at + 2..]);
            let alias = rest
                .first()
                .filter(|word| word.text == "as")
                .and_then(|_| rest.get(1));
            sources.push((
                table.as_str(),
                alias.map_or(table.as_str(), |alias| alias.text.as_str()),
            ));
        }
    }
    sources
}

/// Whether constants determine every column of the key.
fn is_one_row(block: &[&Token], alias: &str, columns: &[String]) -> bool {
    let is_constant = |text: &str| text.starts_with('$') || text.starts_with("p_") || text.starts_with("v_");
    columns.iter().all(|column| {
        let qualified = format!("{alias}.{column}");
        block.windows(3).any(|words| {
            (words[0].text == *column || words[0].text == qualified)
                && words[1].text == "="
                && is_constant(&words[2].text)
            // `= $1` ends here or before AND; `= ANY ($1)` does not get here, because ANY is no constant.
        })
    })
}

/// Whether the rows come in the order of these columns.
fn is_sorted(block: &[&Token], columns: &[String]) -> bool {
    let by = block
        .windows(2)
        .position(|words| words[0].text == "order" && words[1].text == "by");
    let Some(by) = by else { return false };
    let expressions = block[by + 2..].split(|token| token.text == ",");
    let first = |expression: &[&Token]| {
        expression
            .first()
            .map(|word| word.text.rsplit('.').next().unwrap().to_owned())
    };
    expressions
        .take(columns.len())
        .filter_map(first)
        .eq(columns.iter().cloned())
}

/// Texts of the string literals of a Rust source, without escapes.
fn string_literals(source: &str) -> Vec<String> {
    let (mut literals, mut rest) = (Vec::new(), source);
    while let Some(c) = rest.chars().next() {
        let raw = rest
            .strip_prefix('r')
            .map(|rest| rest.len() - rest.trim_start_matches('#').len());
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(hashes) = raw.filter(|hashes| rest[1 + hashes..].starts_with('"')) {
            let (begin, end) = (hashes + 2, format!("\"{}", "#".repeat(hashes)));
            let length = rest[begin..].find(&end).unwrap_or(rest.len() - begin);
            literals.push(rest[begin..begin + length].to_owned());
            begin + length + end.len()
        } else if c == '"' {
            let mut is_escaped = false;
            let ends = |c: char| {
                let ends = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            };
            let length = rest[1..].find(ends).unwrap_or(rest.len() - 1);
            literals.push(rest[1..=length].replace("\\\"", "\"").replace("\\n", "\n"));
            length + 2
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\") {
            3
        } else {
            c.len_utf8()
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    literals
}
