//! Payouts: request, listing and operator decisions.

use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method};
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{
    Operator, Partner, expect_error, expect_stored_error, expect_success, shared, text_of, unique,
};

const IBAN: &str = "DE89370400440532013000";

pub(crate) fn payout_body(amount: &str) -> String {
    json!({
        "amount": amount, "currency": "USD", "reference": "march",
        "destination": { "type": "bank_account", "iban": IBAN, "name": "Acme GmbH" },
    })
    .to_string()
}

pub(crate) async fn request_payout(partner: &mut Partner, key: &str, body: &str) -> ApiResponse {
    let mut headers = HeaderMap::new();
    headers.insert("idempotency-key", HeaderValue::from_str(key).unwrap());
    partner
        .client
        .send_signed(Method::POST, "/payouts", body.to_owned(), headers)
        .await
        .unwrap()
}

async fn wallet(partner: &mut Partner) -> Value {
    partner.read("/wallets").await["data"][0].clone()
}

#[tokio::test]
async fn payout_debits_wallet_and_is_pending() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let key = unique("key");
    let response = request_payout(&mut partner, &key, &payout_body("30.5")).await;
    let payout = expect_success(&response, 202);
    let id = payout["payout_id"].as_str().unwrap().to_owned();
    assert_eq!(
        response.header("location"),
        Some(format!("/api/v1/payouts/{id}").as_str())
    );
    assert!(text_of(&response).contains(r#""amount":30.50,"currency":"USD","#));
    assert_eq!(
        payout["destination"],
        json!({ "type": "bank_account", "iban": "****3000", "name": "****GmbH" })
    );
    assert_eq!(
        (&payout["status"], &payout["reference"]),
        (&json!("PENDING"), &json!("march"))
    );
    let wallet = wallet(&mut partner).await;
    assert_eq!(
        (&wallet["balance"], &wallet["pending_payouts"]),
        (&json!(69.5), &json!(30.5))
    );
    let entries = partner.read("/transactions?type=PAYOUT").await;
    let entry = &entries["data"][0];
    assert_eq!(
        (&entry["amount"], &entry["payout_id"]),
        (&json!(-30.5), &json!(id))
    );
    let repeated = request_payout(&mut partner, &key, &payout_body("30.5")).await;
    assert_eq!(
        (repeated.status, text_of(&repeated)),
        (response.status, text_of(&response))
    );
    assert_eq!(repeated.header("idempotent-replayed"), Some("true"));
    expect_error(
        &request_payout(&mut partner, &key, &payout_body("31")).await,
        422,
        "IDEMPOTENCY_KEY_REUSED",
    );
    let read = partner.get(&format!("/payouts/{id}")).await;
    assert_eq!(text_of(&read), text_of(&response));
}

#[tokio::test]
async fn payout_beyond_balance_is_rejected() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("10").await;
    let key = unique("key");
    expect_stored_error(
        &request_payout(&mut partner, &key, &payout_body("10.01")).await,
        402,
        "INSUFFICIENT_FUNDS",
    );
    let calls = (0..12).map(|_| {
        let mut partner = partner.reconnect();
        async move {
            request_payout(&mut partner, &unique("key"), &payout_body("5"))
                .await
                .status
                .as_u16()
        }
    });
    let responses = futures_util::future::join_all(calls).await;
    assert_eq!(responses.iter().filter(|&&status| status == 202).count(), 2);
    assert_eq!(partner.balance("USD").await, "0.00");
    let repeated = request_payout(&mut partner, &key, &payout_body("10.01")).await;
    assert_eq!(repeated.header("idempotent-replayed"), Some("true"));
}

#[tokio::test]
async fn payouts_are_listed_newest_first_per_partner() {
    let mut operator = Operator::of(shared());
    let (mut partner, mut other) = (
        operator.add_partner("100").await,
        operator.add_partner("100").await,
    );
    let mut ids = Vec::new();
    for amount in ["1", "2", "3"] {
        let response = request_payout(&mut partner, &unique("key"), &payout_body(amount)).await;
        let payout = expect_success(&response, 202);
        ids.insert(0, payout["payout_id"].clone());
    }
    let listed: Vec<Value> = partner.list_all("/payouts?limit=2").await;
    assert_eq!(
        listed.iter().map(|p| p["payout_id"].clone()).collect::<Vec<_>>(),
        ids
    );
    assert!(partner.list_all("/payouts?status=PAID").await.is_empty());
    assert!(other.list_all("/payouts").await.is_empty());
    let id = ids[0].as_str().unwrap();
    let response = other.get(&format!("/payouts/{id}")).await;
    expect_error(&response, 404, "PAYOUT_NOT_FOUND");
    expect_error(&partner.get("/payouts/po_1").await, 404, "PAYOUT_NOT_FOUND");
    let response = partner.get("/payouts?status=paid").await;
    expect_error(&response, 422, "VALIDATION_FAILED");
}

