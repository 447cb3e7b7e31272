//! Generator of the error references, `docs/partner/errors.md` and `docs/operator-errors.md`, from the error
//! code table.

use std::fmt::Write as _;

use crate::error_code::{Code, OPERATORS_ONLY};

const PARTNER_INTRODUCTION: &str = r#"# Errors

Every error response has this body, with `Content-Type: application/json`:

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

| Field | Meaning |
|---|---|
| `code` | identifies the error; branch on it. A code never changes its meaning |
| `name` | the code in PascalCase |
| `message` | for humans: what happened and what to do. The wording may change |
| `details` | a list of `field` and `message`: with `VALIDATION_FAILED` each invalid field and what is expected; if items of an order cannot be ordered, each of them, such as `items[3].denomination`; with the limits of amounts, what is left; with `MISSING_SCOPE` the scope. With `INSUFFICIENT_INVENTORY` also `max_quantity`, a quantity that was in stock, rounded down to 1, 2, 5, 10, 20, 50, 100, 200 or 500 |
| `retryable` | whether the same request with the same `Idempotency-Key` may succeed later. If `false`, do not retry: correct the request |
| `trace_id` | id of this request in the service's logs, also in the header `X-Trace-ID`. In a replayed error it is the id of the first request |

If the response has a `Retry-After` header, wait for that number of seconds before you retry. New codes may be added: handle an
unknown code by its HTTP status. How to retry safely: [Idempotency and retries](idempotency.md).
"#;

const OPERATOR_INTRODUCTION: &str = r#"# Errors of the operator API

The operator API also returns the codes of the [partner error reference](partner/errors.md), in the same format. The codes on this
page occur only in the operator API.
"#;

/// The generated files: path from the repository root, content.
fn pages() -> [(&'static str, String); 2] {
    let (operators, partners): (Vec<Code>, Vec<Code>) =
        Code::ALL.iter().partition(|code| code.is_for_operators_only());
    [
        ("docs/partner/errors.md", page(PARTNER_INTRODUCTION, &partners)),
        ("docs/operator-errors.md", page(OPERATOR_INTRODUCTION, &operators)),
    ]
}

fn page(introduction: &str, codes: &[Code]) -> String {
    let mut page = format!("{introduction}\n## Codes\n\n| Code | Status | Retryable |\n|---|---|---|\n");
    for code in codes {
        let (label, status, retryable) = (code.as_str(), code.status(), yes_or_no(code.retryable()));
        writeln!(
            page,
            "| [`{label}`](#{}) | {status} | {retryable} |",
            label.to_lowercase()
        )
        .unwrap();
    }
    for code in codes {
        let (label, status, name) = (code.as_str(), code.status(), code.name());
        let retryable = yes_or_no(code.retryable());
        write!(
            page,
            "\n### {label}\n\n{status}, `{name}`, retryable: {retryable}. {} {}\n",
            code.meaning(),
            advice(*code)
        )
        .unwrap();
    }
    page
}

/// The advice without the mark of operator codes.
fn advice(code: Code) -> String {
    let Some(advice) = code.advice().strip_prefix(OPERATORS_ONLY) else {
        return code.advice().to_owned();
    };
    advice[..1].to_uppercase() + &advice[1..]
}

fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

#[test]
fn error_pages_match_the_code_table() {
    for (file, page) in pages() {
        let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("VOUCHSAFE_REWRITE_DOCS").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == page,
            "{file} differs from the table in crates/wire/src/error_code.rs; regenerate it with\n    \
             VOUCHSAFE_REWRITE_DOCS=1 cargo test -p vouchsafe-wire --lib error_page"
        );
    }
}

#[test]
fn code_has_a_meaning_and_advice() {
    for code in Code::ALL {
        for text in [code.meaning(), code.advice()] {
            assert!(
                text.len() > 10 && text.ends_with('.') && !text.starts_with(' '),
                "{code:?}: {text:?}"
            );
        }
    }
}
