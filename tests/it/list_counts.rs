//! Counts of lists: `count=true` of the operator API, `--count`, and the lists of the console.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_test_harness::{Operator, expect_error, expect_success, shared};

use crate::commands::{run_error, run_ok};
use crate::console::Browser;

#[tokio::test]
async fn count_has_the_entries_of_all_pages_that_match() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(3).await;
    let mut partner = operator.add_partner("100").await;
    for _ in 0..3 {
        expect_success(&partner.order(&sale, 1).await, 201);
    }
    let partner_id = &partner.partner_id.clone();
    let orders = format!("/admin/v1/orders?partner_id={partner_id}");
    let first = operator.get(&format!("{orders}&limit=2&count=true")).await;
    let entries = first["data"].as_array().unwrap().len();
    assert_eq!((entries, &first["count"]), (2, &json!(3)));
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = operator
        .get(&format!("{orders}&limit=2&cursor={cursor}&count=true"))
        .await;
    let entries = second["data"].as_array().unwrap().len();
    assert_eq!((entries, &second["count"]), (1, &json!(3)));
    for (path, count) in [
        (format!("{orders}&count=true&status=CANCELLED"), Some(0)),
        (format!("{orders}&count=true&status=CANCELLED,DELIVERED"), Some(3)),
        (orders.clone(), None),
        (format!("{orders}&count=false"), None),
        // Three debits and a top-up.
        (
            format!("/admin/v1/partners/{partner_id}/transactions?limit=1&count=true"),
            Some(4),
        ),
        (
            format!("/admin/v1/partners/{partner_id}/wallets?count=true"),
            Some(1),
        ),
    ] {
        let page = operator.get(&path).await;
        assert_eq!(
            page.get("count"),
            count.map(|count: i32| json!(count)).as_ref(),
            "{path}"
        );
    }
    for refused in [
        format!("{orders}&count=true&metadata=campaign:spring"),
        format!("{orders}&count=some"),
        format!("{orders}&count=true&count=true"),
        format!("{orders}&count=true&colour=red"),
    ] {
        let response = operator.call_json(Method::GET, &refused, "").await;
        expect_error(&response, 422, "VALIDATION_FAILED");
    }
    let of_partner = partner.get("/orders?count=true").await;
    expect_error(&of_partner, 422, "VALIDATION_FAILED");

    let list = ["order", "list", "--partner", partner_id, "--limit", "1"];
    let counted = run_ok(&[&list[..], &["--count"]].concat());
    assert!(counted.contains("Entries: 3"), "{counted}");
    assert!(!run_ok(&list).contains("Entries"));
    run_error(&["order", "list", "--csv", "--count"]);

    // The page of the console asks for the count when it is loaded.
    let mut browser = Browser::of(shared());
    let page = browser
        .read(&format!("/orders?partner_id={partner_id}&limit=2"))
        .await;
    let link = format!("/orders?partner_id={partner_id}&amp;limit=2&amp;count=true");
    assert!(page.contains(&format!(r#"hx-get="{link}""#)), "{page}");
    let counted = browser.read(&link.replace("&amp;", "&")).await;
    assert!(counted.contains(">3 entries<"), "{counted}");
}

#[tokio::test]
async fn every_list_of_operators_counts() {
    let mut operator = Operator::of(shared());
    let document = operator
        .call_without_token(Method::GET, "/openapi.json", &[])
        .await;
    let document = expect_success(&document, 200);
    let has_count = |path: &Value| {
        let parameters = path["get"]["parameters"].as_array().into_iter().flatten();
        parameters
            .filter(|parameter| parameter["name"] == "count")
            .count()
            == 1
    };
    let paths = document["paths"].as_object().unwrap().iter();
    let lists: Vec<_> = paths
        .filter(|(path, operations)| !path.contains('{') && has_count(operations))
        .map(|(path, _)| path)
        .collect();
    assert!(lists.len() > 12, "{lists:?}");
    for list in lists {
        let page = operator.get(&format!("{list}?count=true")).await;
        assert!(
            page["count"].is_u64() || page["count"].is_null(),
            "{list}: {page}"
        );
        assert!(page.get("count").is_some(), "{list}: {page}");
    }
}
