//! Filters of `GET /orders` and `GET /events`, and long polls of both.

use hyper::Method;
use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::partner::unix_seconds;
use vouchsafe_test_harness::{
    Operator, Partner, expect_error, expect_success, id_of, order_body, shared, unique,
};

fn ids(orders: &[Value]) -> Vec<&str> {
    let ids = orders.iter().map(|order| order["order_id"].as_str().unwrap());
    ids.collect()
}

async fn post(partner: &mut Partner, path: &str) -> Value {
    expect_success(&partner.send_signed(Method::POST, path, "").await, 200)
}

fn before_now(duration: Duration) -> String {
    let now = OffsetDateTime::from_unix_timestamp(unix_seconds().cast_signed()).unwrap();
    let at = now - duration;
    at.format(&Rfc3339).unwrap()
}

/// Ids of a delivered, a refunded and an open order, oldest first.
async fn three_orders(operator: &mut Operator, partner: &mut Partner) -> [String; 3] {
    let stocked = operator.add_stocked_product(2).await;
    let bought = operator.add_product("vendor", 0).await;
    let mut body = order_body(&stocked, 1);
    body["metadata"] = json!({ "campaign": "spring:2", "n": 1.5 });
    let delivered = expect_success(&partner.send(&unique("key"), &body).await, 201);
    let refunded = expect_success(&partner.order(&stocked, 1).await, 201);
    post(partner, &format!("/orders/{}/cancel", id_of(&refunded))).await;
    let open = expect_success(&partner.order(&bought, 1).await, 202);
    [&delivered, &refunded, &open].map(|order| id_of(order).to_owned())
}

/// The database's JSON type for searching refuses this number.
#[tokio::test]
async fn metadata_filter_compares_numbers_as_they_were_sent() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("100").await;
    let mut body = order_body(&sale, 1);
    body["metadata"] = json!({ "n": "tiny" });
    let body = body.to_string().replace(r#""tiny""#, "1e-20000");
    let order = expect_success(&partner.send_text(&unique("key"), &body).await, 201);
    let hour_ago = before_now(Duration::HOUR);
    for (value, expected) in [("1e-20000", 1), ("0", 0)] {
        let listed = partner
            .list_all(&format!("/orders?metadata=n:{value}&from={hour_ago}"))
            .await;
        assert_eq!(listed.len(), expected, "{value}");
        assert!(listed.iter().all(|found| found["order_id"] == order["order_id"]));
    }
}

#[tokio::test]
async fn orders_are_filtered_by_statuses_state_change_and_metadata() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let [delivered, refunded, open] = three_orders(&mut operator, &mut partner).await;
    let hour_ago = before_now(Duration::HOUR);
    let unknown = unique("value");
    for (query, expected) in [
        (
            "status=DELIVERED,REFUNDED".to_owned(),
            vec![&refunded, &delivered],
        ),
        ("status=REFUNDED,CANCELLED".to_owned(), vec![&refunded]),
        ("closed=false".to_owned(), vec![&open]),
        ("closed=true".to_owned(), vec![&refunded, &delivered]),
        (
            format!("updated_from={hour_ago}"),
            vec![&open, &refunded, &delivered],
        ),
        (
            format!("updated_from={hour_ago}&status=REFUNDED"),
            vec![&refunded],
        ),
        (
            format!("metadata=campaign:spring:2&from={hour_ago}"),
            vec![&delivered],
        ),
        (format!("metadata=n:1.5&from={hour_ago}"), vec![&delivered]),
        (format!("metadata=campaign:{unknown}&from={hour_ago}"), vec![]),
    ] {
        for limit in [100, 1] {
            let listed = partner.list_all(&format!("/orders?limit={limit}&{query}")).await;
            assert_eq!(ids(&listed), expected, "{query}");
        }
    }
    for (query, field) in [
        ("status=", "status"),
        ("status=DELIVERED,SOLD", "status"),
        ("closed=maybe", "closed"),
        ("metadata=campaign", "metadata"),
        ("metadata=campaign:spring", "from"),
        ("metadata=campaign:spring&from=2026-01-01&to=2026-02-01", "from"),
        ("updated_from=2020-01-01", "updated_from"),
    ] {
        let response = partner.get(&format!("/orders?{query}")).await;
        let error = expect_error(&response, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], field, "{query}");
    }
}

