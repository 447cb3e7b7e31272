//! Test names in docs/reliability.md and docs/security.md.

/// Returns the tests that a page names: two words in code, joined as a path.
pub(crate) fn named_tests(page: &str) -> Vec<(&str, &str)> {
    let code = page.split('`').skip(1).step_by(2);
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let paths = code.filter_map(|code| code.split_once("::"));
    paths
        .filter(|(file, test)| is_word(file) && is_word(test) && test.contains('_') && !is_constant(test))
        .collect()
}

fn is_constant(name: &str) -> bool {
    name.chars().any(|c| c.is_ascii_uppercase())
}

/// Returns whether this source is the file of that name and contains the test.
pub(crate) fn is_defined_in(path: &str, text: &str, (file, test): (&str, &str)) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().and_then(|name| name.strip_suffix(".rs"));
    let parent = parts.next();
    // Unit tests are in `tests.rs` below the module of that name.
    let is_file = name == Some(file) || (name == Some("tests") && parent == Some(file));
    is_file && defines(text, test)
}

/// Returns whether the source has a function of this name.
pub(crate) fn defines(text: &str, test: &str) -> bool {
    ["(", "<"]
        .iter()
        .any(|next| text.contains(&format!("fn {test}{next}")))
}
