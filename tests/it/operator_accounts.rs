//! Operator accounts: roles of every route, tokens, and the admin that the command line creates in the
//! database.

use hyper::Method;
use hyper::header::HeaderMap;
use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use vouchsafe_private_postgres::Durability;

use crate::commands::{run_error, run_json, utf8};
use crate::multi_node::start_two_nodes;
use vouchsafe_test_harness::{
    Database, Instance, Listener, Operator, expect_error, expect_success, program, shared, text_of, unique,
};

const ROLES: [&str; 3] = ["viewer", "operator", "admin"];

/// Creates an operator and returns the name and a token.
pub(crate) async fn add_operator(admin: &mut Operator, role: &str) -> (String, Value) {
    let name = unique("jane").to_lowercase().replace('_', "-");
    let body = json!({ "name": name, "role": role });
    let created = admin.send_json(Method::POST, "/admin/v1/operators", &body).await;
    assert_eq!(
        (&created["role"], &created["disabled"]),
        (&json!(role), &json!(false))
    );
    let issued = issue_token(admin, &name).await;
    (name, issued)
}

async fn issue_token(admin: &mut Operator, name: &str) -> Value {
    let path = format!("/admin/v1/operators/{name}/tokens");
    admin.send_json(Method::POST, &path, &json!({})).await
}

/// The number of failed sign-ins that were counted.
pub(crate) async fn failed_sign_ins(admin: &mut Operator) -> usize {
    let metrics = admin.call(Method::GET, "/metrics", "text/plain", "").await;
    let text = text_of(&metrics);
    let counts = text
        .lines()
        .filter(|line| line.starts_with("vouchsafe_security_events_total{reason=\"operator_"));
    counts
        .map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap())
        .sum()
}

pub(crate) fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap().to_owned()
}

