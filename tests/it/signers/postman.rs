//! Postman collection: signing script, successful requests.

use serde::Deserialize;
use serde_json::Value;

use super::programs::{DOCS, DocsWorkspace};
use vouchsafe_test_harness::shared;

const RUNNER_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/signers/postman.mjs");

/// A request of the collection and its response.
#[derive(Debug, Deserialize)]
struct SentRequest {
    method: String,
    path: String,
    status: u16,
    body: String,
}

fn collection() -> String {
    format!("{DOCS}/vouchsafe.postman_collection.json")
}

fn request_count() -> usize {
    let collection: Value = serde_json::from_slice(&std::fs::read(collection()).unwrap()).unwrap();
    let folders = collection["item"].as_array().unwrap().iter();
    folders
        .map(|folder| folder["item"].as_array().unwrap().len())
        .sum()
}

#[test]
fn postman_script_matches_every_test_vector() {
    let vectors = format!("{DOCS}/signers/vectors.json");
    let signed = DocsWorkspace::new().run("node", &[RUNNER_SCRIPT, &collection(), "sign", &vectors], "");
    assert_eq!(signed, format!("{} signed\n", super::vectors().len()));
}

#[test]
fn postman_requests_succeed() {
    let service = shared();
    let workspace = DocsWorkspace::with_service(service);
    let (key, secret) = (workspace.api_key(), workspace.api_secret());
    let variables = [("API_KEY", key.as_str()), ("API_SECRET", secret.as_str())];
    let arguments = [RUNNER_SCRIPT, &collection(), "send", &service.base_url()];
    let printed = workspace.run_with("node", &arguments, &variables, "");
    let sent: Vec<SentRequest> = serde_json::from_str(&printed).unwrap();
    assert_eq!(sent.len(), request_count());
    for SentRequest {
        method,
        path,
        status,
        body,
    } in sent
    {
        assert!((200..300).contains(&status), "{method} {path}: {status} {body}");
    }
}
