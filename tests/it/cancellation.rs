//! Cancellation by partners: refund, restock and the conditions that forbid it.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use crate::approvals::{decide, place_order_awaiting_approval};
use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_error,
    expect_success, id_of, order_body, shared, stages, text_of, unique,
};

async fn cancel(partner: &mut Partner, order_id: &str, body: &str) -> ApiResponse {
    partner
        .send_signed(Method::POST, &format!("/orders/{order_id}/cancel"), body)
        .await
}

#[tokio::test]
async fn cancelled_order_is_refunded_and_restocked() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let placed = expect_success(&partner.order(&sale, 2).await, 201);
    let response = cancel(&mut partner, &id_of(&placed), r#"{"reason":"ordered twice"}"#).await;
    let order = expect_success(&response, 200);
    assert_eq!(order["status"], "REFUNDED");
    assert_eq!((&order["vouchers"], &order["closed"]), (&json!([]), &json!(true)));
    assert_eq!(
        (&order["returned_vouchers"], &order["fulfilled_from"]),
        (&placed["vouchers"], &json!("cache")),
        "the history of the vouchers"
    );
    assert!(text_of(&response).contains(r#""refunded_amount":50.00"#));
    assert_eq!(
        stages(&order),
        [
            ("DELIVERED", "partner", None),
            ("CANCELLED", "partner", Some("ordered twice")),
            ("REFUNDED", "partner", None)
        ]
    );
    let item = &order["items"][0];
    assert_eq!(
        (
            &item["delivered"],
            &item["pending"],
            &item["failed"],
            &item["cancelled"]
        ),
        (&json!(0), &json!(0), &json!(0), &item["quantity"]),
        "units of a cancelled order are not failed"
    );
    assert_eq!(partner.balance("USD").await, "100.00");
    assert_eq!(partner.read(&format!("/orders/{}", id_of(&placed))).await, order);
    let refused_codes = partner.get_codes(&id_of(&placed)).await;
    expect_error(&refused_codes, 409, "ORDER_CLOSED");
    let levels = operator
        .get(&format!("/admin/v1/stock?product_id={}", sale.product_id))
        .await;
    let level = &levels["data"][0];
    assert_eq!(
        (&level["loaded"], &level["free"], &level["sold"]),
        (&json!(2), &json!(2), &json!(0)),
        "a returned voucher is one voucher"
    );
    // The same two codes under new voucher ids.
    let replacement = expect_success(&partner.order(&sale, 2).await, 201);
    let ids = |order: &Value| -> Vec<String> {
        let vouchers = order["vouchers"].as_array().unwrap();
        vouchers
            .iter()
            .map(|voucher| voucher["voucher_id"].to_string())
            .collect()
    };
    assert!(ids(&replacement).iter().all(|id| !ids(&placed).contains(id)));
    assert_eq!(partner.count_codes(&id_of(&replacement)).await, 2);
    let entries = partner
        .read(&format!("/transactions?order_id={}", id_of(&placed)))
        .await;
    let kinds: Vec<_> = entries["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["type"].clone())
        .collect();
    assert_eq!(kinds, ["REFUND", "DEBIT"]);
}

#[tokio::test]
async fn repeated_cancel_returns_first_response() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("25").await;
    let order_id = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
    let first = cancel(&mut partner, &order_id, "").await;
    let second = cancel(&mut partner, &order_id, r#"{"reason":"again"}"#).await;
    assert_eq!((first.status, text_of(&first)), (second.status, text_of(&second)));
    assert_eq!(partner.balance("USD").await, "25.00");
}

#[tokio::test]
async fn concurrent_cancels_refund_once() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("25").await;
    let order_id = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
    let calls = (0..12).map(|_| {
        let (mut partner, order_id) = (partner.reconnect(), order_id.clone());
        async move { cancel(&mut partner, &order_id, "").await.status.as_u16() }
    });
    assert_eq!(futures_util::future::join_all(calls).await, [200; 12]);
    assert_eq!(partner.balance("USD").await, "25.00");
    let entries = partner
        .read(&format!("/transactions?order_id={order_id}&type=REFUND"))
        .await;
    assert_eq!(entries["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn order_with_retrieved_codes_cannot_be_cancelled() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("25").await;
    let order_id = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
    expect_success(&partner.get_codes(&order_id).await, 200);
    let response = cancel(&mut partner, &order_id, "").await;
    expect_error(&response, 409, "ORDER_NOT_CANCELLABLE");
    assert_eq!(partner.balance("USD").await, "0.00");
}

#[tokio::test]
async fn concurrent_retrieval_and_cancel_exclude_each_other() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(12).await;
    let mut partner = operator.add_partner("300").await;
    for _ in 0..12 {
        let order_id = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
        let (mut reader, mut canceller) = (partner.reconnect(), partner.reconnect());
        let (read, cancelled) =
            tokio::join!(reader.get_codes(&order_id), cancel(&mut canceller, &order_id, ""));
        let outcome = (read.status.as_u16(), cancelled.status.as_u16());
        assert!(matches!(outcome, (200, 409) | (409, 200)), "{outcome:?}");
        let status = partner.read(&format!("/orders/{order_id}")).await["status"].clone();
        assert_eq!(status, if outcome.0 == 200 { "DELIVERED" } else { "REFUNDED" });
    }
}

#[tokio::test]
async fn pending_order_is_cancelled_in_full() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_product("vendor", 0).await;
    let mut partner = operator.add_partner("75").await;
    let order = expect_success(&partner.order(&sale, 3).await, 202);
    let order = expect_success(&cancel(&mut partner, &id_of(&order), "{}").await, 200);
    assert_eq!(
        stages(&order),
        [
            ("PENDING", "partner", None),
            ("CANCELLED", "partner", None),
            ("REFUNDED", "partner", None)
        ]
    );
    assert_eq!(partner.usd_balances().await, (75.0, 0.0));
}

#[tokio::test]
async fn cancel_after_partner_window_is_rejected() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("25").await;
    operator
        .patch_partner(&partner, &json!({ "cancel_window_s": 0 }))
        .await;
    let order_id = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
    let response = cancel(&mut partner, &order_id, "").await;
    expect_error(&response, 409, "ORDER_NOT_CANCELLABLE");
    operator
        .patch_partner(&partner, &json!({ "cancel_window_s": 60 }))
        .await;
    expect_success(&cancel(&mut partner, &order_id, "").await, 200);
}

#[tokio::test]
async fn bought_vouchers_are_returned_only_if_returnable() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    for returnable in [false, true] {
        let product = json!({ "route": "vendor", "vendor": "mock", "returnable": returnable });
        let sale = operator.add_product_with(product, "25", 0).await;
        let order_id = id_of(&expect_success(&partner.order(&sale, 1).await, 202));
        eventually("the vendor to fill the order", WAIT_TIMEOUT, async || {
            (partner.read(&format!("/orders/{order_id}")).await["closed"] == true).then_some(())
        })
        .await;
        let response = cancel(&mut partner, &order_id, "").await;
        let mut from_stock = order_body(&sale, 1);
        from_stock["fulfilment"] = json!("CACHE_ONLY");
        if returnable {
            assert_eq!(expect_success(&response, 200)["status"], "REFUNDED");
            expect_success(&partner.send(&unique("key"), &from_stock).await, 201);
        } else {
            let error = expect_error(&response, 409, "ORDER_NOT_CANCELLABLE");
            assert!(
                error["message"].as_str().unwrap().contains(&sale.product_id),
                "{error}"
            );
            expect_error(
                &partner.send(&unique("key"), &from_stock).await,
                409,
                "INSUFFICIENT_INVENTORY",
            );
        }
    }
    assert_eq!(partner.balance("USD").await, "50.00");
}

