//! `vouchsafe credential`: issue, list and revoke.

use serde_json::{Value, json};

use crate::commands::{run, run_error, run_json, run_ok, utf8};
use vouchsafe_private_postgres::write_private;
use vouchsafe_test_harness::unique;

#[tokio::test]
async fn credential_commands_issue_list_and_revoke() {
    let name = unique("Partner");
    let created = run_json(&["partner", "create", "--name", &name, "--allow", "127.0.0.1"]);
    let partner_id = created["partner_id"].as_str().unwrap();
    let issued = run_json(&["credential", "issue", partner_id, "--allow", "127.0.0.2"]);
    let credential_id = issued["credential_id"].as_str().unwrap();
    run_ok(&["credential", "revoke", credential_id]);
    let listed = run_json(&["credential", "list", partner_id]);
    let [second, first] = &listed["data"].as_array().unwrap()[..] else {
        panic!("{listed}")
    };
    assert_eq!(
        (&second["credential_id"], &second["live"], &first["live"]),
        (&issued["credential_id"], &json!(false), &json!(true))
    );
    assert_eq!(second["allowlist"], json!(["127.0.0.2/32"]));
    let table = run_ok(&["credential", "list", partner_id]);
    assert!(
        table.starts_with("CREDENTIAL") && table.contains(credential_id),
        "{table}"
    );
    assert!(!table.contains("vs_sandbox_"), "{table}");
    assert!(run_error(&["credential", "list", "nobody"]).contains("PARTNER_NOT_FOUND"));
}

#[tokio::test]
async fn call_after_rotation_says_which_credentials_are_old() {
    let created = run_json(&[
        "partner",
        "create",
        "--name",
        &unique("Partner"),
        "--allow",
        "127.0.0.1",
    ]);
    let directory = tempfile::tempdir().unwrap();
    let [stored, new] = ["sandbox-partner.json", "new.json"].map(|name| directory.path().join(name));
    let mut credential = created["credential"].clone();
    credential["partner_id"] = created["partner_id"].clone();
    write_private(&stored, &credential.to_string()).unwrap();
    let call = |arguments: &[&str]| {
        let data_dir = directory.path().to_str().unwrap();
        let output = run(&[&["--json", "--data-dir", data_dir, "call"], arguments].concat());
        (output.status.code(), utf8(&output.stdout), utf8(&output.stderr))
    };
    let (_, _, notes) = call(&["GET", "/wallets"]);
    assert_eq!(notes, "");
    let (_, response, notes) = call(&["POST", "/credentials/rotate", r#"{"overlap_seconds":600}"#]);
    let rotated: Value = serde_json::from_str(&response).unwrap();
    let end = rotated["previous_expires_at"].as_str().unwrap();
    assert!(
        notes.contains("--credentials FILE") && notes.contains(end),
        "{notes}"
    );
    assert!(
        notes.contains(stored.to_str().unwrap()) && !notes.contains("vss_"),
        "{notes}"
    );
    // During the overlap the stored credentials work, and the command says that they end.
    let (code, _, notes) = call(&["GET", "/wallets"]);
    assert_eq!(code, Some(0));
    assert!(
        notes.contains("were rotated and end at") && notes.contains(end),
        "{notes}"
    );
    // The response is a credentials file.
    write_private(&new, &response).unwrap();
    let (code, _, notes) = call(&["--credentials", new.to_str().unwrap(), "GET", "/wallets"]);
    assert_eq!((code, notes.as_str()), (Some(0), ""));
    run_ok(&[
        "credential",
        "revoke",
        credential["credential_id"].as_str().unwrap(),
    ]);
    let (code, _, notes) = call(&["GET", "/wallets"]);
    let issue = format!(
        "vouchsafe credential issue {} --json",
        created["partner_id"].as_str().unwrap()
    );
    assert_eq!(code, Some(1));
    assert!(
        notes.contains(&issue) && notes.contains("no longer work"),
        "{notes}"
    );
}
