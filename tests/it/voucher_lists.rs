//! Lists of vouchers as people's programs write them: imports, dry runs, fulfilments and recalls; one
//! spelling of each identity.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_test_harness::{Operator, Sale, expect_error, expect_success, json_of, shared, unique};

use crate::commands::{run, run_error, run_ok};
use crate::imports::{import, import_counts, stock_level};

const ZERO_WIDTH_SPACE: &str = "\u{200b}";

async fn free(operator: &mut Operator, sale: &Sale) -> Value {
    stock_level(operator, sale).await["free"].clone()
}

#[tokio::test]
async fn card_with_pasted_invisible_characters_is_imported_once() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let code = unique("GC");
    let file = format!(
        "code,pin\n{code},0019\n{code}{ZERO_WIDTH_SPACE},0019\n\u{feff}{code},0019\n{code}\u{ad},0019\n\u{a0}{code}\u{200e},0019\n \
         {code} ,0019\n"
    );
    let response = import(&mut operator, &sale, "text/csv", file).await;
    assert_eq!(import_counts(&response), (1, 1, 4));
    let position = code.len() + 1;
    assert_eq!(
        json_of(&response)["rejected"][0]["reason"],
        format!("code has a forbidden character: invisible character (U+200B) at position {position}")
    );
}

#[tokio::test]
async fn reference_in_another_spelling_is_posted_once() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    let path = format!("/admin/v1/partners/{}/wallets/USD/top-ups", partner.partner_id);
    let reference = unique("bank-S\u{f6}");
    let decomposed = reference.replace('\u{f6}', "o\u{308}");
    for text in [&reference, &format!(" {reference}\u{a0}"), &decomposed] {
        let body = json!({ "amount": "1.00", "reference": text });
        operator.send_json(Method::POST, &path, &body).await;
    }
    let body = json!({ "amount": "1.00", "reference": format!("{reference}{ZERO_WIDTH_SPACE}") });
    let refused = operator.call_json(Method::POST, &path, body.to_string()).await;
    let error = expect_error(&refused, 422, "VALIDATION_FAILED");
    assert!(error.to_string().contains("(U+200B) at position"), "{error}");
    let wallet = operator
        .get(&format!("/admin/v1/partners/{}/wallets", partner.partner_id))
        .await;
    assert_eq!(wallet["data"][0]["balance"], json!(1.0));
}

#[tokio::test]
async fn webhook_url_in_another_spelling_is_the_same_endpoint() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    let mut ids = Vec::new();
    for url in [
        "https://a.example/x",
        "HTTPS://A.EXAMPLE:443/x",
        " https://a.example/y/../x ",
    ] {
        let body = json!({ "url": url, "enabled": false }).to_string();
        let response = partner.send_signed(Method::POST, "/webhooks", &body).await;
        let webhook = json_of(&response);
        assert_eq!(webhook["url"], "https://a.example/x", "{webhook}");
        ids.push(webhook["webhook_id"].clone());
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let body = json!({ "url": format!("https://a.example/x{ZERO_WIDTH_SPACE}") }).to_string();
    let response = partner.send_signed(Method::POST, "/webhooks", &body).await;
    expect_error(&response, 422, "VALIDATION_FAILED");
}

#[tokio::test]
async fn dry_run_reports_what_an_import_would_do_and_stores_nothing() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let [known, new] = [unique("GC-KNOWN"), unique("GC-NEWCODE")];
    operator.import_csv(&sale, format!("code,pin\n{known},1\n")).await;
    let file = format!("Code;PIN\r\n{known};1\r\n{known};2\r\n{new};0012\r\n{new};0012\r\n6.03571E+15;1\r\n");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("codes.csv");
    std::fs::write(&path, file).unwrap();
    let path = path.to_str().unwrap();
    let arguments = [
        "stock",
        "import",
        path,
        "--product",
        &sale.product_id,
        "--denomination",
        "25",
        "--dry-run",
    ];
    let text = run_ok(&arguments);
    assert!(
        text.starts_with("dry run, nothing was stored: would import 1, duplicates 2, rejected 2"),
        "{text}"
    );
    for expected in [
        "semicolons",
        "line 6 rejected: code is a number in scientific notation",
        "pin: 4 characters",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains(&new) && !text.contains(&known), "{text}");
    assert_eq!(free(&mut operator, &sale).await, 1);
    let imported = run_ok(&arguments[..arguments.len() - 1]);
    assert!(
        imported.starts_with("imported 1, duplicates 2, rejected 2"),
        "{imported}"
    );
    let as_is = run_ok(&[&arguments[..arguments.len() - 1], &["--accept-as-is"]].concat());
    assert!(
        as_is.starts_with("imported 1, duplicates 3, rejected 1"),
        "{as_is}"
    );
}

