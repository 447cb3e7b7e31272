//! `vouchsafe credential`: is access handed out, shown and taken back as the API does it?

use serde_json::json;

use crate::commands::{run_error, run_ok, run_json};
use crate::support::unique;

#[tokio::test]
async fn access_is_handed_out_looked_at_and_taken_back() {
    let name = unique("Partner");
    let made = run_json(&["partner", "create", "--name", &name, "--allow", "127.0.0.1"]);
    let partner_id = made["partner_id"].as_str().unwrap();
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
    let text = run_ok(&["credential", "list", partner_id]);
    assert!(
        text.starts_with("CREDENTIAL") && text.contains(credential_id),
        "{text}"
    );
    assert!(!text.contains("vs_sandbox_"), "{text}");
    assert!(run_error(&["credential", "list", "nobody"]).contains("PARTNER_NOT_FOUND"));
}
