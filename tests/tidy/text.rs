//! Lexing of Rust sources: code without comments and strings, imported modules, words.

/// Returns the module after each `crate::`, also within a group in braces.
pub(crate) fn imported_modules(code: &str) -> Vec<String> {
    let mut modules = Vec::new();
    for (at, found) in code.match_indices("crate::") {
        let rest = &code[at + found.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            modules.push(identifier(rest));
            continue;
        };
        let mut depth = 0_usize;
        let mut begins = true;
        for (at, c) in group.char_indices() {
            match c {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && !c.is_whitespace() => {
                    modules.push(identifier(&group[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    modules
}

fn identifier(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

pub(crate) fn has_word(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word)
        .any(|(at, _)| !code[..at].ends_with(is_part) && !code[at + word.len()..].starts_with(is_part))
}

/// Returns the text without comments and quoted text.
pub(crate) fn code_without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = comment(rest)
            .or_else(|| raw_string(rest, &code))
            .or_else(|| quoted(rest));
        let length = skipped.unwrap_or(c.len_utf8());
        code.push_str(if skipped.is_some() { " " } else { &rest[..length] });
        rest = &rest[length..];
    }
    code
}

fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    text.starts_with("/*")
        .then(|| text.find("*/").map_or(text.len(), |end| end + 2))
}

fn raw_string(text: &str, before: &str) -> Option<usize> {
    let hashes = text.strip_prefix('r')?.chars().take_while(|c| *c == '#').count();
    let is_name = before.ends_with(|c: char| (c.is_alphanumeric() && c != 'b') || c == '_');
    if is_name || !text[1 + hashes..].starts_with('"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = 2 + hashes;
    Some(
        text[begin..]
            .find(&end)
            .map_or(text.len(), |at| begin + at + end.len()),
    )
}

/// Length of a string or character literal; `None` for a lifetime.
fn quoted(text: &str) -> Option<usize> {
    if let Some(inside) = text.strip_prefix('\'') {
        let mut inside = inside.chars();
        let first = inside.next()?;
        let is_character = first == '\\' || inside.next() == Some('\'');
        if !is_character {
            return None;
        }
    } else if !text.starts_with('"') {
        return None;
    }
    let quote = text.chars().next()?;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    Some(text.len())
}
