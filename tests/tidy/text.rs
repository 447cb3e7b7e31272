//! Lexing of Rust sources: code without comments and strings, declared types, headers.

fn is_identifier_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the first sentence of the module documentation, without the comment marks.
pub(crate) fn first_sentence_of_header(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let paragraph: Vec<&str> = lines.map(str::trim).take_while(|line| !line.is_empty()).collect();
    let mut paragraph = paragraph.join(" ");
    let ends_sentence = |at: usize| paragraph[at + 1..].is_empty() || paragraph[at + 1..].starts_with(' ');
    let mut marks = paragraph.match_indices(['.', '?', '!']);
    let end = marks
        .find(|(at, _)| ends_sentence(*at))
        .map_or(paragraph.len(), |(at, _)| at + 1);
    paragraph.truncate(end);
    paragraph
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
    let is_name = before.ends_with(|c: char| is_identifier_part(c) && c != 'b');
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
