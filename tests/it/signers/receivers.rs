//! Receivers of the documentation, against test vectors.

use serde::Deserialize;

use super::programs::{DOCS, DocsWorkspace};
use super::rust_receiver;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    name: String,
    secret: String,
    webhook_id: String,
    webhook_timestamp: String,
    webhook_signature: String,
    x_signature: String,
    now: String,
    body: String,
    genuine: bool,
}

fn vectors() -> Vec<Vector> {
    let text = std::fs::read_to_string(format!("{DOCS}/receivers/vectors.json")).unwrap();
    let vectors: Vec<Vector> = serde_json::from_str(&text).unwrap();
    assert!(vectors.iter().any(|event| event.genuine) && vectors.iter().any(|event| !event.genuine));
    vectors
}

/// Returns program and arguments of each receiver except the Rust one.
fn receiver_programs(workspace: &DocsWorkspace) -> [(&'static str, Vec<String>); 4] {
    let source = |file: &str| format!("{DOCS}/receivers/{file}");
    let classes = workspace.path().to_str().unwrap().to_owned();
    workspace.run("javac", &["-d", &classes, &source("Verify.java")], "");
    [
        ("bash", vec![source("verify.sh")]),
        ("python3", vec![source("verify.py")]),
        ("node", vec![source("verify.mjs")]),
        ("java", vec!["-cp".to_owned(), classes, "Verify".to_owned()]),
    ]
}

#[test]
fn receivers_accept_only_valid_vectors() {
    let workspace = DocsWorkspace::new();
    for (program, arguments) in receiver_programs(&workspace) {
        for vector in vectors() {
            let leading = arguments.iter().map(String::as_str);
            let headers_and_time = [
                vector.webhook_id.as_str(),
                &vector.webhook_timestamp,
                &vector.webhook_signature,
                &vector.now,
            ];
            let all: Vec<&str> = leading.chain(headers_and_time).collect();
            let secret = [("VOUCHSAFE_WEBHOOK_SECRET", vector.secret.as_str())];
            let is_accepted = workspace.is_accepted(program, &all, &secret, &vector.body);
            assert_eq!(is_accepted, vector.genuine, "{program}: {}", vector.name);
        }
    }
    for vector in vectors() {
        let headers = [
            vector.webhook_id.as_str(),
            &vector.webhook_timestamp,
            &vector.webhook_signature,
        ];
        let now = vector.now.parse().unwrap();
        let genuine = rust_receiver::verify(&vector.secret, headers, vector.body.as_bytes(), now).unwrap();
        assert_eq!(genuine, vector.genuine, "rust: {}", vector.name);
    }
}

#[test]
fn vector_signatures_are_consistent() {
    for vector in vectors().into_iter().filter(|vector| vector.genuine) {
        assert!(
            vector
                .x_signature
                .starts_with(&format!("t={},v1=", vector.webhook_timestamp))
        );
        let count = |text: &str| text.matches("v1").count();
        assert_eq!(count(&vector.x_signature), count(&vector.webhook_signature));
    }
}