/// The document is generated from the route table, so a new route is tested too.
#[tokio::test]
async fn every_route_rejects_lower_roles_and_strangers() {
    let service = shared();
    let mut admin = Operator::of(service);
    let mut partner = admin.add_partner("0").await;
    let mut operators = Vec::new();
    for role in ROLES {
        let (_, issued) = add_operator(&mut admin, role).await;
        operators.push(Operator::of(service).with_token(&text(&issued, "token")));
    }
    let mut rejected = [0; ROLES.len()];
    for (template, item) in Listener::Operator.document().served()["paths"]
        .as_object()
        .unwrap()
    {
        if !template.starts_with("/admin/v1") {
            continue;
        }
        let path = &template.replace(['{', '}'], "x");
        for (method, operation) in item.as_object().unwrap() {
            let needed = operation["x-required-role"].as_str();
            let needed = ROLES.iter().position(|role| Some(*role) == needed).unwrap();
            let method: Method = method.to_uppercase().parse().unwrap();
            for (role, operator) in operators.iter_mut().enumerate() {
                let response = operator.call_json(method.clone(), path, "").await;
                if role < needed {
                    expect_error(&response, 403, "FORBIDDEN");
                    let message = utf8(&response.body);
                    assert!(
                        message.contains(&format!("requires the role {}", ROLES[needed])),
                        "{message}"
                    );
                    rejected[role] += 1;
                } else {
                    let status = response.status.as_u16();
                    assert!(status != 401 && status != 403, "{method} {path}: {response:?}");
                }
            }
            let anonymous = admin.call_without_token(method.clone(), path, &[]).await;
            expect_error(&anonymous, 401, "INVALID_CREDENTIALS");
            let other = partner.client.send_raw(method, path, HeaderMap::new(), "");
            expect_error(&other.await.unwrap(), 404, "ROUTE_NOT_FOUND");
        }
    }
    let [viewer, operator, admin] = rejected;
    assert!(viewer > operator && operator > 10 && admin == 0, "{rejected:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_operator_or_token_applies_at_once_at_every_node() {
    let [first, second] = start_two_nodes();
    let mut admin = Operator::of(&first);
    let (name, issued) = add_operator(&mut admin, "operator").await;
    let mut jane = Operator::of(&second).with_token(&text(&issued, "token"));
    let unknown_order = format!("/admin/v1/orders/ord_{}/approve", "0".repeat(32));
    let decision = json!({ "reason": "agreed" }).to_string();
    let decide = async |jane: &mut Operator| {
        let response = jane
            .call_json(Method::POST, &unknown_order, decision.clone())
            .await;
        (response.status.as_u16(), response.error_code().unwrap())
    };
    let found = (404, "ORDER_NOT_FOUND".to_owned());
    let forbidden = (403, "FORBIDDEN".to_owned());
    let refused = (401, "INVALID_CREDENTIALS".to_owned());
    assert_eq!(decide(&mut jane).await, found);
    let account = format!("/admin/v1/operators/{name}");
    for (change, expected) in [
        (json!({ "role": "viewer" }), &forbidden),
        (json!({ "role": "operator", "disabled": true }), &refused),
        (json!({ "disabled": false }), &found),
    ] {
        admin.send_json(Method::PATCH, &account, &change).await;
        assert_eq!(&decide(&mut jane).await, expected, "{change}");
    }
    let token = format!("/admin/v1/operator-tokens/{}", text(&issued, "token_id"));
    for _ in 0..2 {
        admin.send_json(Method::DELETE, &token, &Value::Null).await;
        assert_eq!(decide(&mut jane).await, refused, "revoked");
    }

    let issued = issue_token(&mut admin, &name).await;
    let mut jane = Operator::of(&second).with_token(&text(&issued, "token"));
    assert_eq!(decide(&mut jane).await, found);
    let database = vouchsafe_private_postgres::find_running(first.data_dir()).unwrap();
    let mut connection = database.connect().await.unwrap();
    sqlx::query("UPDATE operator_tokens SET expires_at = now() WHERE revoked_at IS NULL AND operator = $1")
        .bind(&name)
        .execute(&mut connection)
        .await
        .unwrap();
    assert_eq!(decide(&mut jane).await, refused, "expired");
    let audited = admin.audit_entries(&format!("subject={name}")).await;
    let actions: Vec<_> = audited.iter().map(|entry| text(entry, "action")).collect();
    assert_eq!(
        actions,
        [
            "operator.change",
            "operator.change",
            "operator.change",
            "operator.create"
        ]
    );
}

#[tokio::test]
async fn audit_trail_names_the_operator_and_no_token() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, issued) = add_operator(&mut admin, "admin").await;
    let token = text(&issued, "token");
    assert!(token.starts_with("vso_") && token.len() == 68);
    let mut jane = Operator::of(service).with_token(&token);
    let partner = jane.add_partner("0").await;
    let audited = admin.audit_entries(&format!("operator={name}")).await;
    let subject = json!(partner.partner_id);
    assert!(
        audited
            .iter()
            .any(|entry| entry["action"] == "partner.create" && entry["subject"] == subject),
        "{audited:?}"
    );
    let tokens = format!("/admin/v1/operators/{name}/tokens");
    let listed = admin.get(&tokens).await;
    assert!(listed["data"][0]["last_used_at"].is_string(), "{listed}");
    jane.get("/admin/v1/operators").await;
    assert_eq!(
        admin.get(&tokens).await,
        listed,
        "a second use within the minute is not written"
    );
    let audited = admin
        .audit_entries(&format!("subject={}", text(&issued, "token_id")))
        .await;
    assert_eq!(audited[0]["action"], "operator_token.issue");
    for shown in [json!(listed), json!(audited)] {
        assert!(!shown.to_string().contains(&token[4..]), "{shown}");
    }
    assert!(!service.log().contains(&token[4..]));
}

