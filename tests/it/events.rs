//! Event feed: every event of a partner, in order and without gaps.

use std::collections::BTreeMap;

use hyper::Method;
use serde_json::{Value, json};

use vouchsafe_test_harness::{Operator, expect_error, expect_success, id_of, order_body, shared, unique};

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn immediate_delivery_emits_created_issued_and_delivered() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    let mut body = order_body(&sale, 2);
    (body["reference"], body["metadata"]) = (json!("PO-1"), json!({ "campaign": "spring" }));
    let order = expect_success(&partner.send(&unique("key"), &body).await, 201);
    let events = partner.list_all("/events").await;
    assert_eq!(
        kinds(&events),
        [
            "order.created",
            "voucher.issued",
            "voucher.issued",
            "order.delivered"
        ]
    );
    for (sequence, event) in (1..).zip(&events) {
        assert_eq!(event["data"]["sequence"], sequence);
        assert_eq!(event["created_at"], events[0]["created_at"]);
        assert!(event["event_id"].as_str().unwrap().starts_with("evt_"));
    }
    let delivered = &events[3]["data"];
    let vouchers = order["vouchers"].as_array().unwrap().iter();
    let vouchers = vouchers.map(|voucher| {
        json!({ "voucher_id": voucher["voucher_id"], "product_id": voucher["product_id"], "expiry": voucher["expiry"] })
    });
    let vouchers: Vec<_> = vouchers.collect();
    assert_eq!(
        delivered,
        &json!({
            "order_id": order["order_id"], "status": "DELIVERED", "total_amount": order["total_amount"],
            "currency": "USD", "fulfilled_from": "cache", "reference": "PO-1", "metadata": { "campaign": "spring" },
            "vouchers": vouchers, "voucher_count": 2, "sequence": 4,
        })
    );
    assert_eq!(events[1]["data"]["voucher_id"], vouchers[0]["voucher_id"]);
}

#[tokio::test]
async fn feed_after_any_event_has_no_gap() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(40).await;
    let mut partner = operator.add_partner("10000").await;
    let mut orders = Vec::new();
    for quantity in 1..=6 {
        let order = expect_success(&partner.order(&sale, quantity).await, 201);
        orders.push(id_of(&order));
    }
    let path = format!("/orders/{}/cancel", orders[0]);
    expect_success(&partner.send_signed(Method::POST, &path, "").await, 200);
    let all = partner.list_all("/events?limit=100").await;
    assert_eq!(all.len(), 6 * 2 + 21 + 2);
    assert_eq!(partner.list_all("/events?limit=7").await, all);
    let last = &all[all.len() - 2..];
    assert_eq!(kinds(last), ["order.cancelled", "order.refunded"]);
    assert_eq!(
        (&last[0]["data"]["status"], &last[0]["data"]["by"]),
        (&json!("CANCELLED"), &json!("partner"))
    );
    let refund = &last[1]["data"]["refund"];
    assert_eq!(
        (&refund["amount"], &refund["scope"]),
        (&json!(25.0), &json!("full"))
    );
    for position in [0, 1, 2, 5, 20, all.len() - 1] {
        let id = all[position]["event_id"].as_str().unwrap();
        let rest = partner.list_all(&format!("/events?limit=9&after={id}")).await;
        assert_eq!(rest, all[position + 1..], "behind {position}");
    }
    let mut sequences: BTreeMap<&str, u64> = BTreeMap::new();
    for event in &all {
        let next = sequences
            .entry(event["data"]["order_id"].as_str().unwrap())
            .or_default();
        *next += 1;
        assert_eq!(event["data"]["sequence"], *next);
    }
    let mut other = operator.add_partner("100").await;
    assert_eq!(other.list_all("/events").await, Vec::<Value>::new());
    let foreign = all[0]["event_id"].as_str().unwrap();
    for unknown in [foreign, "evt_1", "1"] {
        let response = other.get(&format!("/events?after={unknown}")).await;
        expect_error(&response, 404, "EVENT_NOT_FOUND");
    }
    expect_error(&partner.get("/events?limit=0").await, 422, "VALIDATION_FAILED");
}
