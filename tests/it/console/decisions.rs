//! Decisions in the console: orders, payouts, and changes that need a second operator.

use serde_json::{Value, json};
use vouchsafe_test_harness::{Instance, Operator, id_of, json_of, shared, text_of, unique};

use super::{Browser, forms};
use crate::approvals::{
    add_manual_product_under_approval, decisions_in_audit_log, place_order_awaiting_approval,
};
use crate::commands::run_with;
use crate::payouts::{payout_body, request_payout};

const UNREAD_CODE: &str = "CNRYCONSOLE";

#[tokio::test]
async fn order_is_found_approved_and_fulfilled() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let sale = add_manual_product_under_approval(&mut operator, 0).await;
    let order_id = place_order_awaiting_approval(&mut partner, &sale, 2).await;
    let path = format!("/orders/{order_id}");
    let mut browser = Browser::of(shared());
    let list = browser
        .read(&format!(
            "/orders?partner_id={}&status=&from=",
            partner.partner_id
        ))
        .await;
    assert!(
        list.contains(&format!("<a href=\"{path}\">{order_id}</a>")),
        "{list}"
    );
    let found = browser.open(&format!("/search?q={order_id}")).await;
    assert_eq!(
        (found.status.as_u16(), found.header("location")),
        (303, Some(path.as_str()))
    );

    let page = browser.read(&path).await;
    let [approve, reject, cancel] = ["approve", "reject", "cancel"].map(|verb| format!("{path}/{verb}"));
    assert_eq!(forms(&page), [&approve, &reject, &cancel]);
    let refused = browser.submit(&approve, &[("reason", "  ")]).await;
    assert_eq!(refused.status, 422);
    assert!(
        text_of(&refused).contains("<details class=\"action\" open>"),
        "{}",
        text_of(&refused)
    );
    let typed = "a <b>very</b> long story ".repeat(30);
    let refused = browser.submit(&reject, &[("reason", &typed)]).await;
    assert_eq!(refused.status, 422);
    let kept = typed.trim().replace('<', "&lt;").replace('>', "&gt;");
    assert!(text_of(&refused).contains(&kept), "what was typed is lost");

    let page = browser
        .submit_and_follow(&approve, &[("reason", "agreed by Ann")])
        .await;
    assert!(
        page.contains("The order was approved.") && page.contains("agreed by Ann"),
        "{page}"
    );
    let entries = decisions_in_audit_log(&mut operator, &order_id).await;
    assert_eq!(
        (&entries[0]["action"], &entries[0]["operator"]),
        (&json!("order.approve"), &json!("admin"))
    );
    let late = browser
        .submit(&reject, &[("reason", "too late, but typed")])
        .await;
    assert_eq!(late.status, 409);
    let late = text_of(&late);
    assert!(
        late.contains("ORDER_NOT_AWAITING_APPROVAL") && late.contains("too late, but typed"),
        "{late}"
    );

    let fulfil = format!("{path}/fulfil");
    let code = unique(UNREAD_CODE);
    for wrong in [
        format!("code,pin,colour\n{code},1234,red"),
        format!("{code};1234"),
        format!("code\n{code},1234"),
    ] {
        let refused = browser.submit(&fulfil, &[("vouchers", &wrong)]).await;
        assert_eq!(refused.status, 422);
        assert!(!text_of(&refused).contains(UNREAD_CODE), "a code is shown");
    }
    let vouchers = format!("code,pin\n{code},1234\n{code}-2,");
    let page = browser
        .submit_and_follow(&fulfil, &[("vouchers", &vouchers)])
        .await;
    assert!(
        page.contains("The vouchers were stored") && page.contains("DELIVERED"),
        "{page}"
    );
    assert!(!page.contains(UNREAD_CODE), "a code is shown");
    let canceled = browser
        .submit_and_follow(&cancel, &[("reason", "ordered twice")])
        .await;
    assert!(
        canceled.contains("REFUNDED") && forms(&canceled).is_empty(),
        "{canceled}"
    );
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn list_is_paged_and_keeps_its_filter() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let sale = operator.add_stocked_product(3).await;
    let mut orders = Vec::new();
    for _ in 0..3 {
        orders.push(id_of(&json_of(&partner.order(&sale, 1).await)));
    }
    let mut browser = Browser::of(shared());
    let mut path = format!("/orders?partner_id={}&limit=1", partner.partner_id);
    for order_id in orders.iter().rev() {
        let page = browser.read(&path).await;
        assert!(page.contains(&format!("href=\"/orders/{order_id}\"")), "{page}");
        let next = page.split("<a rel=\"next\" href=\"").nth(1);
        path = next
            .and_then(|rest| rest.split('"').next())
            .unwrap_or_default()
            .replace("&amp;", "&");
    }
    assert_eq!(path, "", "the last page has no next one");
}

