//! Partner administration: creation, terms, credentials, allowlists, suspension.

use hyper::Method;
use serde_json::{Value, json};

use vouchsafe_test_harness::{
    Operator, Partner, ServiceDatabase, expect_error, expect_success, json_of, shared, text_of, unique,
};

async fn post(operator: &mut Operator, path: &str, body: &Value) -> vouchsafe_api_client::ApiResponse {
    operator.call_json(Method::POST, path, body.to_string()).await
}

/// The body without fields that differ from run to run.
fn without(body: &Value, fields: &[&str]) -> Value {
    let mut body = body.clone();
    body.as_object_mut()
        .unwrap()
        .retain(|field, _| !fields.contains(&field.as_str()));
    body
}

fn path_of(partner: &Partner) -> String {
    format!("/admin/v1/partners/{}", partner.partner_id)
}

#[tokio::test]
async fn created_partner_secret_is_shown_once() {
    let mut operator = Operator::of(shared());
    let name = unique("Acme & Söhne");
    let body = json!({
        "name": format!(" {name} "), "allowlist": ["127.0.0.1", "::ffff:10.0.0.0/104"],
        "limits": { "orders": { "quota": 5, "window_s": 60 } },
    });
    let response = post(&mut operator, "/admin/v1/partners", &body).await;
    let created = expect_success(&response, 201);
    let partner_id = created["partner_id"].as_str().unwrap();
    assert_eq!(
        response.header("location"),
        Some(format!("/admin/v1/partners/{partner_id}").as_str())
    );
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert_eq!(created["name"], json!(name));
    let ids = ["partner_id", "name", "created_at", "updated_at", "credential"];
    insta::assert_json_snapshot!(without(&created, &ids), @r#"
    {
      "agreement_signed_at": null,
      "allowlist": [
        "127.0.0.1/32",
        "10.0.0.0/8"
      ],
      "approval_rule": null,
      "cancel_window_s": 86400,
      "caps": null,
      "catalogue": null,
      "ceilings": {},
      "certified_at": null,
      "codes_blocked": false,
      "limits": {
        "orders": {
          "quota": 5,
          "window_s": 60
        }
      },
      "suspended": false
    }
    "#);
    let credential = &created["credential"];
    assert!(credential["api_key"].as_str().unwrap().starts_with("vs_sandbox_"));
    let secret = credential["api_secret"].as_str().unwrap();
    let path = format!("/admin/v1/partners/{partner_id}");
    let shown = operator.call_json(Method::GET, &path, "").await;
    assert_eq!(
        expect_success(&shown, 200)["credentials"][0]["credential_id"],
        credential["credential_id"]
    );
    assert!(!text_of(&shown).contains(secret) && !text_of(&shown).contains("vs_sandbox_"));
    let mut database = ServiceDatabase::of(shared()).await;
    let search = "SELECT count(*) FROM audit_log AS a WHERE a::text LIKE '%' || $1 || '%'";
    assert_eq!(
        database.count(search, secret).await,
        0,
        "the audit log contains the secret"
    );
    assert_eq!(
        database.count(search, partner_id).await,
        2,
        "partner.create and credential.issue"
    );
}

#[tokio::test]
async fn partner_patch_merges_and_null_removes() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    let terms = json!({
        "limits": { "general": { "quota": 9, "window_s": 10 } },
        "approval_rule": { "amount_over": { "USD": "500", "JPY": 50000 }, "first_orders": 2 },
        "catalogue": { "categories": ["retail"] },
        "cancel_window_s": 60,
        "caps": null,
        "certified_at": "2026-01-02T03:04:05+01:00",
    });
    operator.patch_partner(&partner, &terms).await;
    operator
        .patch_partner(
            &partner,
            &json!({ "limits": { "orders": { "quota": 1, "window_s": 2 } } }),
        )
        .await;
    let ids = ["partner_id", "name", "created_at", "updated_at", "credentials"];
    let shown = operator.get(&path_of(&partner)).await;
    insta::assert_json_snapshot!(without(&shown, &ids), @r#"
    {
      "agreement_signed_at": null,
      "allowlist": [
        "127.0.0.0/8",
        "::1/128"
      ],
      "approval_rule": {
        "amount_over": {
          "JPY": 50000,
          "USD": 500.0
        },
        "first_orders": 2,
        "other_currencies": "pass"
      },
      "cancel_window_s": 60,
      "caps": null,
      "catalogue": {
        "categories": [
          "retail"
        ],
        "products": []
      },
      "ceilings": {},
      "certified_at": "2026-01-02T02:04:05.000000Z",
      "codes_blocked": false,
      "limits": {
        "general": {
          "quota": 9,
          "window_s": 10
        },
        "orders": {
          "quota": 1,
          "window_s": 2
        }
      },
      "suspended": false
    }
    "#);
    let nothing = json!({
        "limits": { "general": null }, "approval_rule": null, "catalogue": null, "cancel_window_s": null,
        "certified_at": null,
    });
    operator.patch_partner(&partner, &nothing).await;
    let shown = operator.get(&path_of(&partner)).await;
    insta::assert_json_snapshot!(without(&shown, &ids), @r#"
    {
      "agreement_signed_at": null,
      "allowlist": [
        "127.0.0.0/8",
        "::1/128"
      ],
      "approval_rule": null,
      "cancel_window_s": 86400,
      "caps": null,
      "catalogue": null,
      "ceilings": {},
      "certified_at": null,
      "codes_blocked": false,
      "limits": {
        "orders": {
          "quota": 1,
          "window_s": 2
        }
      },
      "suspended": false
    }
    "#);
}

#[tokio::test]
async fn empty_partner_patch_is_not_audited() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    let before = operator.get(&path_of(&partner)).await;
    for patch in [json!({}), json!({ "suspended": false })] {
        operator.patch_partner(&partner, &patch).await;
    }
    assert_eq!(operator.get(&path_of(&partner)).await, before);
    let trail = operator
        .get(&format!(
            "/admin/v1/audit?action=partner.change&subject={}",
            partner.partner_id
        ))
        .await;
    assert_eq!(trail["data"], json!([]));
}

#[tokio::test]
async fn partner_change_is_audited_with_previous_values() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    let change = r#"{"suspended":true}"#;
    let response = operator
        .call_json(Method::PATCH, &path_of(&partner), change)
        .await;
    expect_success(&response, 200);
    let entries = operator
        .audit_entries(&format!("subject={}", partner.partner_id))
        .await;
    let actions: Vec<_> = entries.iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["partner.change", "partner.create"], "newest first");
    let change = &entries[0];
    assert_eq!(
        (&change["before"]["suspended"], &change["after"]["suspended"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(
        (&change["operator"], change["trace_id"].as_str()),
        (&json!("admin"), response.header("x-trace-id"))
    );
    assert_eq!(entries[1]["before"], Value::Null);
}

#[tokio::test]
async fn sixth_live_credential_is_rejected() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    let path = format!("{}/credentials", path_of(&partner));
    let mut last = Value::Null;
    for _ in 0..4 {
        last = expect_success(&post(&mut operator, &path, &json!({})).await, 201);
        expect_success(&partner.with_credential(&last).get("/wallets").await, 200);
    }
    let response = post(&mut operator, &path, &json!({})).await;
    expect_error(&response, 409, "CREDENTIAL_LIMIT_REACHED");
    let mut revoked = partner.with_credential(&last);
    operator.revoke_credential(&revoked).await;
    expect_error(&revoked.get("/wallets").await, 401, "INVALID_CREDENTIALS");
    expect_success(&post(&mut operator, &path, &json!({})).await, 201);
}

#[tokio::test]
async fn repeated_revocation_revokes_once() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    let path = format!("/admin/v1/credentials/{}", partner.credential_id);
    for revoked in [json!([partner.credential_id]), json!([])] {
        let response = operator.call_json(Method::DELETE, &path, "").await;
        assert_eq!(expect_success(&response, 200)["revoked"], revoked);
    }
    let entries = operator
        .audit_entries(&format!("subject={}", partner.credential_id))
        .await;
    let actions: Vec<_> = entries.iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["credential.revoke", "credential.issue"]);
}