#[tokio::test]
async fn invalid_operator_requests_are_rejected() {
    let mut admin = Operator::of(shared());
    let (name, _) = add_operator(&mut admin, "viewer").await;
    let operators = "/admin/v1/operators";
    for (method, path, body, status, code) in [
        (
            Method::POST,
            operators.to_owned(),
            json!({ "name": name, "role": "admin" }),
            409,
            "OPERATOR_EXISTS",
        ),
        (
            Method::PATCH,
            format!("{operators}/admin"),
            json!({ "role": "viewer" }),
            409,
            "OWN_ACCOUNT",
        ),
        (
            Method::POST,
            operators.to_owned(),
            json!({ "name": "Jane Doe", "role": "admin" }),
            422,
            "VALIDATION_FAILED",
        ),
        (
            Method::POST,
            operators.to_owned(),
            json!({ "name": "service", "role": "admin" }),
            422,
            "VALIDATION_FAILED",
        ),
        (
            Method::POST,
            operators.to_owned(),
            json!({ "name": "jane", "role": "owner" }),
            422,
            "VALIDATION_FAILED",
        ),
        (
            Method::PATCH,
            format!("{operators}/nobody"),
            json!({ "role": "admin" }),
            404,
            "OPERATOR_NOT_FOUND",
        ),
        (
            Method::POST,
            format!("{operators}/nobody/tokens"),
            json!({}),
            404,
            "OPERATOR_NOT_FOUND",
        ),
        (
            Method::GET,
            format!("{operators}/nobody/tokens"),
            Value::Null,
            404,
            "OPERATOR_NOT_FOUND",
        ),
        (
            Method::POST,
            format!("{operators}/{name}/tokens"),
            json!({ "days": 0 }),
            422,
            "VALIDATION_FAILED",
        ),
        (
            Method::POST,
            format!("{operators}/{name}/tokens"),
            json!({ "days": 367 }),
            422,
            "VALIDATION_FAILED",
        ),
        (
            Method::DELETE,
            "/admin/v1/operator-tokens/otk_1".to_owned(),
            Value::Null,
            404,
            "OPERATOR_TOKEN_NOT_FOUND",
        ),
    ] {
        let response = admin.call_json(method, &path, body.to_string()).await;
        expect_error(&response, status, code);
    }
    for _ in 1..20 {
        issue_token(&mut admin, &name).await;
    }
    let path = format!("{operators}/{name}/tokens");
    let response = admin.call_json(Method::POST, &path, "{}").await;
    expect_error(&response, 409, "CREDENTIAL_LIMIT_REACHED");
}

#[tokio::test]
async fn command_line_creates_admin_in_database_and_enables_it_again() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, issued) = add_operator(&mut admin, "viewer").await;
    let account = format!("/admin/v1/operators/{name}");
    admin
        .send_json(Method::PATCH, &account, &json!({ "disabled": true }))
        .await;
    let created = run_json(&["operator", "create", &name, "--admin", "--days", "1"]);
    assert_eq!(created["operator"], json!(name));
    let (other, _) = add_operator(&mut admin, "viewer").await;
    let other = format!("/admin/v1/operators/{other}");
    for token in [&created, &issued] {
        let mut jane = Operator::of(service).with_token(&text(token, "token"));
        jane.send_json(Method::PATCH, &other, &json!({ "role": "admin" }))
            .await;
    }
    let audited = admin.audit_entries("operator=command-line").await;
    let found = |action: &str, subject: &Value| {
        audited
            .iter()
            .any(|entry| entry["action"] == action && &entry["subject"] == subject)
    };
    assert!(found("operator.change", &json!(name)) && found("operator_token.issue", &created["token_id"]));
    for arguments in [
        &["operator", "create", "jane"][..],
        &["operator", "create", "jane", "--admin", "--role", "viewer"],
        &["operator", "create", "Jane", "--admin"],
        &["operator", "create", "jane", "--admin", "--days", "0"],
    ] {
        run_error(arguments);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn production_without_token_in_settings_starts_and_admits_created_admin() {
    let database = Database::create_on(Durability::Durable).await;
    let url = database.service_options().to_url_lossy().to_string();
    let url: &'static str = Box::leak(url.into_boxed_str());
    let service = Instance::start_with(&[
        ("VOUCHSAFE_ENVIRONMENT", "production"),
        ("DATABASE_URL", url),
        ("VOUCHSAFE_MASTER_KEY", &"ab".repeat(32)),
    ]);
    assert!(
        service.log().contains("no operator can sign in"),
        "{}",
        service.log()
    );
    assert!(!service.data_dir().join("operator-token").exists());
    let output = std::process::Command::new(program())
        .args(["operator", "create", "jane.doe", "--admin", "--json"])
        .env("DATABASE_URL", url)
        .env("VOUCHSAFE_MASTER_KEY", "ab".repeat(32))
        .output()
        .unwrap();
    let issued: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The test client reads its token from a file.
    std::fs::write(service.data_dir().join("operator-token"), text(&issued, "token")).unwrap();
    let mut jane = Operator::of(&service);
    let response = jane.call_json(Method::GET, "/admin/v1/operators", "").await;
    let names: Vec<_> = expect_success(&response, 200)["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operator| text(operator, "name"))
        .collect();
    assert_eq!(names, ["jane.doe"]);
    drop(service);
    database.remove().await;
}
