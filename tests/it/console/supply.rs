//! Stock, vendors, webhooks and operators in the console.

use serde_json::json;
use vouchsafe_test_harness::{Operator, json_of, shared, text_of, unique};

use super::{Browser, forms};
use crate::approvals::add_manual_product_under_approval;

const CODE: &str = "CNRYSTOCK";

#[tokio::test]
async fn import_reports_rows_and_shows_no_code() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let page = format!("/products/{}", sale.product_id);
    let mut browser = Browser::of(shared());
    let csv = format!(
        "code,pin\n{CODE}-{0}-1,1\n{CODE}-{0}-2,2\n{CODE}-{0}-2,3,4,5,6,7\n",
        sale.product_id
    );
    let wrong = [("denomination", "7"), ("batch", "first")];
    let file = ("vouchers.csv", csv.as_str());
    let refused = browser.submit_file(&format!("{page}/import"), &wrong, file).await;
    assert_eq!(refused.status, 422);
    let refused = text_of(&refused);
    assert!(
        refused.contains("value=\"7\"") && refused.contains("value=\"first\""),
        "{refused}"
    );
    assert!(!refused.contains(CODE), "a code is shown");
    let fields = [("denomination", "25"), ("batch", "first")];
    let report = browser
        .submit_file(&format!("{page}/import"), &fields, file)
        .await;
    assert_eq!(report.status, 200);
    let report = text_of(&report);
    assert!(
        report.contains("<dt>Imported</dt><dd>2</dd>")
            && report.contains("<dt>Rejected count</dt><dd>1</dd>"),
        "{report}"
    );
    assert!(
        report.contains("<dd>first</dd>") && !report.contains(CODE),
        "{report}"
    );
    // Rejected lines are a table and a file, and the page says so first.
    assert!(
        report.contains("<strong>1 rejected: see the table.</strong>")
            && report.contains("<th scope=\"row\">4</th>")
            && report.contains("href=\"data:text/csv;charset=utf-8,number%2Creason%0D%0A4%2C")
            && report.contains("download=\"rejected.csv\""),
        "{report}"
    );
    let levels = browser
        .read(&format!("/stock?product_id={}", sale.product_id))
        .await;
    assert!(
        levels.contains(">25.00 USD</td><td class=\"number\" data-label=\"Free\">2</td>"),
        "{levels}"
    );
}

#[tokio::test]
async fn vendor_is_changed_and_its_credential_is_not_shown_again() {
    let mut operator = Operator::of(shared());
    let sale = add_manual_product_under_approval(&mut operator, 0).await;
    let product = operator
        .get(&format!("/admin/v1/products/{}", sale.product_id))
        .await;
    let vendor = product["vendor"].as_str().unwrap();
    let page = format!("/vendors/{vendor}");
    let mut browser = Browser::of(shared());
    let change = [
        ("adapter", "http"),
        ("url", ""),
        ("credentials", "s3cret-token"),
        ("concurrency", "9"),
    ];
    let refused = browser.submit(&format!("{page}/change"), &change).await;
    assert_eq!(refused.status, 422);
    let refused = text_of(&refused);
    assert!(
        refused.contains("<option selected>http</option>") && refused.contains("value=\"9\""),
        "{refused}"
    );
    assert!(!refused.contains("s3cret-token"), "a credential is shown");
    let change = [
        ("adapter", "manual"),
        ("url", ""),
        ("credentials", ""),
        ("concurrency", "9"),
    ];
    let changed = browser
        .submit_and_follow(&format!("{page}/change"), &change)
        .await;
    assert!(
        changed.contains("The vendor was changed.") && changed.contains("<dd>9</dd>"),
        "{changed}"
    );
}

#[tokio::test]
async fn webhook_is_shown_escaped_and_a_range_is_sent_again() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let sale = operator.add_stocked_product(1).await;
    let endpoint = json!({ "url": "http://127.0.0.1:9/closed", "events": ["order.delivered"], "description": "a\u{202e}b" });
    let created = partner
        .client
        .send_signed(
            hyper::Method::POST,
            "/webhooks",
            endpoint.to_string(),
            hyper::HeaderMap::new(),
        )
        .await
        .unwrap();
    let page = format!("/webhooks/{}", json_of(&created)["webhook_id"].as_str().unwrap());
    partner.order(&sale, 1).await;
    let mut browser = Browser::of(shared());
    let range = [("from", "2020-01-01T00:00:00Z"), ("to", "")];
    let shown = browser
        .submit_and_follow(&format!("{page}/replay-range"), &range)
        .await;
    assert!(
        shown.contains("The events are sent again.") && shown.contains("\\u{202e}"),
        "{shown}"
    );
}