#[tokio::test]
async fn events_are_filtered_by_type_and_order() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let sale = operator.add_stocked_product(5).await;
    let first = expect_success(&partner.order(&sale, 2).await, 201);
    let second = expect_success(&partner.order(&sale, 3).await, 201);
    post(&mut partner, &format!("/orders/{}/cancel", id_of(&first))).await;
    let all = partner.list_all("/events").await;
    let is_of = |event: &Value, order: &Value| event["data"]["order_id"] == order["order_id"];
    let is_kind = |event: &Value, kinds: &[&str]| kinds.contains(&event["event"].as_str().unwrap());
    let select = |is_wanted: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        all.iter().filter(|event| is_wanted(event)).cloned().collect()
    };
    let kinds = ["order.delivered", "order.refunded"];
    let order_id = |order: &Value| id_of(order).to_owned();
    for (query, expected) in [
        (
            "event=order.delivered,order.refunded".to_owned(),
            select(&|event| is_kind(event, &kinds)),
        ),
        (
            format!("order_id={}", order_id(&first)),
            select(&|event| is_of(event, &first)),
        ),
        (
            format!("order_id={}", order_id(&second)),
            select(&|event| is_of(event, &second)),
        ),
        (
            format!("order_id={}&event=voucher.issued", order_id(&second)),
            select(&|event| is_of(event, &second) && is_kind(event, &["voucher.issued"])),
        ),
    ] {
        assert!(!expected.is_empty(), "{query}");
        for limit in [100, 2, 1] {
            let listed = partner.list_all(&format!("/events?limit={limit}&{query}")).await;
            assert_eq!(listed, expected, "{query} {limit}");
        }
    }
    let of_first = select(&|event| is_of(event, &first));
    let after = of_first[0]["event_id"].as_str().unwrap();
    let rest = format!("/events?order_id={}&after={after}", order_id(&first));
    assert_eq!(partner.list_all(&rest).await, of_first[1..]);
    let other = format!("/events?order_id={}&after={after}", order_id(&second));
    expect_error(&partner.get(&other).await, 422, "VALIDATION_FAILED");
    expect_error(
        &partner.get("/events?event=order.sold").await,
        422,
        "VALIDATION_FAILED",
    );
}

async fn wait(partner: &mut Partner, path: &str, preference: &str) -> ApiResponse {
    partner.get_with_header(path, ("prefer", preference)).await
}

#[tokio::test]
async fn empty_page_of_events_waits_for_the_next_one_of_its_type() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let sale = operator.add_stocked_product(2).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let newest = partner.list_all("/events").await.pop().unwrap();
    let path = format!(
        "/events?event=order.refunded&after={}",
        newest["event_id"].as_str().unwrap()
    );
    let none = wait(&mut partner, &path, "wait=1").await;
    assert_eq!(expect_success(&none, 200)["data"], json!([]));
    assert_eq!(none.header("preference-applied"), Some("wait=1"));
    let mut waiting = partner.reconnect();
    let change = async {
        let order = expect_success(&partner.order(&sale, 1).await, 201);
        post(&mut partner, &format!("/orders/{}/cancel", id_of(&order))).await
    };
    let (found, order) = tokio::join!(wait(&mut waiting, &path, "wait=30"), change);
    let found = expect_success(&found, 200);
    assert_eq!(found["data"][0]["data"]["order_id"], order["order_id"]);
    assert_eq!(found["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn order_is_waited_for_until_it_is_closed() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let body = json!({ "items": [{ "product_id": "sbx-slow", "denomination": 25, "quantity": 2 }] });
    let order = expect_success(&partner.send(&unique("key"), &body).await, 202);
    let path = format!("/orders/{}", id_of(&order));
    let advance = format!("/sandbox{path}/advance");
    let partly = post(&mut partner, &advance).await;
    assert_eq!(
        (&partly["status"], &partly["closed"]),
        (&json!("PARTIALLY_DELIVERED"), &json!(false))
    );
    let mut waiting = partner.reconnect();
    let (waited, last) = tokio::join!(
        wait(&mut waiting, &path, "wait=30; until=closed"),
        post(&mut partner, &advance)
    );
    assert_eq!(waited.header("preference-applied"), Some("wait=30; until=closed"));
    assert_eq!(expect_success(&waited, 200), last);
    assert_eq!(last["closed"], true);
}
