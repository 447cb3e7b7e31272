//! `vouchsafe credential`: issue, list and revoke.

use serde_json::json;

use crate::commands::{run_error, run_json, run_ok};
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