#[tokio::test]
async fn order_is_fulfilled_from_a_list_that_an_import_takes() {
    let mut operator = Operator::of(shared());
    let vendor = unique("manual");
    let path = format!("/admin/v1/vendors/{vendor}");
    operator
        .send_json(Method::PUT, &path, &json!({ "adapter": "manual" }))
        .await;
    let changes = json!({ "route": "vendor", "vendor": vendor });
    let sale = operator.add_product_with(changes, "25", 0).await;
    let mut partner = operator.add_partner("1000").await;
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        (
            "vouchers.csv",
            format!("\u{feff}Code;PIN;Expiry\r\n{};0012;2099-12-31\r\n", unique("FU")),
        ),
        (
            "vouchers.ndjson",
            format!("\u{feff}{{\"Code\":\"{}\",\"PIN\":\"0012\"}}\n", unique("FU")),
        ),
        ("headless.csv", format!("{},0012\n", unique("FU"))),
    ] {
        let order = json_of(&partner.order(&sale, 1).await);
        let file = directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        let order_id = order["order_id"].as_str().unwrap();
        run_ok(&["order", "fulfil", order_id, file.to_str().unwrap()]);
        let order = partner.get(&format!("/orders/{order_id}")).await;
        assert_eq!(json_of(&order)["status"], "DELIVERED", "{name}");
    }
}

#[tokio::test]
async fn recall_by_card_numbers_voids_all_cards_and_shows_unknown_ones_first() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let prefix = unique("GC");
    let numbers: Vec<String> = (0..1_500).map(|n| format!("{prefix}-{n}")).collect();
    let lines: String = numbers.iter().map(|code| format!("{code},0012\n")).collect();
    operator.import_csv(&sale, format!("code,pin\n{lines}")).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("recall.csv");
    let file_name = file.to_str().unwrap();
    let arguments = [
        "stock",
        "void",
        "--product",
        &sale.product_id,
        "--codes",
        file_name,
        "--reason",
        "recall",
    ];
    std::fs::write(&file, format!("{}\n{prefix}-\"1\"\n", numbers.join("\n"))).unwrap();
    let error = run_error(&arguments);
    assert!(
        error.contains("line 1501") && error.contains("nothing was done"),
        "{error}"
    );
    std::fs::write(&file, format!("{}\n{prefix}-9999\n", numbers.join("\n"))).unwrap();
    let output = run(&arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("UNKNOWN 1:"), "{text}");
    assert!(
        text.contains("line 1501: UNKNOWN") && text.contains("voided 1500"),
        "{text}"
    );
    assert_eq!(free(&mut operator, &sale).await, 0);
}

#[tokio::test]
async fn voucher_without_expiry_gets_that_of_a_product_valid_for_months() {
    let mut operator = Operator::of(shared());
    let changes = json!({ "expiry_policy": { "type": "MONTHS_FROM_ISSUE", "value": 12 } });
    let sale = operator.add_product_with(changes, "25", 0).await;
    operator
        .import_csv(&sale, format!("code\n{}\n", unique("GC")))
        .await;
    let mut partner = operator.add_partner("100").await;
    let order = expect_success(&partner.order(&sale, 1).await, 201);
    let year: u16 = order["created_at"].as_str().unwrap()[..4].parse().unwrap();
    let expiry = order["vouchers"][0]["expiry"].as_str().unwrap();
    assert!(expiry.starts_with(&(year + 1).to_string()), "{expiry}");
}
