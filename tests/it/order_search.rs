//! Order search and audit log search for operators.

use hyper::Method;
use serde_json::{Value, json};

use crate::commands::{run_error, run_json, run_ok};
use vouchsafe_test_harness::{
    Operator, Partner, expect_error, expect_success, id_of, order_body, shared, unique,
};

/// Places an order with this reference: delivered from stock, or pending forever at a manual vendor.
async fn place_order(operator: &mut Operator, partner: &mut Partner, route: &str, reference: &str) -> Value {
    let sale = operator.add_product(route, usize::from(route == "stock")).await;
    let mut body = order_body(&sale, 1);
    body["reference"] = json!(reference);
    let response = partner.send(&unique("key"), &body).await;
    assert!(response.status.is_success(), "{response:?}");
    serde_json::from_slice(&response.body).unwrap()
}

fn ids(orders: &[Value]) -> Vec<&Value> {
    orders.iter().map(|order| &order["order_id"]).collect()
}

#[tokio::test]
async fn operator_finds_orders_of_all_partners() {
    let mut operator = Operator::of(shared());
    let (mut one, mut two) = (
        operator.add_partner("1000").await,
        operator.add_partner("1000").await,
    );
    let reference = unique("po");
    let first = place_order(&mut operator, &mut one, "stock", &reference).await;
    let second = place_order(&mut operator, &mut two, "vendor", &reference).await;
    let third = place_order(&mut operator, &mut one, "stock", &unique("po")).await;
    let text = |order: &Value, name: &str| order[name].as_str().unwrap().to_owned();
    let (begin, end) = (text(&second, "created_at"), text(&third, "created_at"));
    let (partner_id, third_id) = (&one.partner_id, text(&third, "order_id"));
    for (query, expected) in [
        (format!("reference={reference}"), vec![&second, &first]),
        (format!("reference={reference}&limit=1"), vec![&second, &first]),
        (format!("reference={reference}&status=PENDING"), vec![&second]),
        (format!("reference={reference}&from={begin}"), vec![&second]),
        (format!("reference={reference}&to={begin}"), vec![&first]),
        (format!("partner_id={partner_id}"), vec![&third, &first]),
        (format!("partner_id={partner_id}&to={end}"), vec![&first]),
        (
            format!("partner_id={partner_id}&reference={reference}"),
            vec![&first],
        ),
        (format!("order_id={third_id}"), vec![&third]),
        (
            format!("voucher_id={}", text(&third["vouchers"][0], "voucher_id")),
            vec![&third],
        ),
        (
            "voucher_id=vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f".to_owned(),
            vec![],
        ),
        (
            format!("order_id={third_id}&partner_id={}", two.partner_id),
            vec![],
        ),
    ] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = operator.get(&format!("/admin/v1/orders?{query}{cursor}")).await;
            found.extend(page["data"].as_array().unwrap().iter().cloned());
            let Some(next) = page["next_cursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        let expected: Vec<_> = expected.iter().map(|order| &order["order_id"]).collect();
        assert_eq!(ids(&found), expected, "{query}");
    }
    let all = operator.get("/admin/v1/orders?limit=100").await;
    assert!(
        all["data"]
            .as_array()
            .unwrap()
            .iter()
            .any(|order| order["order_id"] == *third_id)
    );
}

#[tokio::test]
async fn operator_order_view_adds_partner_id_and_trace() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let order = place_order(&mut operator, &mut partner, "stock", "PO 1").await;
    let order_id = order["order_id"].as_str().unwrap();
    let path = format!("/admin/v1/orders/{order_id}");
    let response = operator.call_json(Method::GET, &path, "").await;
    let mut shown = expect_success(&response, 200);
    let mut take = |field| shown.as_object_mut().unwrap().remove(field);
    assert!(take("trace").is_some_and(|trace| trace.is_object()));
    let partner_id = take("partner_id");
    assert_eq!((partner_id, &shown), (Some(json!(partner.partner_id)), &order));
    for (path, status, code) in [
        (
            "/admin/v1/orders/ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
            404,
            "ORDER_NOT_FOUND",
        ),
        ("/admin/v1/orders/1", 404, "ORDER_NOT_FOUND"),
        ("/admin/v1/orders?partner_id=1", 422, "VALIDATION_FAILED"),
        ("/admin/v1/orders?status=SOLD", 422, "VALIDATION_FAILED"),
        ("/admin/v1/orders?from=soon", 422, "VALIDATION_FAILED"),
        ("/admin/v1/orders?cursor=AAAA", 400, "INVALID_CURSOR"),
        ("/admin/v1/partners?cursor=AAAA", 400, "INVALID_CURSOR"),
    ] {
        expect_error(&operator.call_json(Method::GET, path, "").await, status, code);
    }
}

