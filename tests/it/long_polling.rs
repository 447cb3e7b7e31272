//! Long polling of orders with `Prefer: wait`.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hyper::Method;
use serde_json::Value;
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{
    Instance, Operator, Partner, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_error, expect_success,
    shared,
};

use crate::credential_rotation::rotate;

const PREFER: &str = "prefer";
const PREFERENCE_APPLIED: &str = "preference-applied";

/// The longest wait (contract §3), after which the service responds in any case.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// So many of the longest waits exceed `WAIT_TIMEOUT`.
const IMMEDIATE_REQUESTS: u32 = 11;

/// Waiters per API key (contract §3).
const MAX_WAITERS: usize = 100;

/// Places an order that is pending at a vendor or delivered from stock; returns its path.
async fn place_order(operator: &mut Operator, partner: &mut Partner, route: &str) -> String {
    let sale = operator.add_product(route, usize::from(route == "stock")).await;
    let response = partner.order(&sale, 1).await;
    assert!(response.status.is_success(), "{response:?}");
    let order: Value = serde_json::from_slice(&response.body).unwrap();
    format!("/orders/{}", order["order_id"].as_str().unwrap())
}

async fn get_with_preference(partner: &mut Partner, path: &str, preference: &str) -> ApiResponse {
    partner.get_with_header(path, (PREFER, preference)).await
}

#[tokio::test]
async fn completed_order_is_returned_immediately() {
    let mut operator = Operator::of(shared());
    let partner = &mut operator.add_partner("100").await;
    let delivered = place_order(&mut operator, partner, "stock").await;
    let unknown = "/orders/ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";
    let requests = async {
        for _ in 0..IMMEDIATE_REQUESTS {
            let response = get_with_preference(partner, &delivered, "wait=30").await;
            assert_eq!(expect_success(&response, 200)["status"], "DELIVERED");
            assert_eq!(response.header(PREFERENCE_APPLIED), Some("wait=30"));
            let response = get_with_preference(partner, unknown, "wait=30").await;
            expect_error(&response, 404, "ORDER_NOT_FOUND");
        }
    };
    let responses = tokio::time::timeout(WAIT_TIMEOUT, requests).await;
    responses.expect("no request waits for a change");
}

#[tokio::test]
async fn wait_preference_is_applied_capped_or_ignored() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let pending = place_order(&mut operator, &mut partner, "vendor").await;
    let delivered = place_order(&mut operator, &mut partner, "stock").await;
    for (path, preference, applied) in [
        (&pending, "wait=1", Some("wait=1")),
        (&pending, "respond-async, wait=0; a=b", Some("wait=0")),
        (&pending, "wait=soon", None),
        (&pending, "return=minimal", None),
        (&delivered, "wait=3600", Some("wait=30")),
        (&delivered, "wait=-1", None),
    ] {
        let response = get_with_preference(&mut partner, path, preference).await;
        expect_success(&response, 200);
        assert_eq!(response.header(PREFERENCE_APPLIED), applied, "{preference}");
    }
    assert_eq!(partner.get(&pending).await.header(PREFERENCE_APPLIED), None);
}

#[tokio::test]
async fn waiters_beyond_limit_are_not_held() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let pending = place_order(&mut operator, &mut partner, "vendor").await;
    // A key and its successor share the limit.
    let (successor, _) = rotate(&mut partner, r#"{"overlap_seconds":3600}"#).await;
    let mut waiting: FuturesUnordered<_> = (0..=MAX_WAITERS)
        .map(|number| {
            let caller = if number % 2 == 0 { &partner } else { &successor };
            let (mut partner, pending) = (caller.reconnect(), &pending);
            async move { get_with_preference(&mut partner, pending, "wait=30").await }
        })
        .collect();
    let response = waiting.next().await.unwrap();
    assert_eq!(expect_success(&response, 200)["status"], "PENDING");
    assert_eq!(response.header(PREFERENCE_APPLIED), None);
    // The others wait until the order changes.
    let cancel = format!("{pending}/cancel");
    expect_success(&partner.send_signed(Method::POST, &cancel, "").await, 200);
    while let Some(response) = waiting.next().await {
        expect_success(&response, 200);
        assert_eq!(response.header(PREFERENCE_APPLIED), Some("wait=30"));
    }
}