#[tokio::test]
async fn unknown_resources_return_404() {
    let mut operator = Operator::of(shared());
    let partner = format!("/admin/v1/partners/ptn_{}", "0".repeat(32));
    let (credentials, top_ups) = (
        format!("{partner}/credentials"),
        format!("{partner}/wallets/USD/top-ups"),
    );
    let credential = format!("/admin/v1/credentials/cred_{}", "0".repeat(32));
    let top_up = r#"{"amount":1,"reference":"r"}"#;
    for (method, path, body, code) in [
        (Method::GET, partner.as_str(), "", "PARTNER_NOT_FOUND"),
        (Method::GET, "/admin/v1/partners/nobody", "", "PARTNER_NOT_FOUND"),
        (Method::PATCH, &partner, "{}", "PARTNER_NOT_FOUND"),
        (Method::POST, &credentials, "{}", "PARTNER_NOT_FOUND"),
        (Method::POST, &top_ups, top_up, "PARTNER_NOT_FOUND"),
        (Method::DELETE, &credential, "", "CREDENTIAL_NOT_FOUND"),
        (Method::GET, "/admin/v1/products/nothing", "", "PRODUCT_NOT_FOUND"),
    ] {
        let response = operator.call_json(method, path, body).await;
        expect_error(&response, 404, code);
    }
}

#[tokio::test]
async fn concurrent_changes_leave_memory_and_database_equal() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    let changes = (0..12).map(|n| {
        let (mut other, path) = (Operator::of(shared()), path_of(&partner));
        async move {
            let patch = json!({ "suspended": n % 2 == 0 });
            let response = other.call_json(Method::PATCH, &path, patch.to_string()).await;
            assert!(response.status.is_success(), "{}", json_of(&response));
        }
    });
    futures_util::future::join_all(changes).await;
    let suspended = operator.get(&path_of(&partner)).await["suspended"] == json!(true);
    let status = partner.get("/wallets").await.status.as_u16();
    assert_eq!(
        status,
        if suspended { 403 } else { 200 },
        "memory and database must agree"
    );
}