#[tokio::test]
async fn events_of_an_order_are_those_of_its_partners_feed() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let sale = operator.add_stocked_product(4).await;
    let other = partner.send(&unique("key"), &order_body(&sale, 1)).await;
    expect_success(&other, 201);
    let placed = partner.send(&unique("key"), &order_body(&sale, 3)).await;
    let order_id = id_of(&expect_success(&placed, 201));
    let path = format!("/orders/{order_id}/cancel");
    expect_success(&partner.send_signed(Method::POST, &path, "").await, 200);

    let feed = expect_success(&partner.get("/events?limit=100").await, 200);
    let is_of_order = |event: &&Value| event["data"]["order_id"] == *order_id;
    let expected: Vec<_> = feed["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_of_order)
        .collect();
    let names: Vec<_> = expected
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(names.first(), Some(&"order.created"), "{names:?}");
    assert_eq!(names.last(), Some(&"order.refunded"), "{names:?}");

    let path = format!("/admin/v1/orders/{order_id}/events");
    for limit in [100, 2, 1] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = operator.get(&format!("{path}?limit={limit}{cursor}")).await;
            found.extend(page["data"].as_array().unwrap().iter().cloned());
            let Some(next) = page["next_cursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{limit}");
    }
    let listed = run_ok(&["order", "events", &order_id]);
    for name in names {
        assert!(listed.contains(name), "{listed}");
    }
}

#[tokio::test]
async fn order_commands_find_orders() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let reference = unique("po");
    let order = place_order(&mut operator, &mut partner, "stock", &reference).await;
    let order_id = order["order_id"].as_str().unwrap();
    let table = run_ok(&[
        "order",
        "list",
        "--partner",
        &partner.partner_id,
        "--status",
        "DELIVERED",
    ]);
    assert!(
        table.contains("REFERENCE") && table.contains(order_id) && table.contains(&reference),
        "{table}"
    );
    let found = run_json(&["order", "list", "--reference", &reference, "--since", "1h"]);
    assert_eq!(ids(found["data"].as_array().unwrap()), [&order["order_id"]]);
    for until in ["2020-01-01", "30m"] {
        let none = run_json(&["order", "list", "--order", order_id, "--until", until]);
        assert_eq!(none["data"], json!([]), "{until}");
    }
    let shown = run_ok(&["order", "show", order_id]);
    assert!(
        shown.contains("voucher_id") && shown.contains(&partner.partner_id),
        "{shown}"
    );
    for (option, value, expected) in [
        ("--status", "SOLD", "PARTIALLY_DELIVERED"),
        ("--since", "yesterday", "an age such as 30m"),
        ("--pending-reason", "MONEY", "APPROVAL"),
    ] {
        let refused = run_error(&["order", "list", option, value]);
        assert!(refused.contains(expected), "{refused}");
    }
}

#[tokio::test]
async fn pending_orders_are_listed_with_their_reason() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    place_order(&mut operator, &mut partner, "stock", "delivered").await;
    let bought = place_order(&mut operator, &mut partner, "vendor", "bought").await;
    operator
        .patch_partner(&partner, &json!({ "approval_rule": { "first_orders": 9 } }))
        .await;
    let approval = place_order(&mut operator, &mut partner, "stock", "approval").await;
    let partner_id = partner.partner_id.as_str();
    for (reason, expected) in [("VENDOR", &bought), ("APPROVAL", &approval)] {
        let list = [
            "order",
            "list",
            "--partner",
            partner_id,
            "--pending-reason",
            reason,
        ];
        let found = run_json(&list);
        assert_eq!(ids(found["data"].as_array().unwrap()), [&expected["order_id"]]);
        let table = run_ok(&list);
        let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row[1], "PENDING", "{table}");
        assert!(row.contains(&reason), "{table}");
    }
    let query = format!("partner_id={partner_id}&pending_reason=VENDOR");
    for (more, expected) in [("", 1), ("&status=PENDING", 1), ("&status=DELIVERED", 0)] {
        let path = format!("/admin/v1/orders?{query}{more}");
        let found = operator.get(&path).await;
        assert_eq!(found["data"].as_array().unwrap().len(), expected, "{path}");
    }
}

