//! Command line against a running service.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use sqlx::ConnectOptions as _;
use vouchsafe_test_harness::{Database, Instance, Operator, free_address, program, shared, unique};

use crate::production::MASTER_KEY;

/// Runs a command with `--json` on the database of a production service, as the service's role.
pub(crate) fn run_in_production(database: &Database, arguments: &[&str]) -> Value {
    let output = Command::new(program())
        .args(arguments)
        .arg("--json")
        .env("DATABASE_URL", database.service_options().to_url_lossy().as_str())
        .env("VOUCHSAFE_MASTER_KEY", MASTER_KEY)
        .env("VOUCHSAFE_ENVIRONMENT", "production")
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    run_with(shared(), arguments, None)
}

pub(crate) fn run_with(service: &Instance, arguments: &[&str], input: Option<&str>) -> Output {
    let mut command = Command::new(program());
    if !arguments.contains(&"--data-dir") {
        command.arg("--data-dir").arg(service.data_dir());
    }
    command
        .args(arguments)
        .env("VOUCHSAFE_ADMIN_URL", service.admin_url())
        .env("VOUCHSAFE_URL", service.base_url())
        .env_remove("DATABASE_URL")
        .env_remove("VOUCHSAFE_OPERATOR_TOKEN")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The command may not read its input.
    drop(stdin.write_all(input.unwrap_or_default().as_bytes()));
    drop(stdin);
    child.wait_with_output().unwrap()
}

