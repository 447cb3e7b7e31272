//! Syntax highlighting of code blocks: a lexer for the few languages of the documentation.
//!
//! Classes: `c` comment, `s` string, `n` number, `k` keyword, `p` property of JSON or variable of the shell.
//! Text of other languages stays plain.

use maud::{Markup, html};

/// What the lexer knows of a language.
struct Syntax {
    /// Beginnings of a comment that ends with the line.
    comments: &'static [&'static str],
    /// Delimiters of strings, longer ones first.
    strings: &'static [&'static str],
    keywords: &'static [&'static str],
    has_block_comments: bool,
    has_variables: bool,
    has_properties: bool,
}

const PLAIN: Syntax = Syntax {
    comments: &[],
    strings: &[],
    keywords: &[],
    has_block_comments: false,
    has_variables: false,
    has_properties: false,
};

const SHELL: Syntax = Syntax {
    comments: &["#"],
    strings: &["'", "\""],
    keywords: &[
        "case", "do", "done", "elif", "else", "esac", "export", "fi", "for", "if", "in", "set", "then",
        "while",
    ],
    has_variables: true,
    ..PLAIN
};

const JSON: Syntax = Syntax {
    strings: &["\""],
    keywords: &["false", "null", "true"],
    has_properties: true,
    ..PLAIN
};

const PYTHON: Syntax = Syntax {
    comments: &["#"],
    strings: &["\"\"\"", "\"", "'"],
    keywords: &[
        "and", "as", "class", "def", "else", "except", "for", "from", "if", "import", "in", "not", "or",
        "raise", "return", "try", "while", "with", "None", "True", "False",
    ],
    ..PLAIN
};

const JAVASCRIPT: Syntax = Syntax {
    comments: &["//"],
    strings: &["\"", "'", "`"],
    keywords: &[
        "await", "const", "else", "export", "false", "for", "from", "function", "if", "import", "let", "new",
        "null", "of", "return", "true",
    ],
    has_block_comments: true,
    ..PLAIN
};

const JAVA: Syntax = Syntax {
    comments: &["//"],
    strings: &["\"\"\"", "\""],
    keywords: &[
        "boolean", "byte", "class", "else", "false", "for", "if", "import", "long", "new", "null", "public",
        "return", "static", "throws", "true", "var", "void",
    ],
    has_block_comments: true,
    ..PLAIN
};

const PHP: Syntax = Syntax {
    comments: &["//"],
    strings: &["'", "\""],
    keywords: &[
        "as", "bool", "echo", "else", "exit", "false", "foreach", "function", "if", "int", "null", "require",
        "return", "string", "true",
    ],
    has_block_comments: true,
    has_variables: true,
    ..PLAIN
};

const GO: Syntax = Syntax {
    comments: &["//"],
    strings: &["`", "\""],
    keywords: &[
        "defer", "else", "false", "for", "func", "if", "import", "nil", "package", "range", "return", "true",
        "var",
    ],
    has_block_comments: true,
    ..PLAIN
};

const CSHARP: Syntax = Syntax {
    comments: &["//"],
    strings: &["\"\"\"", "\""],
    keywords: &[
        "await", "bool", "byte", "class", "else", "false", "foreach", "if", "int", "long", "new", "null",
        "out", "public", "return", "static", "string", "true", "using", "var", "void",
    ],
    has_block_comments: true,
    ..PLAIN
};

const RUST: Syntax = Syntax {
    comments: &["//"],
    strings: &["\""],
    keywords: &[
        "as", "else", "false", "fn", "for", "if", "impl", "let", "match", "move", "mut", "pub", "return",
        "true", "use",
    ],
    ..PLAIN
};

const LUA: Syntax = Syntax {
    comments: &["--"],
    strings: &["\""],
    keywords: &[
        "and", "else", "end", "false", "for", "function", "if", "local", "nil", "not", "or", "return",
        "then", "true",
    ],
    ..PLAIN
};

fn syntax(language: &str) -> &'static Syntax {
    match language {
        "sh" => &SHELL,
        "json" => &JSON,
        "python" => &PYTHON,
        "js" => &JAVASCRIPT,
        "java" => &JAVA,
        "php" => &PHP,
        "go" => &GO,
        "csharp" => &CSHARP,
        "rust" => &RUST,
        "lua" => &LUA,
        _ => &PLAIN,
    }
}

