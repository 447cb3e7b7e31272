//! Revocations of credentials whose rows, or audit entries, a user of the service's database role has
//! changed: all nodes apply them.

use hyper::Method;
use serde_json::json;
use vouchsafe_test_harness::{Operator, ServiceDatabase, expect_error};

use crate::multi_node::{start_two_nodes, wait_for_status};

/// A node finds a revoked credential by its key. A database user who changes the key of the row must not keep
/// the credential alive at the nodes that hear of its revocation from the database.
#[tokio::test(flavor = "multi_thread")]
async fn revocation_of_a_credential_with_a_changed_key_applies_at_all_nodes() {
    let [first, second] = start_two_nodes();
    let mut operator = Operator::of(&first);
    let (leaked, other) = (operator.add_partner("1").await, operator.add_partner("1").await);
    let mut leaked_at_second = leaked.connect_to(&second.base_url());
    let mut other_at_second = other.connect_to(&second.base_url());
    wait_for_status(&mut leaked_at_second, 200, "/wallets").await;
    let mut database = ServiceDatabase::of(&first).await;
    let id = leaked.credential_id.trim_start_matches("cred_");
    database
        .run(format!(
            "UPDATE credentials SET key_hash = sha256('another') WHERE credential_id = '{id}'"
        ))
        .await;
    operator.revoke_credential(&leaked).await;
    // The second node has heard of both changes.
    operator
        .patch_partner(&other, &json!({ "suspended": true }))
        .await;
    wait_for_status(&mut other_at_second, 403, "/wallets").await;
    expect_error(
        &leaked_at_second.get("/wallets").await,
        401,
        "INVALID_CREDENTIALS",
    );
}

/// Nodes authenticate from memory. A database user who deletes the row of a credential must not
/// make it irrevocable.
#[tokio::test(flavor = "multi_thread")]
async fn deleted_credential_is_revoked_at_all_nodes() {
    let [first, second] = start_two_nodes();
    let mut operator = Operator::of(&first);
    let mut leaked = operator.add_partner("1").await;
    let mut at_second = leaked.connect_to(&second.base_url());
    wait_for_status(&mut at_second, 200, "/wallets").await;
    let mut database = ServiceDatabase::of(&first).await;
    let id = leaked.credential_id.trim_start_matches("cred_");
    database
        .run(format!("DELETE FROM credentials WHERE credential_id = '{id}'"))
        .await;
    operator.revoke_credential(&leaked).await;
    expect_error(&leaked.get("/wallets").await, 401, "INVALID_CREDENTIALS");
    wait_for_status(&mut at_second, 401, "/wallets").await;
    let unknown = format!("/admin/v1/credentials/cred_{}", "0".repeat(32));
    let refused = operator.call_json(Method::DELETE, &unknown, "").await;
    expect_error(&refused, 404, "CREDENTIAL_NOT_FOUND");
}

/// Nodes hear of changes from the audit log. An entry that names nothing must not keep them from hearing of a
/// revocation.
#[tokio::test(flavor = "multi_thread")]
async fn forged_audit_entry_does_not_delay_a_revocation() {
    let [first, second] = start_two_nodes();
    let mut operator = Operator::of(&first);
    let partner = operator.add_partner("1").await;
    let mut at_second = partner.connect_to(&second.base_url());
    wait_for_status(&mut at_second, 200, "/wallets").await;
    let mut database = ServiceDatabase::of(&first).await;
    database
        .run(
            "INSERT INTO audit_log (operator, action, subject)
             VALUES ('sam', 'credential.issue', 'none'), ('sam', 'partner.change', 'none')"
                .to_owned(),
        )
        .await;
    operator.revoke_credential(&partner).await;
    wait_for_status(&mut at_second, 401, "/wallets").await;
    for node in [&first, &second] {
        let log = node.log();
        assert!(!log.contains("cannot load changes of other nodes"), "{log}");
    }
}

/// A row that does not decode keeps neither the changes of others from the nodes nor a node from starting,
/// and grants nothing itself.
#[tokio::test(flavor = "multi_thread")]
async fn unreadable_row_of_a_partner_delays_no_revocation_and_grants_nothing() {
    for (column, value) in [("allowlist", "'{x}'"), ("certified_at", "'infinity'")] {
        let [first, mut second] = start_two_nodes();
        let mut operator = Operator::of(&first);
        let (forged, leaked) = (operator.add_partner("1").await, operator.add_partner("1").await);
        let mut forged_at_second = forged.connect_to(&second.base_url());
        let mut leaked_at_second = leaked.connect_to(&second.base_url());
        wait_for_status(&mut forged_at_second, 200, "/wallets").await;
        wait_for_status(&mut leaked_at_second, 200, "/wallets").await;
        let mut database = ServiceDatabase::of(&first).await;
        let partner_id = &forged.partner_id;
        let id = partner_id.trim_start_matches("ptn_");
        database
            .run(format!(
                "UPDATE partners SET {column} = {value} WHERE partner_id = '{id}';
                 INSERT INTO audit_log (operator, action, subject) VALUES ('sam', 'partner.change', '{partner_id}')"
            ))
            .await;
        operator.revoke_credential(&leaked).await;
        wait_for_status(&mut leaked_at_second, 401, "/wallets").await;
        wait_for_status(&mut forged_at_second, 403, "/wallets").await;
        for node in [&first, &second] {
            let log = node.log();
            assert!(!log.contains("cannot load changes of other nodes"), "{log}");
        }
        second.kill();
        second.restart();
        let mut forged_at_second = forged.connect_to(&second.base_url());
        let status = forged_at_second.get("/wallets").await.status;
        assert!(matches!(status.as_u16(), 401 | 403), "{status}");
    }
}