/// A cursor is bound to its filters, and an age is another time in each command: the note names the time.
#[tokio::test]
async fn next_page_of_an_age_is_listed_with_the_options_shown() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let first = place_order(&mut operator, &mut partner, "stock", "first").await;
    place_order(&mut operator, &mut partner, "stock", "second").await;
    let list = ["order", "list", "--partner", &partner.partner_id, "--limit", "1"];
    let page = run_ok(&[&list[..], &["--since", "1h"]].concat());
    let next = page
        .lines()
        .find_map(|line| line.strip_prefix("Next page: "))
        .unwrap();
    let next: Vec<_> = next.split(' ').collect();
    let second_page = run_ok(&[&list[..], &next].concat());
    assert!(
        second_page.contains(first["order_id"].as_str().unwrap()),
        "{second_page}"
    );
    let cursor = [&list[..], &["--since", "1h"], &next[next.len() - 2..]].concat();
    assert!(run_error(&cursor).contains("an age such as 1h is another time"));
}

#[tokio::test]
async fn audit_log_filters_by_time() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    for seconds in [60, 120, 180] {
        operator
            .patch_partner(&partner, &json!({ "cancel_window_s": seconds }))
            .await;
    }
    let base = format!(
        "/admin/v1/audit?subject={}&action=partner.change",
        partner.partner_id
    );
    let all = operator.get(&base).await["data"].as_array().unwrap().clone();
    assert_eq!(all.len(), 3);
    let at = |n: usize| all[n]["at"].as_str().unwrap();
    for (query, expected) in [
        (format!("&from={}", at(1)), &all[..2]),
        (format!("&to={}", at(1)), &all[2..]),
        (format!("&from={}&to={}&operator=admin", at(2), at(0)), &all[1..]),
        ("&to=2020-01-01".to_owned(), &[]),
    ] {
        let found = operator.get(&format!("{base}{query}")).await;
        assert_eq!(found["data"].as_array().unwrap(), expected, "{query}");
    }
    let entries = run_json(&["audit", "--subject", &partner.partner_id, "--since", at(0)]);
    assert_eq!(entries["data"].as_array().unwrap().len(), 1);
    let page = format!("{base}&from=soon");
    let response = operator.call_json(Method::GET, &page, "").await;
    expect_error(&response, 422, "VALIDATION_FAILED");
}

#[tokio::test]
async fn text_of_partner_reaches_no_terminal_raw() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let sale = operator.add_product("stock", 1).await;
    let reference = unique("po");
    let mut body = order_body(&sale, 1);
    body["reference"] = json!(reference);
    body["metadata"] = json!({ "note": "one\nstatus  CANCELLED\u{202e}gpj" });
    let order = expect_success(&partner.send(&unique("key"), &body).await, 201);
    let order_id = order["order_id"].as_str().unwrap();
    let list = [
        "order",
        "list",
        "--partner",
        &partner.partner_id,
        "--reference",
        &reference,
    ];
    for (command, escapes) in [
        (
            &["order", "show", order_id][..],
            &[r"\u202egpj", r"one\nstatus  CANCELLED"][..],
        ),
        (&list, &[]),
        (&[&list[..], &["--json"]].concat(), &[r"\u202egpj"]),
    ] {
        let output = run_ok(command);
        assert!(!output.contains('\u{202e}'), "{output}");
        for escape in escapes {
            assert!(output.contains(escape), "{output}");
        }
    }
    let orders = run_json(&list);
    assert_eq!(orders["data"][0]["reference"], json!(reference));
    for (field, value) in [
        ("reference", json!("\u{1b}[2J")),
        ("metadata", json!({ "note": "\u{9b}2J" })),
        ("metadata", json!({ "no\nte": 1 })),
    ] {
        let mut body = order_body(&sale, 1);
        body[field] = value;
        let refused = expect_error(
            &partner.send(&unique("key"), &body).await,
            422,
            "VALIDATION_FAILED",
        );
        assert_eq!(refused["details"][0]["field"], json!(field));
    }
}
