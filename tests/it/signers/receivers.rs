//! Receivers of the documentation and the Standard Webhooks libraries, against test vectors and real deliveries.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::programs::{DOCS, DocsWorkspace};
use super::rust_receiver;
use super::python::Python;
use vouchsafe_test_harness::{ReceivedEvent, Receiver, WAIT_TIMEOUT, shared, wait_until};

const JAVASCRIPT_LIBRARY: &str = "standardwebhooks@1.0.0";

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
            let is_accepted = workspace.is_successful(program, &all, &secret, &vector.body);
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

/// Registers an endpoint at the shared service, places an order and returns the secret and the received events.
fn deliver_order_events(workspace: &DocsWorkspace) -> (String, Vec<ReceivedEvent>) {
    let receiver = Receiver::start();
    let call = |path: &str, body: &Value| -> Value {
        let body = body.to_string();
        let sign = format!("{DOCS}/signers/sign.py");
        let secret = workspace.api_secret();
        let variables = [("VOUCHSAFE_API_SECRET", secret.as_str())];
        let full = format!("/api/v1{path}");
        let headers = workspace.run_with("python3", &[&sign, "POST", &full], &variables, &body);
        let url = format!("{}{path}", shared().base_url());
        let key = format!("Idempotency-Key: {}", receiver.url());
        let arguments = [
            "-sS",
            &url,
            "-H",
            "@-",
            "-H",
            "@partner.headers",
            "-H",
            "Content-Type: application/json",
            "-H",
            &key,
            "--data-binary",
            &body,
        ];
        serde_json::from_str(&workspace.run("curl", &arguments, &headers)).unwrap()
    };
    let webhook = call("/webhooks", &json!({ "url": receiver.url() }));
    let order: Value = serde_json::from_str(super::ORDER).unwrap();
    assert_eq!(call("/orders", &order)["status"], "DELIVERED");
    let events = wait_until("the events of the order", WAIT_TIMEOUT, || {
        Some(receiver.received()).filter(|events| events.len() >= 3)
    });
    (webhook["secret"].as_str().unwrap().to_owned(), events)
}

#[test]
fn standard_webhooks_libraries_accept_deliveries() {
    let workspace = DocsWorkspace::with_service(shared());
    let (secret, events) = deliver_order_events(&workspace);
    let library = install_javascript_library(&workspace);
    let here = super::HERE;
    for event in events {
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let headers: Value = names
            .iter()
            .map(|name| ((*name).to_owned(), json!(event.headers[*name])))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let headers = headers.to_string();
        let variables = [("SECRET", secret.as_str())];
        let python = Python::of(here).program_path("python");
        let output = workspace.run_with(
            python.to_str().unwrap(),
            &[&format!("{here}/standard.py"), &headers],
            &variables,
            &event.body_text,
        );
        assert_eq!(output.trim(), event.event_id());
        let script = format!("{here}/standard.mjs");
        let directory = library.to_str().unwrap();
        let output = workspace.run_with(
            "node",
            &[&script, directory, &headers],
            &variables,
            &event.body_text,
        );
        assert_eq!(output.trim(), event.event_id());
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

/// Installs the library once and returns its directory.
fn install_javascript_library(workspace: &DocsWorkspace) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(JAVASCRIPT_LIBRARY);
    let lock = File::create(directory.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !directory.join("node_modules/standardwebhooks").exists() {
        std::fs::create_dir_all(&directory).unwrap();
        let directory = directory.to_str().unwrap();
        let quiet = ["install", "--no-audit", "--no-fund", "--prefix"];
        workspace.run(
            "npm",
            &[&quiet[..], &[directory, JAVASCRIPT_LIBRARY]].concat(),
            "",
        );
    }
    directory
}
