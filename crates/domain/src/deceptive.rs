//! Escaping of control, bidirectional and invisible characters, which deceive the reader of a terminal or
//! page.

/// Whether a terminal or browser obeys the character or shows nothing: terminal escapes, marks of direction,
/// invisible characters.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Escapes a value that is shown within a line.
#[must_use]
pub fn escape_value(text: &str) -> String {
    escape(text, |_| false)
}

/// Escapes output of several lines, such as a table. The escapes are those of JSON strings: JSON text keeps
/// its meaning.
#[must_use]
pub fn escape_output(text: &str) -> String {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

fn escape(text: &str, is_layout: fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !is_deceptive(c) || is_layout(c) => escaped.push(c),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_shows_escapes_and_stays_on_its_line() {
        assert_eq!(
            escape_value("a\u{1b}[2J\n\tb\u{9b}31m\u{202e}\u{e0041}"),
            r"a\u001b[2J\n\tb\u009b31m\u202e\udb40\udc41"
        );
        assert_eq!(escape_value("naïve 日本"), "naïve 日本");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let text = "{\n\t\"a\u{202e}\": \"\u{9b}\u{7f}\u{e0041}\"}";
        let escaped = escape_output(text);
        assert!(escaped.is_ascii(), "{escaped}");
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(parse(&escaped), parse(text));
    }
}
