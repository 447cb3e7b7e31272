//! Wallets and transactions as partners see them.

use hyper::Method;
use serde_json::{Value, json};

use vouchsafe_test_harness::{Operator, expect_error, expect_success, id_of, shared, text_of};

#[tokio::test]
async fn orders_appear_as_debits_without_gaps() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(3).await;
    let mut partner = operator.add_partner("100").await;
    let mut ids = Vec::new();
    for quantity in [1, 2] {
        let order = expect_success(&partner.order(&sale, quantity).await, 201);
        ids.push(id_of(&order));
    }
    expect_error(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
    let response = partner.get("/transactions").await;
    let shown = expect_success(&response, 200);
    assert_eq!(
        (&shown["has_more"], &shown["next_cursor"]),
        (&json!(false), &Value::Null)
    );
    let entries = shown["data"].as_array().unwrap();
    let listed: Vec<_> = entries
        .iter()
        .map(|e| (&e["type"], &e["sequence"], &e["order_id"]))
        .collect();
    let (debit, top_up, ids) = (
        json!("DEBIT"),
        json!("TOP_UP"),
        ids.into_iter().map(Value::from).collect::<Vec<_>>(),
    );
    let numbers = [json!(1), json!(2), json!(3)];
    assert_eq!(
        listed,
        [
            (&debit, &numbers[2], &ids[1]),
            (&debit, &numbers[1], &ids[0]),
            (&top_up, &numbers[0], &Value::Null)
        ]
    );
    for (amount, after) in [("-50.00", "25.00"), ("-25.00", "75.00"), ("100.00", "100.00")] {
        let expected = format!(r#""amount":{amount},"currency":"USD","balance_after":{after},"#);
        assert!(
            text_of(&response).contains(&expected),
            "{expected} in {response:?}"
        );
    }
    assert!(
        entries
            .iter()
            .all(|e| e["transaction_id"].as_str().unwrap().starts_with("txn_"))
    );
}

#[tokio::test]
async fn ledger_pages_are_complete() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1").await;
    for _ in 0..4 {
        operator.top_up(&partner.partner_id, "USD", "0.01").await;
    }
    let (mut sequences, mut path) = (Vec::new(), "/transactions?limit=2".to_owned());
    loop {
        let page = partner.read(&path).await;
        sequences.extend(
            page["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["sequence"].as_i64().unwrap()),
        );
        assert_eq!(
            page["has_more"].as_bool().unwrap(),
            !page["next_cursor"].is_null()
        );
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/transactions?limit=2&cursor={cursor}");
    }
    assert_eq!(sequences, [5, 4, 3, 2, 1]);
}

#[tokio::test]
async fn each_currency_has_its_own_wallet() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    assert_eq!(partner.read("/wallets").await["data"], json!([]));
    for (currency, amount) in [("USD", "10"), ("JPY", "10"), ("KWD", "0.001")] {
        operator.top_up(&partner.partner_id, currency, amount).await;
    }
    let wallets = partner.get("/wallets").await;
    for expected in [
        r#"{"currency":"JPY","balance":10,"pending_orders":0,"pending_payouts":0,"updated_at":""#,
        r#"{"currency":"KWD","balance":0.001,"pending_orders":0.000,"pending_payouts":0.000,"updated_at":""#,
        r#"{"currency":"USD","balance":10.00,"pending_orders":0.00,"pending_payouts":0.00,"updated_at":""#,
    ] {
        assert!(text_of(&wallets).contains(expected), "{expected} in {wallets:?}");
    }
    let euros = operator
        .add_product_with(json!({ "currency": "EUR" }), "25", 1)
        .await;
    expect_error(&partner.order(&euros, 1).await, 402, "INSUFFICIENT_FUNDS");
}

#[tokio::test]
async fn partner_sees_only_own_wallets() {
    let mut operator = Operator::of(shared());
    let (mut rich, mut poor) = (
        operator.add_partner("5000").await,
        operator.add_partner("0").await,
    );
    assert_eq!(poor.read("/transactions").await["data"], json!([]));
    assert_eq!(poor.read("/wallets").await["data"], json!([]));
    assert_eq!(rich.balance("USD").await, "5000.00");
}

#[tokio::test]
async fn operator_sees_wallets_and_transactions_as_the_partner_does() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("100").await;
    operator.top_up(&partner.partner_id, "JPY", "1000").await;
    let order_id = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
    let root = format!("/admin/v1/partners/{}", partner.partner_id);
    for (list, count) in [
        ("/wallets", 2),
        ("/wallets?limit=1", 1),
        ("/transactions", 3),
        ("/transactions?type=DEBIT", 1),
        ("/transactions?currency=JPY", 1),
        (&format!("/transactions?order_id={order_id}"), 1),
    ] {
        let (seen, own) = (
            operator.get(&format!("{root}{list}")).await,
            partner.read(list).await,
        );
        assert_eq!(seen["data"], own["data"], "{list}");
        assert_eq!(seen["data"].as_array().unwrap().len(), count, "{list}");
    }
    for list in ["wallets", "transactions"] {
        for partner_id in ["ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "nobody"] {
            let path = format!("/admin/v1/partners/{partner_id}/{list}");
            let response = operator.call_json(Method::GET, &path, "").await;
            expect_error(&response, 404, "PARTNER_NOT_FOUND");
        }
    }
}
