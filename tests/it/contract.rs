//! OpenAPI contract tests with third-party tools: a fuzzer checks the served documents, and a generated client places an
//! order.
//!
//! Both tools are Python programs, pinned in `requirements.txt` and installed below `target`.

pub(crate) mod python;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_test_harness::Instance;

use self::python::Python;

/// Directory of this suite.
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/contract");

/// Fixed, so that findings are reproducible.
const SEED: &str = "20261121";

/// Duration of the partner run. Seconds.
const PARTNER_TIME_S: &str = "60";

/// Duration of the operator run. Seconds.
const OPERATOR_TIME_S: &str = "40";

/// Returns key and secret of the sandbox partner.
fn credentials(service: &Instance) -> (String, String) {
    let file = std::fs::read(service.data_dir().join("sandbox-partner.json")).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    let text = |name: &str| file[name].as_str().unwrap().to_owned();
    (text("api_key"), text("api_secret"))
}

/// Adds the sandbox partner's credentials to the environment.
fn with_partner_credentials(mut command: Command, service: &Instance) -> Command {
    let (api_key, api_secret) = credentials(service);
    command
        .env("VOUCHSAFE_API_KEY", api_key)
        .env("VOUCHSAFE_API_SECRET", api_secret);
    command
}

/// Asserts success; prints the output otherwise.
fn run_ok(mut command: Command) {
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{stdout}\n{stderr}");
}

/// Returns the fuzzer command for the document at this URL.
fn fuzz(python: &Python, scratch: &Path, listener: &str, url: &str, time_s: &str) -> Command {
    eprintln!("schemathesis over the {listener}'s document, seed {SEED}, {time_s} s");
    let mut command = python.program("schemathesis", scratch);
    command
        .arg("--config-file")
        .arg(format!("{HERE}/{listener}.toml"));
    command.args(["run", &format!("{url}/openapi.json")]);
    // All checks run if none is named. Naming them, even as `all`, would override the file's settings for single operations.
    command.args(["--seed", SEED, "--max-time", time_s, "--no-color"]);
    command.env("SCHEMATHESIS_HOOKS", "hooks");
    command
}

#[tokio::test]
async fn partner_document_fuzzed_matches_responses() {
    let service = Instance::start();
    let scratch = tempfile::tempdir().unwrap();
    let url = format!("http://{}", service.http_address());
    let fuzzer = fuzz(&Python::of(HERE), scratch.path(), "partner", &url, PARTNER_TIME_S);
    run_ok(with_partner_credentials(fuzzer, &service));
    service.assert_verified();
    // The fuzzer must have reached successful operations.
    let (api_key, api_secret) = credentials(&service);
    let credentials = Credentials::new(&api_key, &api_secret).unwrap();
    let mut partner = PartnerClient::new(&service.base_url(), credentials).unwrap();
    for kind in ["DEBIT", "PAYOUT"] {
        let path = format!("/transactions?type={kind}");
        let list: Value = partner.get(&path).await.unwrap().json().unwrap();
        assert_eq!(list["data"][0]["type"], kind, "{list:#}");
    }
}

#[test]
fn operator_document_fuzzed_matches_responses() {
    let service = Instance::start();
    let scratch = tempfile::tempdir().unwrap();
    let token = service.operator_token();
    let url = service.admin_url();
    let mut fuzzer = fuzz(
        &Python::of(HERE),
        scratch.path(),
        "operator",
        &url,
        OPERATOR_TIME_S,
    );
    fuzzer.env("OPERATOR_TOKEN", token);
    run_ok(fuzzer);
    service.assert_verified();
}

#[test]
fn generated_client_places_order() {
    let service = Instance::start();
    let scratch = tempfile::tempdir().unwrap();
    let url = format!("http://{}", service.http_address());
    let mut generator = Python::of(HERE).program("openapi-python-client", scratch.path());
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
    let mut order = Python::of(HERE).program("python", scratch.path());
    order
        .arg(format!("{HERE}/order.py"))
        .arg(&url)
        .arg(scratch.path());
    run_ok(with_partner_credentials(order, &service));
    service.assert_verified();
}
