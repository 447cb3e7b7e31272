//! Top-ups and adjustments of wallets by operators.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{Operator, Partner, expect_error, expect_success, shared, text_of, unique};

async fn post_booking(
    operator: &mut Operator,
    partner: &Partner,
    kind: &str,
    currency: &str,
    body: &Value,
) -> ApiResponse {
    let path = format!(
        "/admin/v1/partners/{}/wallets/{currency}/{kind}",
        partner.partner_id
    );
    operator.call_json(Method::POST, &path, body.to_string()).await
}

#[tokio::test]
async fn top_up_creates_ledger_entry() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    let reference = unique("statement");
    let body = json!({ "amount": "1000.5", "reference": reference });
    let response = post_booking(&mut operator, &partner, "top-ups", "KWD", &body).await;
    let entry = expect_success(&response, 201);
    assert!(
        text_of(&response).contains(r#""amount":1000.500,"currency":"KWD","balance_after":1000.500"#),
        "{entry}"
    );
    assert_eq!(
        (
            &entry["type"],
            &entry["sequence"],
            &entry["reference"],
            &entry["order_id"],
            &entry["payout_id"]
        ),
        (
            &json!("TOP_UP"),
            &json!(1),
            &json!(reference),
            &Value::Null,
            &Value::Null
        )
    );
    assert_eq!(partner.balance("KWD").await, "1000.500");
    let audit_log = operator
        .get(&format!("/admin/v1/audit?subject={}/KWD", partner.partner_id))
        .await;
    assert_eq!(audit_log["data"][0]["action"], "wallet.top_up");
    assert_eq!(audit_log["data"][0]["before"], json!({ "balance": 0.0 }));
    let after = json!({
        "balance": 1_000.5,
        "amount": 1_000.5,
        "reference": reference,
        "transaction_id": entry["transaction_id"],
    });
    assert_eq!(audit_log["data"][0]["after"], after);
}

#[tokio::test]
async fn booking_with_same_reference_is_posted_once() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    let body = json!({ "amount": 25, "reference": "r-1" });
    let first = post_booking(&mut operator, &partner, "top-ups", "USD", &body).await;
    for repeated in [json!({ "amount": "25.00", "reference": " r-1 " }), body.clone()] {
        let second = post_booking(&mut operator, &partner, "top-ups", "USD", &repeated).await;
        assert_eq!(expect_success(&second, 201), expect_success(&first, 201));
        assert_eq!(second.header("idempotent-replayed"), Some("true"));
    }
    assert_eq!(first.header("idempotent-replayed"), None);
    let other = json!({ "amount": 26, "reference": "r-1" });
    let response = post_booking(&mut operator, &partner, "top-ups", "USD", &other).await;
    expect_error(&response, 422, "IDEMPOTENCY_KEY_REUSED");
    let response = post_booking(&mut operator, &partner, "top-ups", "EUR", &body).await;
    expect_success(&response, 201);
    let response = post_booking(&mut operator, &partner, "adjustments", "USD", &body).await;
    expect_success(&response, 201);
    assert_eq!(partner.balance("USD").await, "50.00");
    let audit_log = operator
        .get(&format!(
            "/admin/v1/audit?action=wallet.top_up&subject={}/USD",
            partner.partner_id
        ))
        .await;
    assert_eq!(
        audit_log["data"].as_array().unwrap().len(),
        1,
        "a repeated reference must not be audited"
    );
}

#[tokio::test]
async fn concurrent_bookings_with_same_reference_post_once() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    let bookings = (0..8).map(|_| {
        let (mut other, partner) = (Operator::of(shared()), partner.reconnect());
        async move {
            post_booking(
                &mut other,
                &partner,
                "top-ups",
                "USD",
                &json!({ "amount": 7, "reference": "once" }),
            )
            .await
        }
    });
    let responses = futures_util::future::join_all(bookings).await;
    let ids: Vec<_> = responses
        .iter()
        .map(|response| expect_success(response, 201)["transaction_id"].clone())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(
        responses
            .iter()
            .filter(|response| response.header("idempotent-replayed").is_none())
            .count(),
        1
    );
    assert_eq!(partner.balance("USD").await, "7.00");
    assert_eq!(audited_bookings(&mut operator, &partner).await, 1);
}

#[tokio::test]
async fn rejected_booking_is_not_audited() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    let body = json!({ "amount": -5, "reference": "too much" });
    let response = post_booking(&mut operator, &partner, "adjustments", "USD", &body).await;
    expect_error(&response, 402, "INSUFFICIENT_FUNDS");
    assert_eq!(audited_bookings(&mut operator, &partner).await, 0);
}

/// Counts the audited bookings in a partner's USD wallet.
async fn audited_bookings(operator: &mut Operator, partner: &Partner) -> usize {
    let path = format!("/admin/v1/audit?subject={}/USD", partner.partner_id);
    operator.get(&path).await["data"].as_array().unwrap().len()
}

#[tokio::test]
async fn adjustment_beyond_balance_is_rejected() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("10").await;
    let too_much = json!({ "amount": "-10.01", "reference": "a" });
    let response = post_booking(&mut operator, &partner, "adjustments", "USD", &too_much).await;
    expect_error(&response, 402, "INSUFFICIENT_FUNDS");
    let response = post_booking(&mut operator, &partner, "adjustments", "EUR", &too_much).await;
    expect_error(&response, 402, "INSUFFICIENT_FUNDS");
    // A rejection is not stored: with sufficient funds the same reference is posted.
    operator.top_up(&partner.partner_id, "USD", "0.01").await;
    let response = post_booking(&mut operator, &partner, "adjustments", "USD", &too_much).await;
    let entry = expect_success(&response, 201);
    assert_eq!(
        (&entry["type"], &entry["balance_after"]),
        (&json!("ADJUSTMENT"), &json!(0.0))
    );
    assert_eq!(partner.balance("USD").await, "0.00");
}

#[tokio::test]
async fn invalid_booking_is_rejected_by_field() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    let reference = "x".repeat(129);
    for (kind, currency, body, field) in [
        (
            "top-ups",
            "USD",
            json!({ "amount": 0, "reference": "r" }),
            "amount",
        ),
        (
            "top-ups",
            "USD",
            json!({ "amount": -1, "reference": "r" }),
            "amount",
        ),
        (
            "top-ups",
            "USD",
            json!({ "amount": 1.001, "reference": "r" }),
            "amount",
        ),
        (
            "top-ups",
            "JPY",
            json!({ "amount": 1.5, "reference": "r" }),
            "amount",
        ),
        (
            "top-ups",
            "USD",
            json!({ "amount": "99999999999999999", "reference": "r" }),
            "amount",
        ),
        (
            "top-ups",
            "USD",
            json!({ "amount": true, "reference": "r" }),
            "amount",
        ),
        ("top-ups", "USD", json!({ "amount": 1 }), "reference"),
        (
            "top-ups",
            "USD",
            json!({ "amount": 1, "reference": " " }),
            "reference",
        ),
        (
            "top-ups",
            "USD",
            json!({ "amount": 1, "reference": reference }),
            "reference",
        ),
        (
            "adjustments",
            "USD",
            json!({ "amount": "-0.00", "reference": "r" }),
            "amount",
        ),
        (
            "top-ups",
            "XYZ",
            json!({ "amount": 1, "reference": "r" }),
            "currency",
        ),
        (
            "top-ups",
            "usd",
            json!({ "amount": 1, "reference": "r" }),
            "currency",
        ),
    ] {
        let response = post_booking(&mut operator, &partner, kind, currency, &body).await;
        let error = expect_error(&response, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], json!(field), "{body}");
    }
}
