//! Is every test that the page on reliability names there, under that name?

/// The tests that a page names: two words in code, joined as a path.
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

/// Whether this source is the file of that name, and has the test.
pub(crate) fn is_defined_in(path: &str, text: &str, (file, test): (&str, &str)) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().and_then(|name| name.strip_suffix(".rs"));
    let above = parts.next();
    // The tests of a core lie in a file of that name below it.
    let is_it = name == Some(file) || (name == Some("tests") && above == Some(file));
    is_it
        && ["(", "<"]
            .iter()
            .any(|next| text.contains(&format!("fn {test}{next}")))
}