/// Renders code with its tokens in `span`s.
pub(super) fn highlight(language: &str, code: &str) -> Markup {
    let tokens = Tokens {
        syntax: syntax(language),
        rest: code,
        previous: None,
    };
    html! {
        @for (class, text) in tokens {
            @match class {
                Some(class) => { span class=(class) { (text) } },
                None => { (text) },
            }
        }
    }
}

/// The tokens of a text: their class and text.
struct Tokens<'a> {
    syntax: &'static Syntax,
    rest: &'a str,
    previous: Option<char>,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (Option<&'static str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.rest.chars().next()?;
        let (class, length) = self.token(first);
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        self.previous = token.chars().next_back();
        Some((class, token))
    }
}

impl Tokens<'_> {
    /// Class and length of the token at the start of the rest.
    fn token(&self, first: char) -> (Option<&'static str>, usize) {
        let (syntax, rest) = (self.syntax, self.rest);
        // `#` within a word of the shell is no comment.
        let at_word_start = self.previous.is_none_or(char::is_whitespace);
        if at_word_start && syntax.comments.iter().any(|start| rest.starts_with(start)) {
            return (Some("c"), rest.find('\n').unwrap_or(rest.len()));
        }
        if syntax.has_block_comments && rest.starts_with("/*") {
            return (Some("c"), rest.find("*/").map_or(rest.len(), |end| end + 2));
        }
        if let Some(delimiter) = syntax
            .strings
            .iter()
            .find(|delimiter| rest.starts_with(**delimiter))
        {
            let length = string_length(rest, delimiter);
            let is_property = syntax.has_properties && rest[length..].trim_start().starts_with(':');
            return (Some(if is_property { "p" } else { "s" }), length);
        }
        if syntax.has_variables && first == '$' {
            let name = word_length(&rest[1..]);
            return ((name > 0).then_some("p"), 1 + name);
        }
        match word_length(rest) {
            0 => (None, first.len_utf8()),
            length if first.is_ascii_digit() => {
                let fraction = rest[length..].strip_prefix('.').map_or(0, word_length);
                (
                    Some("n"),
                    if fraction > 0 {
                        length + 1 + fraction
                    } else {
                        length
                    },
                )
            }
            length => (syntax.keywords.contains(&&rest[..length]).then_some("k"), length),
        }
    }
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

/// The length of a string with its delimiters; a backslash escapes, except in the shell's single quotes.
fn string_length(text: &str, delimiter: &str) -> usize {
    let mut at = delimiter.len();
    while let Some(next) = text[at..].chars().next() {
        if text[at..].starts_with(delimiter) {
            return at + delimiter.len();
        }
        at += next.len_utf8();
        if next == '\\' && delimiter != "'" {
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_have_their_class() {
        for (language, code, expected) in [
            (
                "json",
                r#"{"a": 1.50}"#,
                r#"{<span class="p">&quot;a&quot;</span>: <span class="n">1.50</span>}"#,
            ),
            ("sh", "a#b # c", r#"a#b <span class="c"># c</span>"#),
            (
                "sh",
                r"'\' $x ",
                r#"<span class="s">'\'</span> <span class="p">$x</span> "#,
            ),
            (
                "python",
                "if '#'",
                r#"<span class="k">if</span> <span class="s">'#'</span>"#,
            ),
            ("js", "/* a */b", r#"<span class="c">/* a */</span>b"#),
            ("rust", "iffy fn", r#"iffy <span class="k">fn</span>"#),
            ("text", "if <x>", "if &lt;x&gt;"),
            ("java", "\"open", r#"<span class="s">&quot;open</span>"#),
        ] {
            assert_eq!(
                highlight(language, code).into_string(),
                expected,
                "{language}: {code}"
            );
        }
    }

    proptest! {
        #[test]
        fn tokens_join_to_the_code(code in "[a-z0-9\"'`\\\\#$/*\\n ä-]{0,40}", language in 0..11_usize) {
            let language = ["sh", "json", "python", "js", "java", "php", "go", "csharp", "rust", "lua", "text"][language];
            let tokens = Tokens { syntax: syntax(language), rest: &code, previous: None };
            let joined: String = tokens.map(|(_, text)| text).collect();
            prop_assert_eq!(joined, code);
        }
    }
}
