//! Errors of order requests (contract §7).

use serde_json::{Value, json};

use vouchsafe_test_harness::{Operator, expect_error, expect_success, order_line, shared, unique};

#[tokio::test]
async fn order_outside_catalogue_is_rejected() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let discontinued = operator
        .add_product_with(json!({ "discontinued": true }), "25", 0)
        .await;
    let euros = operator
        .add_product_with(json!({ "currency": "EUR" }), "25", 1)
        .await;
    let range = json!({ "denominations": ["7"], "denomination_range": { "min": 10, "max": 30, "step": 5 } });
    let ranged = operator.add_product_with(range, "10", 1).await;
    let mut partner = operator.add_partner("1000").await;
    let good = order_line(&sale, 1);
    let item = |product: &str, denomination: &str| -> Value {
        let denomination: Value = serde_json::from_str(denomination).unwrap();
        json!({ "product_id": product, "denomination": denomination, "quantity": 1 })
    };
    let items = |items: &[Value]| json!({ "items": items });
    let (unknown, not_allowed) = ((404, "PRODUCT_NOT_FOUND"), (422, "DENOMINATION_NOT_ALLOWED"));
    let (unavailable, mismatch) = ((409, "PRODUCT_UNAVAILABLE"), (422, "CURRENCY_MISMATCH"));
    let (sold, ranged) = (&*sale.product_id, &*ranged.product_id);
    let in_euros = json!({ "items": [good], "currency": "EUR" });
    let cases = [
        (
            items(&[good.clone(), item("no-such-product", "25")]),
            unknown,
            "no-such-product",
        ),
        (items(&[item("../../etc", "25")]), unknown, "../../etc"),
        (items(&[item("' OR 1=1 --", "25")]), unknown, "' OR 1=1 --"),
        (
            items(&[item(&discontinued.product_id, "25")]),
            unavailable,
            &discontinued.product_id,
        ),
        (items(&[item(sold, "24")]), not_allowed, sold),
        (items(&[item(ranged, "12")]), not_allowed, ranged),
        (items(&[item(ranged, "9.99")]), not_allowed, ""),
        (items(&[item(ranged, "35")]), not_allowed, ""),
        (items(&[good, order_line(&euros, 1)]), mismatch, &euros.product_id),
        (in_euros, mismatch, sold),
    ];
    for (body, (status, code), named) in cases {
        let error = expect_error(&partner.send(&unique("key"), &body).await, status, code);
        assert!(error["message"].as_str().unwrap().contains(named), "{error}");
        assert_eq!(error["retryable"], false, "{error}");
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn shortage_names_product_and_leaves_no_hold() {
    let mut operator = Operator::of(shared());
    let [first, second] = [
        operator.add_stocked_product(1).await,
        operator.add_stocked_product(1).await,
    ];
    let mut partner = operator.add_partner("1000").await;
    let body = json!({ "items": [order_line(&first, 1), order_line(&second, 2)] });
    let response = partner.send(&unique("key"), &body).await;
    let error = expect_error(&response, 409, "INSUFFICIENT_INVENTORY");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(&second.product_id) && !message.contains(&first.product_id),
        "{error}"
    );
    assert_eq!(
        (&error["name"], &error["retryable"]),
        (&json!("InsufficientInventory"), &json!(false))
    );
    assert_eq!(partner.balance("USD").await, "1000.00");
    expect_success(&partner.order(&first, 1).await, 201);
    expect_success(&partner.order(&second, 1).await, 201);
}

#[tokio::test]
async fn insufficient_funds_or_missing_wallet_returns_402() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let (mut underfunded, mut without_wallet) = (
        operator.add_partner("24.99").await,
        operator.add_partner("0").await,
    );
    let error = expect_error(&underfunded.order(&sale, 1).await, 402, "INSUFFICIENT_FUNDS");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("25.00 USD") && message.contains("24.99 USD"),
        "{error}"
    );
    expect_error(&without_wallet.order(&sale, 1).await, 402, "INSUFFICIENT_FUNDS");
    assert_eq!(
        (
            underfunded.balance("USD").await,
            without_wallet.balance("USD").await
        ),
        ("24.99".to_owned(), String::new())
    );
}

#[tokio::test]
async fn order_of_other_partner_looks_unknown() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let (mut owner, mut stranger) = (
        operator.add_partner("100").await,
        operator.add_partner("100").await,
    );
    let order = expect_success(&owner.order(&sale, 1).await, 201);
    let foreign = order["order_id"].as_str().unwrap();
    let unknown = format!(
        "{}{}",
        &foreign[..foreign.len() - 4],
        if foreign.ends_with("0000") { "1111" } else { "0000" }
    );
    let strip = |mut error: Value, id: &str| {
        error["trace_id"] = Value::Null;
        error.to_string().replace(id, "ID")
    };
    let mut errors = Vec::new();
    for id in [foreign, &unknown] {
        let response = stranger.get(&format!("/orders/{id}")).await;
        let read = expect_error(&response, 404, "ORDER_NOT_FOUND");
        let codes = expect_error(&stranger.get_codes(id).await, 404, "ORDER_NOT_FOUND");
        errors.push((strip(read, id), strip(codes, id)));
    }
    assert_eq!(errors[0], errors[1]);
    expect_success(&owner.get(&format!("/orders/{foreign}")).await, 200);
}

#[tokio::test]
async fn malformed_order_id_is_not_found() {
    let mut partner = Operator::of(shared()).add_partner("1").await;
    let long = format!("ord_{}", "0".repeat(5_000));
    let zeros = format!("ORD_{}", "0".repeat(32));
    for id in [
        "x",
        "ord_",
        "ord_zz",
        &zeros,
        "%00",
        "%27%20OR%201=1",
        "..",
        "ord_%2e",
        &long,
    ] {
        let response = partner.get(&format!("/orders/{id}")).await;
        assert_eq!(response.status, 404, "{id:.60}: {:?}", response.body);
        expect_error(&response, 404, "ORDER_NOT_FOUND");
    }
    for id in ["x", "ord_0", "ord_00000000000000000000000000000000"] {
        expect_error(&partner.get_codes(id).await, 404, "ORDER_NOT_FOUND");
    }
    expect_error(&partner.get("/products/No-Such").await, 404, "PRODUCT_NOT_FOUND");
}

#[tokio::test]
async fn codes_of_pending_order_are_not_ready() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_product("vendor", 0).await;
    let mut partner = operator.add_partner("100").await;
    let order = expect_success(&partner.order(&sale, 1).await, 202);
    let response = partner.get_codes(order["order_id"].as_str().unwrap()).await;
    let error = expect_error(&response, 409, "ORDER_NOT_READY");
    assert_eq!(error["retryable"], true);
}
