//! Tests of the `load` command line: exit codes, reports, error messages.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::fake::{Defect, FakeService};
use crate::signature::{KEY, SECRET};

fn load(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_load"))
        .args(arguments)
        .output()
        .unwrap()
}

fn write_credentials(dir: &Path) -> PathBuf {
    let file = dir.join("sandbox-partner.json");
    let text = format!(r#"{{"partner_id":"ptn_1","api_key":"{KEY}","api_secret":"{SECRET}"}}"#);
    std::fs::write(&file, text).unwrap();
    file
}

fn run(dir: &Path, defect: Defect) -> Output {
    let credentials = write_credentials(dir);
    let service = FakeService::start(defect);
    let (credentials, json) = (credentials.to_str().unwrap(), dir.join("report.json"));
    load(&[
        "run",
        "--url",
        &service.url,
        "--credentials",
        credentials,
        "--connections",
        "4",
        "--threads",
        "2",
        "--orders",
        "50",
        "--warmup",
        "0",
        "--json",
        json.to_str().unwrap(),
        "--hlog",
        dir.join("run.hlog").to_str().unwrap(),
    ])
}

#[test]
fn audited_run_succeeds_and_writes_json() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), Defect::None);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("audit: passed") && text.contains("outcomes: 201 × 50"),
        "{text}"
    );
    let json = std::fs::read(dir.path().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let run = &report["runs"][0];
    assert_eq!(run["orders"], 50);
    assert_eq!(run["outcomes"]["201"], 50);
    assert!(run["latency_ms"]["p99"].as_f64().unwrap() > 0.0);
    assert_eq!(run["audit"]["checks"][5]["name"], "wallet");
    assert_eq!(run["audit"]["checks"][6]["name"], "listed");
    assert!(run["conditions"]["cores"].as_u64().unwrap() > 0);
    assert!(text.contains("JSON report: "), "{text}");
    let histograms = std::fs::read_to_string(dir.path().join("run.hlog")).unwrap();
    assert!(
        histograms.contains("\nTag=load-run:order,0.000,") && histograms.contains(",HISTF"),
        "{histograms}"
    );
}

#[test]
fn invalid_scenario_exits_with_2() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("nothing.json");
    std::fs::write(&file, "{}").unwrap();
    let hot = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/hot-sku.json");
    for (arguments, message) in [
        (
            vec!["scenario", file.to_str().unwrap()],
            "nothing.json`: the file is not a valid scenario",
        ),
        (
            vec!["scenario", hot, "--rate", "10"],
            "--rate needs a scenario with an open loop",
        ),
        (
            vec!["scenario", hot, "--seconds", "0"],
            "seconds must be at least 1",
        ),
        (
            vec!["scenario", hot, "--program", "/nonexistent/vouchsafe"],
            "cannot start `/nonexistent/vouchsafe`",
        ),
        (
            vec!["scenario", hot, "--baseline", file.to_str().unwrap()],
            "is not a JSON report",
        ),
        (
            vec!["scenario", hot, "--fail-if", "service_cpu>1.05"],
            "--baseline <FILE>",
        ),
        (
            vec!["scenario", hot, "--threshold", "p99=5"],
            "`p99=5` is not a condition",
        ),
        (
            vec!["scenario", hot, "--json", "/nonexistent/run.json"],
            "cannot write `/nonexistent/run.json`",
        ),
        (
            vec![
                "scenario",
                hot,
                "--json",
                file.to_str().unwrap(),
                "--baseline",
                file.to_str().unwrap(),
            ],
            "would overwrite",
        ),
        (
            vec!["scenario", hot, "--html", "run.out", "--json", "run.out"],
            "two reports name the file `run.out`",
        ),
    ] {
        let output = load(&arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}

#[test]
fn failed_audit_exits_with_1() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), Defect::SellsVoucherTwice);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("FAILED vouchers unique: 1 repeated, for example vch_0000"),
        "{text}"
    );
}

#[test]
fn unusable_arguments_exit_with_2() {
    let output = load(&["run", "--credentials", "/nonexistent/partner.json"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("`/nonexistent/partner.json`: cannot read the credentials file"),
        "{error}"
    );
    assert_eq!(
        load(&["run", "--credentials", "x", "--connections", "0"])
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn refused_connection_names_the_url() {
    let dir = tempfile::tempdir().unwrap();
    let credentials = write_credentials(dir.path());
    // No service listens on the reserved port 1.
    let url = "http://127.0.0.1:1/api/v1";
    let output = load(&[
        "run",
        "--url",
        url,
        "--credentials",
        credentials.to_str().unwrap(),
    ]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("cannot connect to http://127.0.0.1:1/api/v1: "),
        "{error}"
    );
}
