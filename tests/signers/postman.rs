//! Postman collection: signing script, route coverage, successful requests.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::programs::{DOCS, DocsWorkspace};
use crate::service;

const RUNNER_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/signers/postman.mjs");

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

/// Returns the routes below `/api/v1` from the route table's source.
fn routes() -> BTreeSet<(String, String)> {
    let table =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/partner/mod.rs")).unwrap();
    let api = table.split("web::scope(\"/api/v1\")").nth(1).unwrap();
    let resources = api.split("resource(").skip(1);
    let listed = resources.filter_map(|resource| {
        let mut literals = resource.split('"').skip(1).step_by(2);
        Some((literals.next()?, literals.next()?))
    });
    let listed = listed.filter(|(path, _)| path.starts_with('/'));
    let routes: BTreeSet<_> = listed
        .flat_map(|(path, methods)| {
            methods
                .split(", ")
                .map(move |method| (method.to_owned(), path.to_owned()))
        })
        .collect();
    assert!(routes.len() >= 8, "only {routes:?} were found");
    routes
}

/// Returns the collection's requests as routes.
fn requests() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(collection()).unwrap();
    let collection: Value = serde_json::from_str(&text).unwrap();
    let folders = collection["item"].as_array().unwrap();
    let items = folders
        .iter()
        .flat_map(|folder| folder["item"].as_array().unwrap());
    let request = |item: &Value| {
        let url = item["request"]["url"].as_str().unwrap();
        (
            item["request"]["method"].as_str().unwrap().to_owned(),
            route_of(url),
        )
    };
    items.map(request).collect()
}

fn route_of(url: &str) -> String {
    let path = url
        .strip_prefix("{{base_url}}")
        .unwrap()
        .split('?')
        .next()
        .unwrap();
    path.replace("{{", "{").replace("}}", "}")
}

#[test]
fn postman_collection_covers_every_route() {
    let requests = BTreeSet::from_iter(requests());
    let routes = routes();
    let missing: Vec<_> = routes.difference(&requests).collect();
    assert!(
        missing.is_empty(),
        "the collection has no request for {missing:?}"
    );
    let unknown: Vec<_> = requests.difference(&routes).collect();
    assert!(
        unknown.is_empty(),
        "the collection has requests without a route: {unknown:?}"
    );
}

#[test]
fn postman_script_matches_every_test_vector() {
    let vectors = format!("{DOCS}/signers/vectors.json");
    let signed = DocsWorkspace::new().run("node", &[RUNNER_SCRIPT, &collection(), "sign", &vectors], "");
    assert_eq!(signed, format!("{} signed\n", crate::vectors().len()));
}

#[test]
fn postman_requests_succeed() {
    let service = service::shared();
    let workspace = DocsWorkspace::with_service(service);
    let (key, secret) = (workspace.api_key(), workspace.api_secret());
    let variables = [("API_KEY", key.as_str()), ("API_SECRET", secret.as_str())];
    let arguments = [RUNNER_SCRIPT, &collection(), "send", &service.base_url()];
    let printed = workspace.run_with("node", &arguments, &variables, "");
    let sent: Vec<SentRequest> = serde_json::from_str(&printed).unwrap();
    assert_eq!(sent.len(), requests().len());
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