#[tokio::test]
async fn order_ended_by_operator_cannot_be_cancelled_by_partner() {
    let mut operator = Operator::of(shared());
    let sale = operator
        .add_product_with(json!({ "approval": "always" }), "25", 2)
        .await;
    let mut partner = operator.add_partner("50").await;
    for verb in ["reject", "cancel"] {
        let order_id = place_order_awaiting_approval(&mut partner, &sale, 1).await;
        expect_success(&decide(&mut operator, verb, &order_id).await, 200);
        let response = cancel(&mut partner, &order_id, "").await;
        expect_error(&response, 409, "ORDER_NOT_CANCELLABLE");
    }
    assert_eq!(partner.balance("USD").await, "50.00");
}

#[tokio::test]
async fn order_with_expired_voucher_cannot_be_cancelled() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("50").await;
    let order_id = id_of(&expect_success(&partner.order(&sale, 2).await, 201));
    // One of the vouchers expired yesterday.
    let yesterday = "UPDATE stock SET expiry = (now() AT TIME ZONE 'UTC')::date - 1
                      WHERE stock_id = (SELECT max(stock_id) FROM allocations WHERE order_id IS NOT NULL)";
    ServiceDatabase::of(&service)
        .await
        .run(yesterday.to_owned())
        .await;
    let response = cancel(&mut partner, &order_id, "").await;
    expect_error(&response, 409, "ORDER_NOT_CANCELLABLE");
    assert_eq!(partner.balance("USD").await, "0.00");
}

#[tokio::test]
async fn order_of_other_partner_is_not_found() {
    let mut operator = Operator::of(shared());
    let sale: Sale = operator.add_stocked_product(1).await;
    let (mut owner, mut other) = (operator.add_partner("25").await, operator.add_partner("0").await);
    let order_id = id_of(&expect_success(&owner.order(&sale, 1).await, 201));
    for id in [order_id.as_str(), "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "ord_x"] {
        expect_error(&cancel(&mut other, id, "").await, 404, "ORDER_NOT_FOUND");
    }
    for body in [r#"{"reason":7}"#, r#"{"why":"x"}"#, r#"{"reason":"a\u0000b"}"#] {
        let response = cancel(&mut owner, &order_id, body).await;
        expect_error(&response, 422, "VALIDATION_FAILED");
    }
    expect_success(&cancel(&mut owner, &order_id, "").await, 200);
}

#[tokio::test]
async fn cancelled_order_after_kill_stays_cancelled() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let order_id = id_of(&expect_success(
        &partner.order_with_key(&unique("key"), &sale, 2).await,
        201,
    ));
    let before = cancel(&mut partner, &order_id, "").await;
    service.kill();
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    let after = cancel(&mut partner, &order_id, "").await;
    assert_eq!(text_of(&before), text_of(&after));
    expect_success(&partner.order(&sale, 2).await, 201);
    service.assert_verified();
}