#[tokio::test]
async fn order_change_or_shutdown_ends_wait() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let mut partner = operator.add_partner("100").await;
    let [changing, unchanged] = [
        place_order(&mut operator, &mut partner, "vendor").await,
        place_order(&mut operator, &mut partner, "vendor").await,
    ];
    let mut database = ServiceDatabase::of(&service).await;
    let mut waiting = partner.reconnect();
    waiting.client = waiting.client.with_timeout(LONGEST_WAIT);
    let change = async {
        wait_for_poll(&mut database).await;
        let order_id = changing.trim_start_matches("/orders/ord_");
        let sql = "UPDATE orders SET status = 'CANCELLED' WHERE order_id = $1::uuid RETURNING status";
        assert_eq!(database.texts(sql, order_id).await, ["CANCELLED"]);
    };
    let (response, ()) = tokio::join!(get_with_preference(&mut waiting, &changing, "wait=30"), change);
    assert_eq!(expect_success(&response, 200)["status"], "CANCELLED");
    assert_eq!(response.header(PREFERENCE_APPLIED), Some("wait=30"));
    let shutdown = async {
        wait_for_poll(&mut database).await;
        service.terminate();
    };
    let (response, ()) = tokio::join!(get_with_preference(&mut waiting, &unchanged, "wait=30"), shutdown);
    assert_eq!(expect_success(&response, 200)["status"], "PENDING");
    assert_eq!(service.wait_for_exit(), Some(0), "{}", service.log());
}

/// Waits until a waiting request reads its order's status.
async fn wait_for_poll(database: &mut ServiceDatabase) {
    let now = database.all_texts("SELECT clock_timestamp()::text".to_owned());
    let begin = now.await.remove(0);
    let polls = "SELECT count(*)
                   FROM pg_stat_activity
                  WHERE query LIKE 'SELECT status AS % FROM orders WHERE partner_id = $1 AND order_id = $2'
                    AND query_start > $1::timestamptz";
    eventually("a waiting request", WAIT_TIMEOUT, async || {
        (database.count(polls, &begin).await > 0).then_some(())
    })
    .await;
}

/// Repeats the request while the key has no permit for it.
async fn get_when_admitted(partner: &mut Partner, path: &str, preference: &str) -> ApiResponse {
    let event = format!("{path} to be admitted with {preference}");
    let admitted = eventually(&event, WAIT_TIMEOUT, async || {
        let response = get_with_preference(partner, path, preference).await;
        Some(response).filter(|response| response.status.as_u16() == 200)
    });
    admitted.await
}

#[tokio::test]
async fn waiting_request_holds_no_permit_in_flight() {
    let service = Instance::start_with(&[("VOUCHSAFE_MAX_IN_FLIGHT", "1")]);
    let mut operator = Operator::of(&service);
    let mut partner = operator.add_partner("100").await;
    let pending = place_order(&mut operator, &mut partner, "vendor").await;
    let mut database = ServiceDatabase::of(&service).await;
    let [mut leaving, mut waiting] = [partner.reconnect(), partner.reconnect()];
    let mut second_request = async || {
        wait_for_poll(&mut database).await;
        let response = get_when_admitted(&mut partner, &pending, "wait=1").await;
        assert_eq!(response.header(PREFERENCE_APPLIED), Some("wait=1"));
    };
    // The client of the first request leaves when `select` drops it.
    tokio::select! {
        _ = get_when_admitted(&mut leaving, &pending, "wait=30") => panic!("the longest wait has ended"),
        () = second_request() => {}
    }
    let end = async {
        second_request().await;
        service.terminate();
    };
    let (response, ()) = tokio::join!(get_when_admitted(&mut waiting, &pending, "wait=30"), end);
    assert_eq!(expect_success(&response, 200)["status"], "PENDING");
    assert_eq!(response.header(PREFERENCE_APPLIED), Some("wait=30"));
}