#[tokio::test]
async fn payout_is_recorded_as_paid_once() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let response = request_payout(&mut partner, &unique("key"), &payout_body("40.00")).await;
    let payout: Value = json_of(&response);
    let path = format!("/payouts/{}", payout["payout_id"].as_str().unwrap());
    let mut browser = Browser::of(shared());
    let overview = browser.read("/payouts?status=PENDING").await;
    assert!(overview.contains(&path), "{overview}");
    let page = browser
        .submit_and_follow(
            &format!("{path}/pay"),
            &[("reference", "bank-4711"), ("reason", "")],
        )
        .await;
    assert!(
        page.contains("recorded as paid") && page.contains("bank-4711"),
        "{page}"
    );
    assert!(forms(&page).is_empty(), "{page}");
    let again = browser
        .submit(
            &format!("{path}/fail"),
            &[("reason", "returned"), ("reference", "")],
        )
        .await;
    assert_eq!(again.status, 409);
    assert!(text_of(&again).contains("PAYOUT_NOT_PENDING"));
}

#[tokio::test]
async fn change_waits_for_a_second_operator_and_the_later_decision_sees_the_earlier() {
    let service = Instance::start_with(&[("VOUCHSAFE_FOUR_EYES", "USD=1000")]);
    let output = run_with(
        &service,
        &["operator", "create", "sam", "--admin", "--json"],
        None,
    );
    let issued: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut partner = Operator::of(&service).add_partner("10").await;
    let mut browser = Browser::of(&service);
    let mut sam = Browser::of(&service).with_token(issued["token"].as_str().unwrap());
    let page = format!("/partners/{}", partner.partner_id);
    let top_up = [
        ("currency", "USD"),
        ("amount", "5000.00"),
        ("reference", "wire-1"),
    ];
    let response = browser.submit(&format!("{page}/top-up"), &top_up).await;
    assert_eq!(response.status, 303);
    let request = response.header("location").unwrap().to_owned();
    let shown = browser.read(&request).await;
    assert!(
        shown.contains("needs a second operator") && shown.contains("wire-1"),
        "{shown}"
    );
    let request = request.split('?').next().unwrap();
    assert!(
        browser.read("/").await.contains(request),
        "the overview has no request"
    );
    let own = browser.submit(&format!("{request}/confirm"), &[]).await;
    assert_eq!(own.status, 403);
    assert!(text_of(&own).contains("OWN_CHANGE_REQUEST"));
    let done = sam.submit(&format!("{request}/confirm"), &[]).await;
    assert_eq!(done.status, 200);
    assert!(text_of(&done).contains("The change was carried out") && text_of(&done).contains("5000.00"));
    assert_eq!(partner.balance("USD").await, "5010.00");
    let late = browser
        .submit(&format!("{request}/decline"), &[("reason", "too late")])
        .await;
    assert_eq!(late.status, 409);
    assert!(
        text_of(&late).contains("sam has confirmed this request"),
        "{}",
        text_of(&late)
    );

    let issue = browser
        .submit(&format!("{page}/issue"), &[("allowlist", "")])
        .await;
    let request = issue
        .header("location")
        .unwrap()
        .split('?')
        .next()
        .unwrap()
        .to_owned();
    let declined = sam
        .submit_and_follow(&format!("{request}/decline"), &[("reason", "ask Jo")])
        .await;
    assert!(
        declined.contains("The request was declined.") && declined.contains("ask Jo"),
        "{declined}"
    );
}
