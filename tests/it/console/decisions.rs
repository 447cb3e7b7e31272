//! Decisions on orders in the console. The check `console-day` decides on payouts and on changes that need a
//! second operator.

use serde_json::json;
use vouchsafe_test_harness::{Operator, id_of, json_of, shared, text_of, unique};

use super::{Browser, forms};
use crate::approvals::{
    add_manual_product_under_approval, decisions_in_audit_log, place_order_awaiting_approval,
};

const UNREAD_CODE: &str = "CNRYCONSOLE";

async fn partner_name(operator: &mut Operator, partner_id: &str) -> String {
    let partner = operator.get(&format!("/admin/v1/partners/{partner_id}")).await;
    partner["name"].as_str().unwrap().to_owned()
}

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
    let digits = &order_id[order_id.len() - 8..];
    let partner_id = &partner.partner_id;
    for expected in [
        format!("title=\"{order_id}\"><a href=\"{path}\">ord_…{digits}</a>"),
        format!(
            "title=\"{partner_id}\"><a href=\"/partners/{partner_id}\">{}</a>",
            partner_name(&mut operator, partner_id).await
        ),
    ] {
        assert!(list.contains(&expected), "{expected} is not in {list}");
    }
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
        canceled.contains("REFUNDED") && forms(&canceled) == [format!("{path}/erase")],
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
    let link = |page: &str, relation: &str| {
        let link = page.split(&format!("<a rel=\"{relation}\" href=\"")).nth(1);
        let path = link.and_then(|rest| rest.split('"').next());
        path.unwrap_or_default().replace("&amp;", "&")
    };
    let mut last = String::new();
    for order_id in orders.iter().rev() {
        last = browser.read(&path).await;
        assert!(last.contains(&format!("href=\"/orders/{order_id}\"")), "{last}");
        path = link(&last, "next");
    }
    assert_eq!(path, "", "the last page has no next one");
    let second = browser.read(&link(&last, "prev")).await;
    assert!(
        second.contains(&format!("href=\"/orders/{}\"", orders[1])),
        "{second}"
    );
    assert_eq!(link(&second, "prev"), "", "the first page is before it");
}
