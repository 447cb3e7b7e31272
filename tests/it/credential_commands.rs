//! `vouchsafe credential`: issue, list and revoke.

use serde_json::json;

use crate::commands::{run, run_error, run_json, run_ok, utf8};
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
    let (old, new) = (
        directory.path().join("old.json"),
        directory.path().join("new.json"),
    );
    let mut credential = created["credential"].clone();
    credential["partner_id"] = created["partner_id"].clone();
    std::fs::write(&old, credential.to_string()).unwrap();
    let call = |file: &std::path::Path, arguments: &[&str]| {
        let file = file.to_str().unwrap();
        run(&[&["call", "--json", "--credentials", file], arguments].concat())
    };
    let rotated = call(
        &old,
        &["POST", "/credentials/rotate", r#"{"overlap_seconds":600}"#],
    );
    let (response, notes) = (utf8(&rotated.stdout), utf8(&rotated.stderr));
    let end = serde_json::from_str::<serde_json::Value>(&response).unwrap()["previous_expires_at"].clone();
    assert!(
        notes.contains("--credentials FILE") && notes.contains(end.as_str().unwrap()),
        "{notes}"
    );
    assert!(
        notes.contains(old.to_str().unwrap()) && !notes.contains("vss_"),
        "{notes}"
    );
    // The response is a credentials file.
    std::fs::write(&new, response).unwrap();
    assert!(call(&new, &["GET", "/wallets"]).status.success());
    run_ok(&[
        "credential",
        "revoke",
        credential["credential_id"].as_str().unwrap(),
    ]);
    let refused = call(&old, &["GET", "/wallets"]);
    let notes = utf8(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{notes}");
    let issue = format!(
        "vouchsafe credential issue {} --json",
        created["partner_id"].as_str().unwrap()
    );
    assert!(
        notes.contains(&issue) && notes.contains("no longer work"),
        "{notes}"
    );
}
