//! State after restarts, kills and database outages.

use rustix::process::Signal;
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_error,
    expect_success, send_signal, shared, text_of, unique, wait_until,
};

struct StoredResponse {
    key: String,
    quantity: u32,
    response: ApiResponse,
}

async fn assert_replayed(partner: &mut Partner, sale: &Sale, stored: &[StoredResponse]) {
    for StoredResponse {
        key,
        quantity,
        response,
    } in stored
    {
        let repeated = partner.order_with_key(key, sale, *quantity).await;
        assert_eq!(
            (repeated.status, text_of(&repeated)),
            (response.status, text_of(response))
        );
        assert_eq!(repeated.header("idempotent-replayed"), Some("true"));
        assert_eq!(repeated.header("location"), response.header("location"));
    }
}

#[tokio::test]
async fn responses_after_stop_and_kill_are_replayed() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("110").await;
    let mut stored = Vec::new();
    for (quantity, status) in [(1, 201), (5, 402), (2, 409), (1, 201)] {
        let key = unique("key");
        let response = partner.order_with_key(&key, &sale, quantity).await;
        assert_eq!(response.status.as_u16(), status, "{response:?}");
        stored.push(StoredResponse {
            key,
            quantity,
            response,
        });
    }
    assert_eq!(service.stop(), Some(0));
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    assert_replayed(&mut partner, &sale, &stored).await;
    // A replay ignores new stock, new funds and the discontinued product.
    let mut operator = Operator::of(&service);
    operator.restock(&sale, 5, "").await;
    operator.top_up(&partner.partner_id, "USD", "1000").await;
    operator
        .put_product(&sale.product_id, serde_json::json!({ "discontinued": true }))
        .await;
    service.kill();
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    assert_replayed(&mut partner, &sale, &stored).await;
    let other = partner.order_with_key(&stored[0].key, &sale, 2).await;
    expect_error(&other, 422, "IDEMPOTENCY_KEY_REUSED");
    let path = stored[0]
        .response
        .header("location")
        .unwrap()
        .strip_prefix("/api/v1")
        .unwrap();
    assert_eq!(partner.get(path).await.body, stored[0].response.body);
    assert_eq!(partner.balance("USD").await, "1060.00");
    expect_error(&partner.order(&sale, 1).await, 409, "PRODUCT_UNAVAILABLE");
    service.assert_verified();
}

#[tokio::test]
async fn claimed_stock_after_kill_is_available_immediately() {
    const UNCLAIMED: &str = "SELECT count(*) FROM chunks WHERE product_id = $1 AND node IS NULL";
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    // One chunk.
    let sale = operator.add_stocked_product(15).await;
    let mut partner = operator.add_partner("10000").await;
    expect_success(&partner.order(&sale, 5).await, 201);
    assert_eq!(
        ServiceDatabase::of(&service)
            .await
            .count(UNCLAIMED, &sale.product_id)
            .await,
        0
    );
    let key = unique("key");
    service.kill();
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    let response = eventually("the first order to be placed", WAIT_TIMEOUT, async || {
        Some(partner.order_with_key(&key, &sale, 10).await).filter(|response| response.status != 503)
    });
    expect_success(&response.await, 201);
    expect_error(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
    service.assert_verified();
}

#[tokio::test]
async fn service_without_database_reports_unready_and_recovers() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let read_pid = |file: &str| -> u32 {
        let text = std::fs::read_to_string(service.data_dir().join(file)).unwrap();
        text.split_whitespace().next().unwrap().parse().unwrap()
    };
    let guard = read_pid("guard.lock");
    // A stopped guard cannot restart the server.
    send_signal(guard, Signal::STOP);
    send_signal(read_pid("postgres/data/postmaster.pid"), Signal::KILL);
    let key = unique("key");
    for address in [service.base_url().replace("/api/v1", ""), service.admin_url()] {
        let mut anonymous = partner.connect_to(&address);
        let unready = eventually("the service to be unready", WAIT_TIMEOUT, async || {
            Some(anonymous.get("/readyz").await).filter(|response| response.status != 200)
        });
        let response = unready.await;
        expect_error(&response, 503, "SERVICE_UNAVAILABLE");
        assert_eq!(response.header("retry-after"), Some("1"));
        assert_eq!(anonymous.get("/healthz").await.status, 200);
    }
    let rejection = expect_error(&partner.get("/wallets").await, 503, "SERVICE_UNAVAILABLE");
    assert_eq!(rejection["retryable"], true);
    let rejection = partner.order_with_key(&key, &sale, 1).await;
    assert!([409, 503].contains(&rejection.status.as_u16()), "{rejection:?}");
    assert_eq!(rejection.header("retry-after"), Some("1"));
    send_signal(guard, Signal::CONT);
    let response = eventually("the order to be placed", WAIT_TIMEOUT, async || {
        let response = partner.order_with_key(&key, &sale, 1).await;
        Some(response).filter(|response| ![409, 503].contains(&response.status.as_u16()))
    });
    expect_success(&response.await, 201);
    assert_eq!(partner.balance("USD").await, "50.00");
    let mut anonymous = partner.connect_to(&service.base_url().replace("/api/v1", ""));
    expect_success(&anonymous.get("/readyz").await, 200);
    service.assert_verified();
}

#[test]
fn second_service_on_same_data_directory_is_rejected() {
    let [http, admin] = [(); 2].map(|()| vouchsafe_test_harness::free_address());
    let second = std::process::Command::new(vouchsafe_test_harness::program())
        .arg("--data-dir")
        .arg(shared().data_dir())
        .args([
            "--http-addr",
            &http.to_string(),
            "--admin-addr",
            &admin.to_string(),
        ])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("is in use by process") && stderr.contains("stop it first"),
        "{stderr}"
    );
    // The first service is unaffected.
    wait_until("the first service to accept connections", WAIT_TIMEOUT, || {
        std::net::TcpStream::connect(shared().http_address()).ok()
    });
}
