//! Nesting depth of a JSON text, which is bounded before a recursive parser reads it.

/// Maximum nesting of brackets outside of strings. The text may be no JSON.
#[must_use]
pub fn nesting_depth(body: &[u8]) -> usize {
    let (mut open, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                open += 1;
                deepest = deepest.max(open);
            }
            b'}' | b']' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_within_strings_do_not_count() {
        assert_eq!(nesting_depth(br#"{"a":"[[[\"[["}"#), 1);
        assert_eq!(nesting_depth(br#"{"a":[{"b":[]}]}"#), 4);
    }
}
