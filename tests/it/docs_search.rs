//! The documentation in use: what readers ask the search for leads to its guide, and a Java sample compiles.

use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderMap;
use vouchsafe_api_client::Client;
use vouchsafe_api_client::origin::Origin;
use vouchsafe_test_harness::{shared, text_of};

use crate::signers::programs::{DOCS, DocsWorkspace};

/// Prints the address of the best result of each argument.
const RUN: &str = "
import { readFileSync } from 'node:fs';
import { runInThisContext } from 'node:vm';
runInThisContext(readFileSync('search.js', 'utf8') + ';globalThis.search = (index, query) => findEntries(index, searchWords(query))');
const index = JSON.parse(readFileSync('search.json', 'utf8'));
for (const query of process.argv.slice(2)) console.log(search(index, query)[0]?.[0]);
";

async fn read(file: &str) -> String {
    let mut client = Client::new(Origin::parse(&format!("http://{}", shared().http_address())).unwrap());
    let path = format!("/docs/{file}");
    let response = client.call(Method::GET, &path, HeaderMap::new(), Bytes::new());
    text_of(&response.await.unwrap()).to_owned()
}

#[tokio::test]
async fn common_questions_lead_to_their_guide() {
    let workspace = DocsWorkspace::new();
    for file in ["search.js", "search.json"] {
        std::fs::write(workspace.path().join(file), read(file).await).unwrap();
    }
    std::fs::write(workspace.path().join("run.mjs"), RUN).unwrap();
    let expected = [
        ("refund", "/docs/orders#cancel-an-order"),
        ("refunds", "/docs/orders#cancel-an-order"),
        ("how to cancel", "/docs/orders#cancel-an-order"),
        ("how do I cancel an order", "/docs/orders#cancel-an-order"),
        ("webhook signature", "/docs/webhooks#verify-deliveries"),
        ("verify a webhook", "/docs/webhooks#verify-deliveries"),
        ("signing", "/docs/signing"),
        ("rate limit", "/docs/limits#request-rates"),
        ("pagination", "/docs/lists#pagination"),
        ("balance", "/docs/money#wallets"),
        ("cancel payout", "/docs/payouts#cancel-a-payout"),
    ];
    let mut arguments = vec!["run.mjs"];
    arguments.extend(expected.iter().map(|(query, _)| *query));
    let found = workspace.run("node", &arguments, "");
    let queries = expected.iter().map(|(query, _)| *query);
    let found: Vec<_> = queries.zip(found.lines()).collect();
    assert_eq!(found, expected);
}

/// The code of the first tab of a language on a page, without its markup.
fn sample(html: &str, language: &str) -> String {
    let tab = html
        .split_once(&format!("data-language=\"{language}\""))
        .unwrap()
        .1;
    let code = tab
        .split_once("<code")
        .unwrap()
        .1
        .split_once("</code>")
        .unwrap()
        .0;
    let text = code
        .split('<')
        .map(|piece| piece.split_once('>').map_or("", |(_, text)| text));
    let text: String = text.collect();
    let characters = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    characters
        .iter()
        .fold(text, |text, (escape, character)| text.replace(escape, character))
}

#[tokio::test]
async fn java_samples_compile() {
    let workspace = DocsWorkspace::new();
    let signer = format!("{DOCS}/signers/Sign.java");
    for operation in ["placeOrder", "listOrders", "cancelOrder", "requestPayout"] {
        let html = read(&format!("reference/{operation}")).await;
        let example = workspace.path().join("Example.java");
        std::fs::write(&example, sample(&html, "java")).unwrap();
        workspace.run(
            "javac",
            &["-d", "classes", &signer, example.to_str().unwrap()],
            "",
        );
    }
}