#[tokio::test]
async fn operator_gets_an_account_a_token_and_another_role() {
    let mut browser = Browser::of(shared());
    let name = unique("jo").to_lowercase().replace('_', "-");
    let list = browser
        .submit_and_follow("/operators/create", &[("name", &name), ("role", "operator")])
        .await;
    assert!(list.contains("The operator was created."), "{list}");
    let page = format!("/operators/{name}/tokens");
    let issued = browser
        .submit(&format!("{page}/issue"), &[("days", "7"), ("token_sha256", "")])
        .await;
    assert_eq!(issued.status, 200);
    let issued = text_of(&issued);
    let token = issued
        .split("<dt>Token</dt><dd><code data-copy>")
        .nth(1)
        .unwrap()
        .split('<')
        .next()
        .unwrap();
    let mut jo = Browser::of(shared()).with_token(token);
    assert!(jo.read("/").await.contains(&format!("{name} · operator")));
    let tokens = browser.read(&page).await;
    assert!(!tokens.contains(token), "the token is shown again");
    let id = tokens
        .split("name=\"token_id\" value=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    browser
        .submit_and_follow("/operators/role", &[("name", &name), ("role", "viewer")])
        .await;
    assert!(jo.read("/").await.contains(&format!("{name} · viewer")));
    assert!(
        forms(&jo.read(&page).await).is_empty(),
        "a viewer may not issue tokens"
    );
    browser
        .submit_and_follow(&format!("{page}/revoke"), &[("token_id", id)])
        .await;
    assert_eq!(jo.open("/").await.status, 401);
    browser
        .submit_and_follow("/operators/disable", &[("name", &name)])
        .await;
    let audit = browser.read(&format!("/audit?subject={name}")).await;
    assert!(
        audit.contains("operator.create") && audit.contains("operator.change"),
        "{audit}"
    );
}

#[tokio::test]
async fn void_names_all_rejected_lines_and_asks_with_the_number_of_a_denomination() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let form = format!("/products/{}/void", sale.product_id);
    let mut browser = Browser::of(shared());
    let reason = ("reason", "recalled by the brand");
    let lines = ("codes", "code,pin\r\nA-1,1\r\nB-1,2,3\r\n,4");
    let refused = browser
        .submit(&form, &[("denomination", ""), lines, reason])
        .await;
    assert_eq!(refused.status, 422);
    let page = text_of(&refused);
    assert!(page.contains("Nothing was changed"), "{page}");
    assert!(
        page.contains("line 3: ") && page.contains("line 4: ") && !page.contains("codes["),
        "{page}"
    );

    // Without a header, and unknown: the page does not say that something was voided.
    let unknown = ("codes", "NEVER-IMPORTED-1\r\nNEVER-IMPORTED-2");
    let result = browser
        .submit(&form, &[("denomination", ""), unknown, reason])
        .await;
    assert_eq!(result.status, 200);
    let page = text_of(&result);
    assert!(
        page.contains("<strong>2 rejected: see the table.</strong>")
            && page.contains("<dt>Voided</dt><dd>0</dd>")
            && page.contains("<th scope=\"row\">2</th>")
            && page.matches(">UNKNOWN<").count() == 2
            && page.contains("%2CUNKNOWN%0D%0A"),
        "{page}"
    );

    let asked = browser
        .submit(&form, &[("denomination", "25"), ("codes", ""), reason])
        .await;
    assert_eq!(asked.status, 422);
    let page = text_of(&asked);
    assert!(
        page.contains("2 vouchers would be voided; give this number to void them"),
        "{page}"
    );
    let fields = [
        ("denomination", "25"),
        ("expected_count", "2"),
        ("codes", ""),
        reason,
    ];
    let voided = browser.submit(&form, &fields).await;
    assert!(
        text_of(&voided).contains("<dt>Voided</dt><dd>2</dd>"),
        "{}",
        text_of(&voided)
    );
}