pub(crate) fn utf8(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Splits a command line without quoting.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Runs a command, asserts success and returns its standard output.
pub(crate) fn run_ok(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", utf8(&output.stderr));
    utf8(&output.stdout)
}

pub(crate) fn run_json(arguments: &[&str]) -> Value {
    let all = [arguments, &["--json"]].concat();
    serde_json::from_str(&run_ok(&all)).unwrap()
}

/// Runs a command, asserts failure and returns its standard error.
pub(crate) fn run_error(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(
        !output.status.success(),
        "{arguments:?}: {}",
        utf8(&output.stdout)
    );
    utf8(&output.stderr)
}

#[tokio::test]
async fn commands_cover_sale_from_partner_to_codes() {
    let (name, product, category) = (unique("Partner"), unique("product"), unique("category"));
    let created = run_json(&words(&format!(
        "partner create --name {name} --allow 127.0.0.1 --limit orders=7/60"
    )));
    assert_eq!(
        created["limits"],
        json!({ "orders": { "quota": 7, "window_s": 60 } })
    );
    let partner_id = created["partner_id"].as_str().unwrap();
    assert!(run_ok(&["partner", "list"]).contains(&name));
    let by_name = run_json(&["partner", "list", "--name", &name.to_uppercase()[1..]]);
    assert_eq!(by_name["data"].as_array().unwrap().len(), 1, "{by_name}");
    let none = run_ok(&["--json", "partner", "list", "--name", "no such name"]);
    assert_eq!(none, "{\"data\":[],\"has_more\":false,\"next_cursor\":null}\n");
    run_ok(&["category", "put", &category, "--name", "Cards"]);
    run_ok(&words(&format!(
        "product put {product} --name Card --brand {product} --category {category} --currency USD \
         --denomination 25 --denomination 50.00 --country US --range 100:500:100"
    )));
    assert!(run_ok(&["product", "show", &product]).contains("denominations       25.00, 50.00"));
    let shown = run_ok(&["product", "show", &product, "--json"]);
    let put = format!("product put {product} --from -");
    let put = |json: &str| run_with(shared(), &words(&put), Some(json));
    let unchanged = put(&shown);
    assert!(unchanged.status.success(), "{unchanged:?}");
    let of_another = put(&shown.replacen(
        &format!("\"product_id\":\"{product}"),
        "\"product_id\":\"other",
        1,
    ));
    let refusal = utf8(&of_another.stderr);
    assert_eq!(of_another.status.code(), Some(2), "{refusal}");
    assert!(refusal.contains("remove `product_id` from it"), "{refusal}");
    let codes = format!("code,pin\n{product}-1,0001\n{product}-2,0002\n,0003\n");
    let file = tempfile::NamedTempFile::with_suffix(".csv").unwrap();
    std::fs::write(file.path(), codes).unwrap();
    let path = file.path().to_str().unwrap();
    let import = format!("stock import {path} --product {product} --denomination 25");
    let import = format!("{import} --batch b-1");
    let import = words(&import);
    assert_eq!(
        run_ok(&import),
        "imported 2, duplicates 0, rejected 1 (vendor mock, batch b-1)\n  line 4 rejected: the code is missing\n"
    );
    let strict = run(&[&import[..], &["--strict"]].concat());
    assert_eq!(strict.status.code(), Some(1));
    assert_eq!(
        utf8(&strict.stdout),
        "imported 0, duplicates 2, rejected 1 (vendor mock, batch b-1)\n  line 4 rejected: the code is missing\n"
    );
    let strict = run(&[&import[..], &["--strict", "--json"]].concat());
    assert_eq!(strict.status.code(), Some(1));
    assert!(
        utf8(&strict.stdout).contains("\"rejected_count\":1"),
        "{strict:?}"
    );
    assert_eq!(run_json(&import)["duplicates"], json!(2));
    let top_up = run_ok(&["wallet", "top-up", partner_id, "USD", "100", "--reference", "r"]);
    assert!(top_up.contains("balance_after   100.00"), "{top_up}");
    let adjusted = run_json(&words(&format!(
        "wallet adjust {partner_id} USD -25.50 --reference r"
    )));
    assert_eq!(adjusted["balance_after"], json!(74.5));

    let credentials = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(credentials.path(), created["credential"].to_string()).unwrap();
    let credentials = credentials.path().to_str().unwrap();
    let order =
        json!({ "items": [{ "product_id": product, "denomination": 25, "quantity": 1 }] }).to_string();
    let call = |arguments: &[&str]| run(&[&["call", "--credentials", credentials], arguments].concat());
    let placed = call(&["POST", "/orders", &order, "--key", "the-key"]);
    assert!(
        placed.status.success() && utf8(&placed.stderr).contains("201 Created"),
        "{}",
        utf8(&placed.stderr)
    );
    let replayed = call(&["post", "orders", "-", "--key", "the-key"]);
    assert!(
        !replayed.status.success(),
        "another body under the same key must fail"
    );
    let from_input = format!("call --credentials {credentials} POST /api/v1/orders - --key the-key");
    let replayed = run_with(shared(), &words(&from_input), Some(&order));
    assert_eq!(replayed.stdout, placed.stdout);
    assert!(utf8(&replayed.stderr).contains("idempotent-replayed: true"));
    let order_id = serde_json::from_slice::<Value>(&placed.stdout).unwrap()["order_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let codes = call(&["GET", &format!("/orders/{order_id}/vouchers")]);
    assert!(
        codes.status.success() && utf8(&codes.stdout).contains(&format!("{product}-")),
        "{}",
        utf8(&codes.stderr)
    );

    let levels = run_ok(&["stock", "levels", "--product", &product]);
    let fields: Vec<_> = levels.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(
        fields.join(" "),
        format!("{product} 25.00 USD 2 1 1 1.0 0 1 0 0 -")
    );
    let voided = run_ok(&words(&format!(
        "stock void --product {product} --denomination 25 --reason over"
    )));
    assert_eq!(voided, "voided 1\n");
    assert!(run_ok(&["actors", "--kind", "wallet"]).contains(partner_id));
    assert!(run_ok(&["audit", "--subject", partner_id]).contains("partner.create"));
    let shown = run_ok(&["partner", "suspend", partner_id, "--block-codes"]);
    assert!(shown.contains("suspended            true"), "{shown}");
    assert!(shown.contains("codes_blocked        true"), "{shown}");
    assert!(utf8(&call(&["GET", "/wallets"]).stdout).contains("PARTNER_SUSPENDED"));
    run_ok(&["partner", "resume", partner_id]);
    let issued = run_json(&["credential", "issue", partner_id, "--allow", "127.0.0.1"]);
    run_ok(&["credential", "revoke", issued["credential_id"].as_str().unwrap()]);
    run_ok(&words(&format!(
        r#"partner set {partner_id} --approval-rule {{"first_orders":1}} --limit orders=default"#
    )));
    let set = run_json(&words(&format!(
        "partner set {partner_id} --approval-rule none --certified-at 2026-01-01T00:00:00Z"
    )));
    assert_eq!(
        (&set["approval_rule"], &set["limits"]),
        (&Value::Null, &json!({}))
    );
}

#[tokio::test]
async fn call_command_orders_as_sandbox_partner() {
    let order = r#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;
    let output = run(&["call", "POST", "/orders", order]);
    assert!(output.status.success(), "{}", utf8(&output.stderr));
    let response: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(response["status"], "DELIVERED");
    let refused = run(&["call", "POST", "/orders", r#"{"items":[]}"#]);
    assert!(!refused.status.success() && utf8(&refused.stdout).contains("VALIDATION_FAILED"));
}

#[tokio::test]
async fn command_error_states_remedy() {
    let unused_url = format!("http://{}", free_address());
    for (line, expected) in [
        (
            format!("actors --admin-url {unused_url}").as_str(),
            "Is the service running?",
        ),
        (
            &format!("call GET /wallets --url {unused_url}"),
            "Is the service running?",
        ),
        ("actors --operator-token wrong", "INVALID_CREDENTIALS"),
        ("partner show nobody", "PARTNER_NOT_FOUND"),
        ("partner set nobody", "--allow <CIDR>"),
        (
            "stock import /nowhere.csv --product p --denomination 1",
            "cannot read /nowhere.csv",
        ),
        ("call POST /orders no-object", "cannot sign the request"),
        (
            "call GET /wallets --credentials /nowhere",
            "cannot read credentials from /nowhere",
        ),
        ("--data-dir /nowhere actors", "VOUCHSAFE_OPERATOR_TOKEN"),
        ("--data-dir /nowhere verify", "no data directory /nowhere"),
    ] {
        let stderr = run_error(&words(line));
        assert!(stderr.contains(expected), "{line}: {stderr}");
        assert!(!stderr.contains(".rs:"), "{stderr}");
    }
    let output = run(&["partner", "show", "nobody", "--json"]);
    let raw: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(raw["error"]["code"], "PARTNER_NOT_FOUND");
}

#[tokio::test]
async fn import_from_standard_input_is_streamed() {
    let sale = Operator::of(shared()).add_stocked_product(0).await;
    let file: String = (0..30_000)
        .map(|n| format!("{{\"code\":\"{}-{n}\"}}\n", sale.product_id))
        .collect();
    let import = "stock import - --denomination 25";
    let known_product = format!("{import} --format ndjson --product {} --json", sale.product_id);
    let output = run_with(shared(), &words(&known_product), Some(&file));
    assert!(output.status.success(), "{}", utf8(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["imported"], json!(30_000), "{report}");
    let unknown_product = format!("{import} --product nothing");
    let output = run_with(shared(), &words(&unknown_product), Some(&file));
    assert!(
        utf8(&output.stderr).contains("PRODUCT_NOT_FOUND"),
        "{}",
        utf8(&output.stderr)
    );
}

#[tokio::test]
async fn verify_works_with_service_running_or_stopped() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(3).await;
    let mut partner = operator.add_partner("100").await;
    assert!(partner.order(&sale, 2).await.status.is_success());
    for stopped in [false, true] {
        if stopped {
            assert_eq!(service.stop(), Some(0));
        }
        let output = run_with(&service, &["verify"], None);
        assert!(
            output.status.success(),
            "{}{}",
            utf8(&output.stdout),
            utf8(&output.stderr)
        );
        let summary = utf8(&output.stdout);
        assert!(
            summary.ends_with("invariants hold.\n") && summary.lines().count() == 1,
            "{summary}"
        );
        let verbose = utf8(&run_with(&service, &["verify", "--verbose"], None).stdout);
        assert!(
            verbose.ends_with(&summary) && verbose.contains("ok      money.conservation"),
            "{verbose}"
        );
    }
    service.restart();
    let database = vouchsafe_private_postgres::find_running(service.data_dir()).unwrap();
    let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect_with(&database)
        .await
        .unwrap();
    sqlx::query("UPDATE wallets SET balance = balance + 1")
        .execute(&mut connection)
        .await
        .unwrap();
    let failures = utf8(&run_with(&service, &["verify"], None).stdout);
    assert!(
        failures.starts_with("BROKEN  money.conservation") && !failures.contains("\nok "),
        "{failures}"
    );
    let summary = failures.lines().last().unwrap();
    assert!(
        summary.starts_with("1 of ") && summary.ends_with(" invariants are broken."),
        "{failures}"
    );
    let output = run_with(&service, &["verify", "--json"], None);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let broken: Vec<_> = report["invariants"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|i| i["holds"] == json!(false))
        .collect();
    assert_eq!(
        (output.status.code(), &report["holds"], broken.len()),
        (Some(1), &json!(false), 1)
    );
    assert_eq!(broken[0]["name"], "money.conservation");
}

#[test]
fn secret_is_not_sent_over_plain_http_to_another_machine() {
    for arguments in [
        &["partner", "list", "--admin-url", "http://vouchsafe.invalid:8081"][..],
        &["overview", "--admin-url", "http://198.51.100.7:8081"],
        &["call", "GET", "/wallets", "--url", "http://198.51.100.7:8080"],
    ] {
        let output = run(arguments);
        let errors = utf8(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains("--insecure-http"), "{errors}");
    }
    // Permitted: it fails only because there is no such host.
    let permitted = run(&[
        "partner",
        "list",
        "--admin-url",
        "http://vouchsafe.invalid:8081",
        "--insecure-http",
    ]);
    assert_eq!(permitted.status.code(), Some(3), "{}", utf8(&permitted.stderr));
}

#[test]
fn credentials_file_open_to_others_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("partner.json");
    let stored = shared().data_dir().join("sandbox-partner.json");
    std::fs::copy(stored, &path).unwrap();
    for (mode, is_warned) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let output = run(&["call", "GET", "/wallets", "--credentials", path.to_str().unwrap()]);
        let notes = utf8(&output.stderr);
        assert_eq!(notes.contains("chmod 600"), is_warned, "{notes}");
    }
}
