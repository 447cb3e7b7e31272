//! Source rules as tables: file length, width of comments, forbidden words, module headers, retired folder
//! names.
//!
//! The functions below only apply the tables.

use crate::text::{code_without_comments, first_sentence_of_header};

/// A longer file has more than one subject, or a reason in [`LONG_FILES`].
pub(crate) const MAX_LINES: usize = 400;

/// Columns of a comment, as `max_width` of rustfmt.toml: rustfmt wraps code alone. Tables may be wider.
const MAX_COMMENT_WIDTH: usize = 110;

/// Files that may be longer, each with its reason.
const LONG_FILES: [(&str, &str); 0] = [];

/// Marks of unfinished work and of a single machine. Each is split in two, so that this file does not contain
/// it.
pub(crate) const FORBIDDEN_WORDS: [(&str, &str); 7] = [
    ("TO", "DO"),
    ("FIX", "ME"),
    ("/wo", "rk/"),
    ("/ro", "ot/."),
    ("Cla", "ude"),
    ("Anth", "ropic"),
    ("Chat", "GPT"),
];

/// Macros and attributes of unfinished work and leftover debugging.
const UNFINISHED_CODE: [&str; 4] = ["todo!", "unimplemented!", "dbg!", "#[ignore"];

/// Names of folders that were renamed, each with its new name. Many tools skip `vendor` as code of third
/// parties.
const RETIRED_FOLDERS: [(&str, &str); 1] = [("vendor", "procurement")];

fn is_in_folder(path: &str, folder: &str) -> bool {
    path.split('/').rev().skip(1).any(|part| part == folder)
}

/// Returns the rule violations of a file, one line each.
pub(crate) fn violations(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (begin, end) in FORBIDDEN_WORDS {
        let word = [begin, end].concat();
        if text.contains(&word) {
            found.push(format!("{path}: contains {word}; remove it"));
        }
    }
    for (folder, replacement) in RETIRED_FOLDERS {
        if is_in_folder(path, folder) {
            found.push(format!(
                "{path}: the folder name {folder} is retired; use {replacement}"
            ));
        }
    }
    if path.ends_with(".rs") {
        found.extend(rust_violations(path, text));
    }
    found
}

fn rust_violations(path: &str, text: &str) -> Vec<String> {
    let mut found = header_violations(path, text);
    let lines = text.lines().count();
    let may_be_long = LONG_FILES.iter().any(|(long, _)| *long == path);
    match (lines > MAX_LINES, may_be_long) {
        (true, false) => found.push(format!(
            "{path}: {lines} lines exceed the limit of {MAX_LINES}; split the file"
        )),
        (false, true) => found.push(format!("{path}: short enough; remove it from LONG_FILES")),
        _ => {}
    }
    for (number, line) in text.lines().enumerate() {
        let words = line.trim_start().strip_prefix("//").unwrap_or_default();
        let words = words.trim_start_matches(['/', '!']).trim();
        if line.chars().count() > MAX_COMMENT_WIDTH && words.contains(' ') && !words.starts_with('|') {
            let line = number + 1;
            found.push(format!(
                "{path}:{line}: wrap the comment at {MAX_COMMENT_WIDTH} columns"
            ));
        }
    }
    let code = code_without_comments(text);
    for word in UNFINISHED_CODE {
        if code.contains(word) {
            found.push(format!("{path}: contains {word}; remove it"));
        }
    }
    found
}

fn header_violations(path: &str, text: &str) -> Vec<String> {
    if !text.starts_with("//!") {
        return vec![format!(
            "{path}: starts without a //! header; add one that names the subject"
        )];
    }
    let is_question = first_sentence_of_header(text).ends_with('?');
    let message = || format!("{path}: the header starts with a question; write a noun phrase or a statement");
    is_question.then(message).into_iter().collect()
}
