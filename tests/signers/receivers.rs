//! The receivers that the documentation shows, and the libraries of Standard Webhooks, against vectors and what is really sent.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::wait::{WAIT_TIMEOUT, wait_until};
use crate::programs::{DOCS, DocsWorkspace};
use crate::python::Python;
use crate::receiver::{ReceivedEvent, Receiver};
use crate::rust_receiver;
use crate::service;

/// The version of the JavaScript library that is asked.
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
    assert!(vectors.iter().any(|one| one.genuine) && vectors.iter().any(|one| !one.genuine));
    vectors
}

/// How each receiver but the one in Rust is run.
fn receiver_programs(place: &DocsWorkspace) -> [(&'static str, Vec<String>); 4] {
    let source = |file: &str| format!("{DOCS}/receivers/{file}");
    let classes = place.path().to_str().unwrap().to_owned();
    place.run("javac", &["-d", &classes, &source("Verify.java")], "");
    [
        ("bash", vec![source("verify.sh")]),
        ("python3", vec![source("verify.py")]),
        ("node", vec![source("verify.mjs")]),
        ("java", vec!["-cp".to_owned(), classes, "Verify".to_owned()]),
    ]
}

#[test]
fn each_receiver_knows_what_is_genuine() {
    let place = DocsWorkspace::new();
    for (program, arguments) in receiver_programs(&place) {
        for vector in vectors() {
            let own = arguments.iter().map(String::as_str);
            let given = [
                vector.webhook_id.as_str(),
                &vector.webhook_timestamp,
                &vector.webhook_signature,
                &vector.now,
            ];
            let all: Vec<&str> = own.chain(given).collect();
            let secret = [("VOUCHSAFE_WEBHOOK_SECRET", vector.secret.as_str())];
            let ended = place.is_successful(program, &all, &secret, &vector.body);
            assert_eq!(ended, vector.genuine, "{program}: {}", vector.name);
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

/// Registers an endpoint at the shared service, has an order placed, and gives the secret and what came.
fn deliver_order_events(place: &DocsWorkspace) -> (String, Vec<ReceivedEvent>) {
    let receiver = Receiver::new();
    let call = |path: &str, body: &Value| -> Value {
        let body = body.to_string();
        let sign = format!("{DOCS}/signers/sign.py");
        let secret = place.api_secret();
        let variables = [("VOUCHSAFE_API_SECRET", secret.as_str())];
        let full = format!("/api/v1{path}");
        let headers = place.run_with("python3", &[&sign, "POST", &full], &variables, &body);
        let url = format!("{}{path}", service::shared().base_url());
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
        serde_json::from_str(&place.run("curl", &arguments, &headers)).unwrap()
    };
    let made = call("/webhooks", &json!({ "url": receiver.url() }));
    let order: Value = serde_json::from_str(crate::ORDER).unwrap();
    assert_eq!(call("/orders", &order)["status"], "DELIVERED");
    let heard = wait_until("the events of the order", WAIT_TIMEOUT, || {
        Some(receiver.received()).filter(|heard| heard.len() >= 3)
    });
    (made["secret"].as_str().unwrap().to_owned(), heard)
}

#[test]
fn the_libraries_of_standard_webhooks_accept_what_is_sent() {
    let place = DocsWorkspace::with_service(service::shared());
    let (secret, heard) = deliver_order_events(&place);
    let library = install_javascript_library(&place);
    let here = crate::HERE;
    for one in heard {
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let headers: Value = names
            .iter()
            .map(|name| ((*name).to_owned(), json!(one.headers[*name])))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let headers = headers.to_string();
        let variables = [("SECRET", secret.as_str())];
        let python = Python::get().program_path("python");
        let said = place.run_with(
            python.to_str().unwrap(),
            &[&format!("{here}/standard.py"), &headers],
            &variables,
            &one.body_text,
        );
        assert_eq!(said.trim(), one.event_id());
        let script = format!("{here}/standard.mjs");
        let directory = library.to_str().unwrap();
        let said = place.run_with("node", &[&script, directory, &headers], &variables, &one.body_text);
        assert_eq!(said.trim(), one.event_id());
    }
}

#[test]
fn both_signatures_of_a_vector_are_those_that_are_sent() {
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

/// The library, from its registry: fetched once, and kept.
fn install_javascript_library(place: &DocsWorkspace) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(JAVASCRIPT_LIBRARY);
    let lock = File::create(home.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !home.join("node_modules/standardwebhooks").exists() {
        std::fs::create_dir_all(&home).unwrap();
        let directory = home.to_str().unwrap();
        let quiet = ["install", "--no-audit", "--no-fund", "--prefix"];
        place.run("npm", &[&quiet[..], &[directory, JAVASCRIPT_LIBRARY]].concat(), "");
    }
    home
}