#[tokio::test]
async fn invalid_payout_is_rejected_without_debit() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let headers = HeaderMap::new();
    let keyless = partner
        .client
        .send_signed(Method::POST, "/payouts", payout_body("1"), headers)
        .await
        .unwrap();
    expect_error(&keyless, 400, "MISSING_IDEMPOTENCY_KEY");
    for (change, field) in [
        (json!({ "amount": 0 }), "amount"),
        (json!({ "amount": "1.001" }), "amount"),
        (json!({ "currency": "XYZ" }), "currency"),
        (json!({ "destination": { "type": "cash" } }), "destination.type"),
        (
            json!({ "destination": { "type": "card", "pan": 7 } }),
            "destination.pan",
        ),
        (json!({ "colour": "red" }), "colour"),
    ] {
        let mut body: Value = serde_json::from_str(&payout_body("1")).unwrap();
        body.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let response = request_payout(&mut partner, &unique("key"), &body.to_string()).await;
        let error = expect_error(&response, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], field);
    }
    assert_eq!(partner.balance("USD").await, "100.00");
}

async fn decide(operator: &mut Operator, payout_id: &str, verb: &str, body: &Value) -> ApiResponse {
    let path = format!("/admin/v1/payouts/{payout_id}/{verb}");
    operator.call_json(Method::POST, &path, body.to_string()).await
}

#[tokio::test]
async fn payout_decision_pays_or_refunds_once() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    for (verb, status, balance, kind) in [
        ("pay", "PAID", json!(70.0), None),
        ("reject", "REJECTED", json!(70.0), Some("PAYOUT_REVERSAL")),
        ("fail", "FAILED", json!(70.0), Some("PAYOUT_REVERSAL")),
    ] {
        let response = request_payout(&mut partner, &unique("key"), &payout_body("30")).await;
        let payout = expect_success(&response, 202);
        let id = payout["payout_id"].as_str().unwrap().to_owned();
        let body = json!({ "reason": "as agreed", "reference": "bank-7" });
        let decided = expect_success(&decide(&mut operator, &id, verb, &body).await, 200);
        assert_eq!(decided["status"], status);
        for decision in ["pay", "reject", "fail"] {
            let late = decide(&mut operator, &id, decision, &json!({})).await;
            expect_error(&late, 409, "PAYOUT_NOT_PENDING");
        }
        let read = partner.read(&format!("/payouts/{id}")).await;
        let last = &read["timeline"][1];
        assert_eq!(
            (&last["status"], &last["by"], &last["reason"], &last["reference"]),
            (
                &json!(status),
                &json!("operator"),
                &json!("as agreed"),
                &json!("bank-7")
            )
        );
        let wallet = wallet(&mut partner).await;
        assert_eq!(
            (&wallet["balance"], &wallet["pending_payouts"]),
            (&balance, &json!(0.0))
        );
        let newest = partner.read("/transactions?limit=1").await["data"][0].clone();
        assert_eq!(newest["type"], kind.unwrap_or("PAYOUT"), "{verb}");
    }
}

#[tokio::test]
async fn operator_read_of_payout_destination_is_audited() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let response = request_payout(&mut partner, &unique("key"), &payout_body("30")).await;
    let payout = expect_success(&response, 202);
    let id = payout["payout_id"].as_str().unwrap();
    let shown = operator.get(&format!("/admin/v1/payouts/{id}")).await;
    assert_eq!(
        shown["destination"],
        json!({ "type": "bank_account", "iban": IBAN, "name": "Acme GmbH" })
    );
    let trail = operator
        .get(&format!("/admin/v1/audit?subject={id}&action=payout.read"))
        .await;
    assert_eq!(trail["data"].as_array().unwrap().len(), 1);
    let listed = operator
        .get(&format!("/admin/v1/payouts?partner_id={}", partner.partner_id))
        .await;
    assert_eq!(listed["data"][0]["destination"]["iban"], "****3000");
}

