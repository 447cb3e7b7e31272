//! Page on which a partner sends requests to the sandbox: a script signs them in the browser.

use maud::{Markup, html};

use super::document::Document;
use super::samples::Sample;
use crate::pages::page::Page;

/// Path of the page below `/docs/`.
const PATH: &str = "try";

/// The page with the signed operations of the document; `None` if it has none.
pub(in crate::pages) fn page(document: &Document<'_>) -> Option<Page> {
    let operations = document.operations();
    let samples: Vec<Sample> = operations
        .iter()
        .map(|operation| Sample::new(document, operation))
        .filter(Sample::is_of_partner)
        .collect();
    (!samples.is_empty()).then(|| Page {
        path: PATH.to_owned(),
        name: "Try requests".to_owned(),
        keywords: "try it, sandbox, playground, send request".to_owned(),
        group: super::OVERVIEW.to_owned(),
        content: content(&samples),
        ..Page::default()
    })
}

fn content(samples: &[Sample]) -> Markup {
    html! {
        h1 id="try-requests" { "Try requests" }
        p { "This page signs a request in your browser and sends it to the sandbox that serves it. Type a key of the sandbox: it stays in the \
             memory of this page until you close or reload it, and goes nowhere but into the requests. The page needs HTTPS or \
             " code { "localhost" } "." }
        noscript { p { "The page needs JavaScript: the signature is computed in the browser." } }
        form #try autocomplete="off" {
            label { "API key" input name="key" required pattern="vs_sandbox_.+" placeholder="vs_sandbox_…" spellcheck="false"; }
            label { "API secret" input name="secret" type="password" required placeholder="vss_…" autocomplete="off"; }
            label {
                "Request"
                select name="operation" {
                    @for sample in samples {
                        option value=(sample.path) data-method=(sample.method) data-body=[sample.body.as_ref().map(|(_, body)| body)]
                            data-idempotent[sample.is_idempotent] data-signed[sample.is_signed()] {
                            (sample.method) " " (sample.relative_path())
                        }
                    }
                }
            }
            label { "Path" input name="path" required spellcheck="false"; }
            label { "Idempotency-Key" input name="idempotency" spellcheck="false"; }
            label { "Body" textarea name="body" rows="8" spellcheck="false" {} }
            button type="submit" { "Sign and send" }
        }
        section #answer aria-live="polite" hidden {
            h2 id="response" { "Response" }
            p #outcome {}
            figure.code { figcaption { span { "Headers" } } pre tabindex="0" { code #answer-headers {} } }
            figure.code { figcaption { span { "Body" } } pre tabindex="0" { code #answer-body {} } }
            h2 id="what-was-signed" { "What was signed" }
            figure.code { figcaption { span { "Message" } } pre tabindex="0" { code #signed {} } }
        }
        script src="/docs/try.js" defer {}
    }
}
