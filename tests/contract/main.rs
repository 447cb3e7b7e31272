//! Do people's tools get along with the served documents? A fuzzer asks for everything that they promise, and a client
//! that was generated from them places an order.
//!
//! Both are Python programs of others, pinned in `requirements.txt` and kept below `target`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends where it cannot go on"
)]

mod python;

#[path = "../it/support/wait.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod wait;
#[path = "../it/support/service.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod service;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use vouchsafe_load::partner::PartnerClient;
use vouchsafe_load::signer::Credentials;

use self::python::Python;
use self::service::Instance;

/// Where the programs of this suite are.
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract");

/// What chance the fuzzer has: the same in every run, so that a finding comes again.
const SEED: &str = "20261121";

/// How long the fuzzer looks for findings in the partner's document. Seconds.
const PARTNER_TIME_S: &str = "60";

/// How long the fuzzer looks for findings in the operator's document. Seconds.
const OPERATOR_TIME_S: &str = "40";

/// More than any run asks for: what is looked at here is not the limits.
const NO_LIMIT: &str = "1000000/60";

/// A service whose limits are far away.
fn start() -> Instance {
    Instance::start_with(&[
        ("VOUCHSAFE_LIMIT_ORDERS", NO_LIMIT),
        ("VOUCHSAFE_LIMIT_GENERAL", NO_LIMIT),
        ("VOUCHSAFE_LIMIT_AUTH", NO_LIMIT),
        ("VOUCHSAFE_LIMIT_VOUCHERS", NO_LIMIT),
    ])
}

/// Key and secret of the sandbox's partner.
fn credentials(service: &Instance) -> (String, String) {
    let file = std::fs::read(service.data_dir().join("sandbox-partner.json")).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    let text = |name: &str| file[name].as_str().unwrap().to_owned();
    (text("api_key"), text("api_secret"))
}

/// A program with the credentials of the sandbox's partner in its environment.
fn with_partner_credentials(mut command: Command, service: &Instance) -> Command {
    let (api_key, api_secret) = credentials(service);
    command
        .env("VOUCHSAFE_API_KEY", api_key)
        .env("VOUCHSAFE_API_SECRET", api_secret);
    command
}

/// Ends well, or shows what it said.
fn run_ok(mut command: Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{said}\n{complained}");
}

/// The fuzzer over the document at this URL.
fn fuzz(python: &Python, scratch: &Path, listener: &str, url: &str, time_s: &str) -> Command {
    eprintln!("schemathesis over the {listener}'s document, seed {SEED}, {time_s} s");
    let mut command = python.program("schemathesis", scratch);
    command
        .arg("--config-file")
        .arg(format!("{HERE}/{listener}.toml"));
    command.args(["run", &format!("{url}/openapi.json")]);
    // All checks run when none is named. Naming them, be it as `all`, would overrule what the file says of single operations.
    command.args(["--seed", SEED, "--max-time", time_s, "--no-color"]);
    command.env("SCHEMATHESIS_HOOKS", "hooks");
    command
}

#[tokio::test]
async fn the_partners_document_holds_whatever_is_asked() {
    let service = start();
    let scratch = tempfile::tempdir().unwrap();
    let url = format!("http://{}", service.http_address());
    let fuzzer = fuzz(Python::get(), scratch.path(), "partner", &url, PARTNER_TIME_S);
    run_ok(with_partner_credentials(fuzzer, &service));
    service.assert_verified();
    // It asked for more than refusals.
    let (api_key, api_secret) = credentials(&service);
    let credentials = Credentials::new(&api_key, &api_secret).unwrap();
    let mut partner = PartnerClient::new(&service.base_url(), credentials).unwrap();
    for kind in ["DEBIT", "PAYOUT"] {
        let path = format!("/transactions?type={kind}");
        let found: Value = partner.get(&path).await.unwrap().json().unwrap();
        assert_eq!(found["data"][0]["type"], kind, "{found:#}");
    }
}

#[test]
fn the_operators_document_holds_whatever_is_asked() {
    let service = start();
    let scratch = tempfile::tempdir().unwrap();
    let token = std::fs::read_to_string(service.data_dir().join("operator-token")).unwrap();
    let url = service.admin_url();
    let mut fuzzer = fuzz(Python::get(), scratch.path(), "operator", &url, OPERATOR_TIME_S);
    fuzzer.env("OPERATOR_TOKEN", token.trim());
    run_ok(fuzzer);
    service.assert_verified();
}

#[test]
fn a_generated_client_places_an_order() {
    let service = start();
    let scratch = tempfile::tempdir().unwrap();
    let url = format!("http://{}", service.http_address());
    let mut generator = Python::get().program("openapi-python-client", scratch.path());
    generator.args([
        "generate",
        "--url",
        &format!("{url}/openapi.json"),
        "--meta",
        "none",
    ]);
    generator
        .arg("--output-path")
        .arg(scratch.path().join("vouchsafe_client"));
    generator.args(["--config", &format!("{HERE}/generator.yaml"), "--fail-on-warning"]);
    run_ok(generator);
    let mut order = Python::get().program("python", scratch.path());
    order
        .arg(format!("{HERE}/order.py"))
        .arg(&url)
        .arg(scratch.path());
    run_ok(with_partner_credentials(order, &service));
    service.assert_verified();
}