async fn cancel(partner: &mut Partner, payout_id: &str) -> ApiResponse {
    let path = format!("/payouts/{payout_id}/cancel");
    let body = r#"{"reason":"wrong account"}"#;
    partner.send_signed(Method::POST, &path, body).await
}

async fn pending_payout(partner: &mut Partner) -> String {
    let response = request_payout(partner, &unique("key"), &payout_body("30")).await;
    let payout = expect_success(&response, 202);
    payout["payout_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn cancelled_payout_returns_its_money_once() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let id = pending_payout(&mut partner).await;
    let mut other = operator.add_partner("100").await;
    expect_error(&cancel(&mut other, &id).await, 404, "PAYOUT_NOT_FOUND");
    expect_error(&cancel(&mut other, "po_1").await, 404, "PAYOUT_NOT_FOUND");
    let calls = (0..8).map(|_| {
        let (mut partner, id) = (partner.reconnect(), id.clone());
        async move { expect_success(&cancel(&mut partner, &id).await, 200) }
    });
    let cancelled = futures_util::future::join_all(calls).await;
    let last = &cancelled[0]["timeline"][1];
    assert_eq!(
        (&last["status"], &last["by"], &last["reason"]),
        (&json!("REJECTED"), &json!("partner"), &json!("wrong account"))
    );
    assert!(cancelled.iter().all(|one| one == &cancelled[0]), "{cancelled:?}");
    let reversals = partner.list_all("/transactions?type=PAYOUT_REVERSAL").await;
    assert_eq!(reversals.len(), 1);
    let wallet = wallet(&mut partner).await;
    assert_eq!(
        (&wallet["balance"], &wallet["pending_payouts"]),
        (&json!(100.0), &json!(0.0))
    );
    for verb in ["pay", "reject", "fail"] {
        let late = decide(&mut operator, &id, verb, &json!({})).await;
        expect_error(&late, 409, "PAYOUT_NOT_PENDING");
    }
    let path = format!("/admin/v1/audit?subject={id}&action=payout.cancel");
    let trail = operator.get(&path).await;
    assert_eq!(trail["data"][0]["operator"], partner.partner_id);
}

#[tokio::test]
async fn payout_that_an_operator_pays_is_not_cancellable() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let opened = pending_payout(&mut partner).await;
    operator.get(&format!("/admin/v1/payouts/{opened}")).await;
    let paid = pending_payout(&mut partner).await;
    expect_success(&decide(&mut operator, &paid, "pay", &json!({})).await, 200);
    for id in [&opened, &paid] {
        expect_error(&cancel(&mut partner, id).await, 409, "PAYOUT_NOT_CANCELLABLE");
    }
    assert_eq!(partner.balance("USD").await, "40.00");
    expect_success(&decide(&mut operator, &opened, "reject", &json!({})).await, 200);
    expect_error(
        &cancel(&mut partner, &opened).await,
        409,
        "PAYOUT_NOT_CANCELLABLE",
    );
    assert_eq!(partner.balance("USD").await, "70.00");
}

/// Each outcome moves the money once, whichever of the two comes first.
#[tokio::test]
async fn payment_and_cancellation_at_once_have_one_outcome() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let mut returned = 0;
    for round in 0..12 {
        let id = pending_payout(&mut partner).await;
        let (mut paying, mut cancelling) = (Operator::of(shared()), partner.reconnect());
        let pay = async {
            let shown = paying.get(&format!("/admin/v1/payouts/{id}")).await;
            let is_open = shown["destination"]["iban"] == IBAN;
            let paid = decide(&mut paying, &id, "pay", &json!({})).await;
            (is_open, paid.status.as_u16())
        };
        let ((is_open, paid), cancelled) = tokio::join!(pay, cancel(&mut cancelling, &id));
        let status = partner.read(&format!("/payouts/{id}")).await["status"].clone();
        match paid {
            200 => assert_eq!(
                (is_open, cancelled.status.as_u16(), status),
                (true, 409, json!("PAID")),
                "{round}"
            ),
            409 => {
                assert_eq!(
                    (cancelled.status.as_u16(), status),
                    (200, json!("REJECTED")),
                    "{round}"
                );
                returned += 30;
            }
            other => panic!("{other}"),
        }
    }
    let balance = 1_000 - 12 * 30 + returned;
    assert_eq!(partner.balance("USD").await, format!("{balance}.00"));
}
