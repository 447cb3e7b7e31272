//! The reference page of errors, `docs/partner/errors.md`: made from the table, so that it cannot say anything else.

use std::fmt::Write as _;

use super::Code;

/// What the page says before the codes.
const INTRODUCTION: &str = r#"# Errors

Every answer that is no success has this body, with the `Content-Type` `application/json`:

```json
{
  "error": {
    "name": "ValidationFailed",
    "code": "VALIDATION_FAILED",
    "message": "items[0].quantity: expected 1 to 1000",
    "details": [{ "field": "items[0].quantity", "message": "expected 1 to 1000" }],
    "retryable": false,
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736"
  }
}
```

| Field | What it is |
|---|---|
| `code` | what your program decides on; a code never changes its meaning |
| `name` | the code in PascalCase |
| `message` | for people: what happened and what to do. Its wording may change |
| `details` | with `VALIDATION_FAILED` alone: each field that is wrong, as a path |
| `retryable` | whether the same request with the same `Idempotency-Key` may succeed. Where it is `false`, do not repeat: correct the request |
| `trace_id` | names this request in the logs of the service; also in the header `X-Trace-ID`. A refusal that is given again from its key has the id of the first one in its body |

Where the header `Retry-After` is there, wait so many seconds before you repeat. New codes may be added: treat one that you
do not know by its status. How to repeat safely: [Idempotency and retries](idempotency.md).
"#;

/// The page, in Markdown.
fn page() -> String {
    let mut page = format!("{INTRODUCTION}\n## All codes\n\n| Code | Status | Retryable |\n|---|---|---|\n");
    for code in Code::ALL {
        let (word, status, retryable) = (code.as_str(), code.status(), yes_or_no(code.retryable()));
        writeln!(
            page,
            "| [`{word}`](#{}) | {status} | {retryable} |",
            word.to_lowercase()
        )
        .unwrap();
    }
    for code in Code::ALL {
        let (word, status, name) = (code.as_str(), code.status(), code.name());
        let retryable = yes_or_no(code.retryable());
        write!(
            page,
            "\n### {word}\n\n{status}, `{name}`, retryable: {retryable}. {} {}\n",
            code.meaning(),
            code.advice()
        )
        .unwrap();
    }
    page
}

fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

#[test]
fn the_page_is_that_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/partner/errors.md");
    if std::env::var_os("VOUCHSAFE_REWRITE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == page(),
        "docs/partner/errors.md is not what the table in src/errors/code.rs says; write it anew with\n    \
         VOUCHSAFE_REWRITE_DOCS=1 cargo test -p vouchsafe --lib errors::page"
    );
}

#[test]
fn every_code_says_what_it_means_and_what_to_do() {
    for code in Code::ALL {
        for text in [code.meaning(), code.advice()] {
            assert!(
                text.len() > 10 && text.ends_with('.') && !text.starts_with(' '),
                "{code:?}: {text:?}"
            );
        }
    }
}
