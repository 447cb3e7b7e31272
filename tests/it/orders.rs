//! Orders filled from stock.

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vouchsafe_api_client::partner::unix_seconds;

use vouchsafe_test_harness::{
    Operator, Sale, expect_error, expect_success, id_of, json_of, order_body, order_line, shared, text_of,
    unique,
};

/// Allowance for clock skew and the duration of an order.
const CLOCK_SLACK_S: u64 = 60;

#[tokio::test]
async fn order_in_stock_returns_whole_order_without_codes() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let response = partner.order(&sale, 2).await;
    let order = expect_success(&response, 201);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (order_id, at) = (text(&order["order_id"]), text(&order["created_at"]));
    let [first, second] = [0, 1].map(|n| text(&order["vouchers"][n]["voucher_id"]));
    assert_eq!(
        response.header("location"),
        Some(format!("/api/v1/orders/{order_id}").as_str())
    );
    assert_eq!(response.header("idempotent-replayed"), None);
    assert_id(&order_id, "ord_");
    assert_id(&first, "vch_");
    assert_ne!(first, second);
    assert_is_now(&at);
    let product = &sale.product_id;
    let voucher = |id: &str| {
        format!(
            r#"{{"voucher_id":"{id}","product_id":"{product}","denomination":25.00,"expiry":"2099-12-31","first_retrieved_at":null}}"#
        )
    };
    let expected = [
        format!(r#"{{"order_id":"{order_id}","status":"DELIVERED","total_amount":50.00,"currency":"USD","#),
        r#""fulfilled_from":"cache","reference":null,"metadata":null,"#.to_owned(),
        format!(r#""items":[{{"product_id":"{product}","denomination":25.00,"quantity":2,"#),
        r#""delivered":2,"pending":0,"failed":0,"cancelled":0}],"#.to_owned(),
        format!(r#""vouchers":[{},{}],"#, voucher(&first), voucher(&second)),
        r#""refunded_amount":0.00,"closed":true,"pending_reason":null,"#.to_owned(),
        format!(r#""timeline":[{{"status":"DELIVERED","at":"{at}","by":"partner","reason":null}}],"#),
        format!(r#""created_at":"{at}","updated_at":"{at}"}}"#),
    ];
    assert_eq!(text_of(&response), expected.concat());
}

#[tokio::test]
async fn get_order_returns_bytes_of_post() {
    let mut operator = Operator::of(shared());
    let [first, second] = [
        operator.add_stocked_product(0).await,
        operator
            .add_product_with(json!({ "denominations": [25, 50] }), "50", 3)
            .await,
    ];
    operator.restock(&first, 3, "2098-06-30").await;
    operator.restock(&first, 3, "2097-06-30").await;
    let mut partner = operator.add_partner("1000").await;
    let body = json!({
        "items": [order_line(&first, 2), order_line(&second, 3), order_line(&first, 3)],
        "currency": "USD", "reference": "Bestellung \u{1F381} \"7\"", "metadata": { "a": "\u{e9}\n", "n": 1.5, "t": true },
        "fulfilment": "AUTO",
    });
    let placed = partner.send(&unique("key"), &body).await;
    let order_id = id_of(&expect_success(&placed, 201));
    let read = partner.get(&format!("/orders/{order_id}")).await;
    expect_success(&read, 200);
    assert_eq!(text_of(&read), text_of(&placed));
}

#[tokio::test]
async fn metadata_is_returned_verbatim_and_reference_without_outer_space() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("25").await;
    let line = order_line(&sale, 1);
    let metadata = r#"{ "price" : 1.500, "note":"\u00e9\/",  "yes":true }"#;
    let body = format!(r#"{{"items":[{line}],"reference":"  PO 7 ","metadata":{metadata}}}"#);
    let response = partner.send_text(&unique("key"), &body).await;
    expect_success(&response, 201);
    assert!(
        text_of(&response).contains(&format!(r#""reference":"PO 7","metadata":{metadata},"#)),
        "{response:?}"
    );
    let read = partner
        .get(
            response
                .header("location")
                .unwrap()
                .strip_prefix("/api/v1")
                .unwrap(),
        )
        .await;
    assert_eq!(text_of(&read), text_of(&response));
}

#[tokio::test]
async fn order_may_mix_products_and_denominations() {
    let mut operator = Operator::of(shared());
    let changes = || json!({ "denominations": ["10", "25", "50"] });
    let [ten, other] = [
        operator.add_product_with(changes(), "10", 2).await,
        operator.add_product_with(changes(), "50", 1).await,
    ];
    let fifty = Sale {
        denomination: "50",
        ..ten.clone()
    };
    operator.restock(&fifty, 1, "").await;
    let mut partner = operator.add_partner("200").await;
    let body = json!({ "items": [order_line(&fifty, 1), order_line(&other, 1), order_line(&ten, 2)] });
    let order = expect_success(&partner.send(&unique("key"), &body).await, 201);
    assert_eq!(order["total_amount"], 120.0);
    let vouchers: Vec<_> = order["vouchers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| (&v["product_id"], &v["denomination"]))
        .collect();
    let expected = [(&fifty, 50.0), (&other, 50.0), (&ten, 10.0), (&ten, 10.0)];
    let expected = expected.map(|(sale, value)| (json!(sale.product_id), json!(value)));
    assert_eq!(
        vouchers,
        expected.iter().map(|(id, value)| (id, value)).collect::<Vec<_>>()
    );
    assert_eq!(partner.balance("USD").await, "80.00");
}

#[tokio::test]
async fn order_lines_of_same_sku_share_stock() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    let lines =
        |counts: &[u32]| json!({ "items": counts.iter().map(|n| order_line(&sale, *n)).collect::<Vec<_>>() });
    let response = partner.send(&unique("key"), &lines(&[2, 2, 2])).await;
    expect_error(&response, 409, "INSUFFICIENT_INVENTORY");
    let order = expect_success(&partner.send(&unique("key"), &lines(&[2, 1, 2])).await, 201);
    let delivered: Vec<_> = order["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["delivered"].clone())
        .collect();
    assert_eq!(delivered, [2, 1, 2]);
    let mut ids: Vec<_> = order["vouchers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["voucher_id"].to_string())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5);
}

#[tokio::test]
async fn currencies_with_0_or_3_decimals_are_exact() {
    let mut operator = Operator::of(shared());
    let cases = [
        (
            "JPY",
            "1500",
            "5000",
            r#""total_amount":3000,"currency":"JPY""#,
            r#""denomination":1500,"#,
            "2000",
        ),
        (
            "KWD",
            "10.5",
            "42.003",
            r#""total_amount":21.000,"currency":"KWD""#,
            r#""denomination":10.500,"#,
            "21.003",
        ),
    ];
    for (currency, denomination, money, total, face_value, expected_balance) in cases {
        let changes = json!({ "currency": currency, "denominations": [denomination] });
        let sale = operator.add_product_with(changes, denomination, 2).await;
        let mut partner = operator.add_partner("0").await;
        operator.top_up(&partner.partner_id, currency, money).await;
        let response = partner.order(&sale, 2).await;
        expect_success(&response, 201);
        assert!(
            text_of(&response).contains(total) && text_of(&response).contains(face_value),
            "{response:?}"
        );
        assert_eq!(partner.balance(currency).await, expected_balance);
    }
}

#[tokio::test]
async fn denomination_as_number_or_string_is_accepted() {
    let mut operator = Operator::of(shared());
    let changes =
        json!({ "denominations": ["7.25"], "denomination_range": { "min": 10, "max": 30, "step": "2.50" } });
    let mut sale = operator.add_product_with(changes, "7.25", 2).await;
    for (denomination, vouchers) in [("10", 2), ("12.5", 2), ("30", 2)] {
        sale.denomination = denomination;
        operator.restock(&sale, vouchers, "").await;
    }
    let mut partner = operator.add_partner("1000").await;
    for denomination in [
        "7.25",
        r#""7.25""#,
        "10",
        "10.00",
        "12.5",
        r#""12.50""#,
        "30.0",
        r#""30""#,
    ] {
        let product = &sale.product_id;
        let body = format!(
            r#"{{"items":[{{"product_id":"{product}","denomination":{denomination},"quantity":1}}]}}"#
        );
        expect_success(&partner.send_text(&unique("key"), &body).await, 201);
    }
    assert_eq!(partner.balance("USD").await, "880.50");
}

#[tokio::test]
async fn order_of_maximum_size_is_delivered() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1_000).await;
    let mut partner = operator.add_partner("25000").await;
    let response = partner
        .send(
            &unique("key"),
            &json!({ "items": vec![order_line(&sale, 10); 100] }),
        )
        .await;
    let order = expect_success(&response, 201);
    assert_eq!(order["vouchers"].as_array().unwrap().len(), 1_000);
    assert_eq!(partner.balance("USD").await, "0.00");
    let read = partner
        .get(&format!("/orders/{}", order["order_id"].as_str().unwrap()))
        .await;
    assert_eq!(text_of(&read), text_of(&response));
}

#[tokio::test]
async fn client_supplied_price_is_rejected() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("100").await;
    for field in ["unit_price", "price", "total_amount", "discount"] {
        let mut body = order_body(&sale, 1);
        body["items"][0][field] = json!(0.01);
        let response = partner.send(&unique("key"), &body).await;
        expect_error(&response, 422, "VALIDATION_FAILED");
    }
    assert_eq!(json_of(&partner.order(&sale, 1).await)["total_amount"], 25.0);
}

fn assert_id(id: &str, prefix: &str) {
    let digits = id.strip_prefix(prefix).unwrap_or_else(|| panic!("{id}"));
    assert!(
        digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()),
        "{id}"
    );
}

/// Asserts an RFC 3339 timestamp in UTC close to now.
fn assert_is_now(text: &str) {
    let time = OffsetDateTime::parse(text, &Rfc3339).unwrap().unix_timestamp();
    assert!(
        text.ends_with('Z') && unix_seconds().abs_diff(time.unsigned_abs()) < CLOCK_SLACK_S,
        "{text}"
    );
}
