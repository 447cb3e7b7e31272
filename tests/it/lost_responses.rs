//! Orders whose response is lost, with the sandbox product that drops it.

use vouchsafe_api_client::RequestFailure;
use vouchsafe_api_client::partner::PartnerClient;

use vouchsafe_test_harness::{Operator, expect_error, expect_success, shared, unique};

const ORDER: &str = r#"{"items":[{"product_id":"sbx-lost-response","denomination":25,"quantity":1}]}"#;

#[tokio::test]
async fn lost_response_is_replayed_and_paid_once() {
    let service = shared();
    let mut operator = Operator::of(service);
    let mut partner = operator.add_partner("100").await;
    let credentials = partner.client.credentials().clone();
    let mut client = PartnerClient::new(&service.base_url(), credentials).unwrap();
    for key in [unique("key"), unique("key")] {
        let outcome = client.order(&key, ORDER).await;
        assert!(matches!(outcome, Err(RequestFailure::Unknown(_))), "{outcome:?}");
        let repeated = partner.send_text(&key, ORDER).await;
        let order = expect_success(&repeated, 201);
        assert_eq!(order["status"], "DELIVERED");
        assert_eq!(repeated.header("idempotent-replayed"), Some("true"));
    }
    assert_eq!(partner.balance("USD").await, "50.00");
}

#[tokio::test]
async fn refusals_and_their_replays_are_answered() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    let key = unique("key");
    let refused = partner.send_text(&key, ORDER).await;
    expect_error(&refused, 402, "INSUFFICIENT_FUNDS");
    assert_eq!(refused.header("idempotent-replayed"), None);
    let repeated = partner.send_text(&key, ORDER).await;
    assert_eq!(repeated.header("idempotent-replayed"), Some("true"));
    assert_eq!((repeated.status, &repeated.body), (refused.status, &refused.body));
    let other = ORDER.replace("\"quantity\":1", "\"quantity\":2");
    expect_error(
        &partner.send_text(&key, &other).await,
        422,
        "IDEMPOTENCY_KEY_REUSED",
    );
    let unpriced = ORDER.replace(":25,", ":26,");
    let response = partner.send_text(&unique("key"), &unpriced).await;
    expect_error(&response, 422, "DENOMINATION_NOT_ALLOWED");
    for response in [&refused, &repeated, &response] {
        assert!(response.header("ratelimit").is_some());
    }
}
