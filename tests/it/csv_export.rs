//! Lists as CSV: the operator API with `Accept: text/csv`, downloads of the console, and `--csv` of the
//! commands.

use hyper::Method;
use serde_json::json;
use vouchsafe_api_client::ApiResponse;
use vouchsafe_test_harness::{
    Instance, Listener, Operator, expect_error, expect_success, shared, text_of, unique,
};

use crate::commands::{run_error, run_ok};
use crate::console::Browser;

async fn read_csv(service: &Instance, path: &str) -> ApiResponse {
    let token = format!("Bearer {}", service.operator_token());
    Operator::of(service)
        .call_without_token(
            Method::GET,
            path,
            &[("authorization", &token), ("accept", "text/csv")],
        )
        .await
}

/// More entries than a page has, the newest of which has a reference that a spreadsheet would calculate.
async fn add_partner_with_entries(operator: &mut Operator, entries: usize) -> String {
    let partner = operator.add_partner("1000").await;
    for number in 1..=entries {
        let path = format!(
            "/admin/v1/partners/{}/wallets/USD/adjustments",
            partner.partner_id
        );
        let reference = format!("=HYPERLINK(\"x\"),{number}");
        let body = json!({ "amount": "-1.50", "reference": reference });
        operator.send_json(Method::POST, &path, &body).await;
    }
    partner.partner_id
}

#[tokio::test]
async fn csv_has_all_pages_with_neutral_texts_and_exact_numbers() {
    const ENTRIES: usize = 230;
    let mut operator = Operator::of(shared());
    let partner_id = add_partner_with_entries(&mut operator, ENTRIES).await;
    let path = format!("/admin/v1/partners/{partner_id}/transactions?type=ADJUSTMENT");

    let response = read_csv(shared(), &path).await;
    assert_eq!(response.status, 200, "{}", text_of(&response));
    assert_eq!(response.header("content-type"), Some("text/csv"));
    assert_eq!(
        response.header("content-disposition"),
        Some("attachment; filename=\"transactions.csv\"")
    );
    let lines: Vec<_> = text_of(&response).split_terminator("\r\n").collect();
    assert_eq!(
        lines[0],
        "created_at,type,amount,currency,balance_after,order_id,payout_id,reference,transaction_id,sequence"
    );
    assert_eq!(lines.len(), ENTRIES + 1);
    for (line, number) in lines[1..].iter().zip((1..=ENTRIES).rev()) {
        let expected = format!(
            ",ADJUSTMENT,-1.50,USD,{:.2},,,\"'=HYPERLINK(\"\"x\"\"),{number}\",",
            1000.0 - 1.5 * number as f64
        );
        assert!(line.contains(&expected), "{line}: {expected}");
    }

    let printed = run_ok(&[
        "wallet",
        "transactions",
        &partner_id,
        "--type",
        "ADJUSTMENT",
        "--csv",
    ]);
    assert_eq!(printed.lines().collect::<Vec<_>>(), lines);
    let chosen = run_ok(&[
        "wallet",
        "transactions",
        &partner_id,
        "--csv",
        "--columns",
        "amount,type",
    ]);
    assert!(
        chosen.starts_with("amount,currency,type\n-1.50,USD,ADJUSTMENT\n"),
        "{chosen}"
    );
    assert_eq!(chosen.lines().count(), ENTRIES + 2);
    let refused = run_error(&["wallet", "transactions", &partner_id, "--csv", "--limit", "5"]);
    assert!(refused.contains("cannot be used with"), "{refused}");

    let page = format!("/csv/partners/{partner_id}/transactions?type=ADJUSTMENT");
    let shown = open_page(&format!(
        "/partners/{partner_id}/transactions?type=ADJUSTMENT&limit=5"
    ))
    .await;
    assert!(
        text_of(&shown).contains(&format!("<a href=\"{page}\" download>Download CSV</a>")),
        "{}",
        text_of(&shown)
    );
    let downloaded = open_page(&page).await;
    assert_eq!(text_of(&downloaded), text_of(&response));
    assert_eq!(
        downloaded.header("content-disposition"),
        response.header("content-disposition")
    );
}

async fn open_page(path: &str) -> ApiResponse {
    Browser::of(shared()).open(path).await
}

#[tokio::test]
async fn csv_of_a_page_or_with_an_invalid_filter_is_refused() {
    for query in ["limit=5", "cursor=a", "status=none"] {
        let response = read_csv(shared(), &format!("/admin/v1/payouts?{query}")).await;
        expect_error(&response, 422, "VALIDATION_FAILED");
        let page = open_page(&format!("/csv/payouts?{query}")).await;
        assert_eq!(page.status, 422);
        assert!(
            text_of(&page).contains(query.split('=').next().unwrap()),
            "{}",
            text_of(&page)
        );
    }
    // Only lists are downloads: the destination of a payout is read under its own audit entry.
    for path in [
        "/csv/overview",
        "/csv/payouts/pay_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
    ] {
        assert_eq!(open_page(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn each_list_of_operators_is_a_csv() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("100").await;
    let order = expect_success(&partner.order(&sale, 1).await, 201);
    let name = unique("csv").to_lowercase();
    operator
        .send_json(
            Method::POST,
            "/admin/v1/operators",
            &json!({ "name": name, "role": "viewer" }),
        )
        .await;
    let document = Listener::Operator.document();
    let mut lists = 0;
    for (template, item) in document.served()["paths"].as_object().unwrap() {
        let contents = &item["get"]["responses"]["200"]["content"];
        let Some(example) = contents["text/csv"]["example"].as_str() else {
            continue;
        };
        lists += 1;
        let path = template
            .replace("{partner_id}", &partner.partner_id)
            .replace("{order_id}", order["order_id"].as_str().unwrap())
            .replace("{name}", &name);
        if path.contains('{') {
            continue;
        }
        let needed = match template.as_str() {
            "/admin/v1/audit" | "/admin/v1/orders" => format!("?partner_id={}", partner.partner_id),
            _ => String::new(),
        };
        let response = read_csv(shared(), &format!("{path}{needed}")).await;
        assert_eq!(response.status, 200, "{path}: {}", text_of(&response));
        assert_eq!(
            text_of(&response).lines().next(),
            example.lines().next(),
            "{path}"
        );
        assert!(example.lines().count() == 2, "{path}: {example}");
    }
    let pages = document.served()["paths"].as_object().unwrap().values();
    let has_cursor = |item: &&serde_json::Value| {
        item["get"]["responses"]["200"]["content"]["application/json"]["example"]
            .get("next_cursor")
            .is_some()
    };
    assert_eq!(lists, pages.filter(has_cursor).count());
    assert!(lists >= 30, "{lists}");
}
