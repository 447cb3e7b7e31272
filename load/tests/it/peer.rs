//! Tests of the peer program in all modes on a temporary Postgres.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::join_all;
use hyper::{HeaderMap, Method};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::partner::{IDEMPOTENCY_KEY, PartnerClient, unix_seconds};
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_api_client::wire::{ListView, OrderView, WalletView};
use vouchsafe_load::peer::PeerMode;
use vouchsafe_load::peer::process::{PeerCredentials, PeerOptions, PeerProcess};
use vouchsafe_load::peer::schema::create_database;

use crate::postgres;

const ORDER: &str = r#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;

struct Peer {
    process: PeerProcess,
    database: PgConnectOptions,
}

impl Peer {
    async fn start(mode: PeerMode, stock: u64) -> Self {
        static DATABASES: AtomicU32 = AtomicU32::new(0);
        let name = format!("peer_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let database = create_database(&postgres::superuser_options().await, &name)
            .await
            .unwrap();
        let process = PeerProcess::start(&PeerOptions {
            program: Path::new(env!("CARGO_BIN_EXE_load")),
            mode,
            pool: 4,
            database: &database,
            partner: &PeerCredentials::generate(),
            product: "sbx-instant",
            stock,
        });
        let process = process.unwrap();
        Self { process, database }
    }

    fn partner(&self) -> PartnerClient {
        PartnerClient::new(self.process.url(), self.process.credentials().clone()).unwrap()
    }

    async fn sql(&self, statement: &'static str) {
        let mut connection = PgConnection::connect_with(&self.database).await.unwrap();
        sqlx::query(statement).execute(&mut connection).await.unwrap();
    }

    async fn count(&self, statement: &'static str) -> i64 {
        let mut connection = PgConnection::connect_with(&self.database).await.unwrap();
        sqlx::query_scalar(statement)
            .fetch_one(&mut connection)
            .await
            .unwrap()
    }
}

fn status_and_code(response: &ApiResponse) -> (u16, String) {
    (
        response.status.as_u16(),
        response.error_code().unwrap_or_default(),
    )
}

fn rejected(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

async fn balance(partner: &mut PartnerClient) -> String {
    let response = partner.get("/wallets").await.unwrap();
    let list: ListView<WalletView<'_>> = response.json().unwrap();
    list.data[0].balance.get().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn order_is_sold_read_back_and_replayed() {
    let peer = Peer::start(PeerMode::RowLocks, 5).await;
    let mut partner = peer.partner();
    let before = balance(&mut partner).await;
    let several = ORDER.replace(r#""quantity":1"#, r#""quantity":3"#);
    let sold = partner.order("k", several.clone()).await.unwrap();
    assert_eq!(sold.status, 201, "{}", String::from_utf8_lossy(&sold.body));
    let order = OrderView::parse(&sold.body).unwrap();
    assert_eq!((order.status, order.total_amount.get()), ("DELIVERED", "75.00"));
    assert_eq!(order.vouchers.len(), 3);

    let path = format!("/orders/{}", order.order_id);
    assert_eq!(partner.get(&path).await.unwrap().body, sold.body);

    let again = partner.order("k", several).await.unwrap();
    assert_eq!((again.status, &again.body), (sold.status, &sold.body));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let other = partner.order("k", ORDER).await.unwrap();
    assert_eq!(status_and_code(&other), rejected(422, "IDEMPOTENCY_KEY_REUSED"));

    let cents = |text: &str| text.replace('.', "").parse::<i64>().unwrap();
    assert_eq!(cents(&before) - cents(&balance(&mut partner).await), 7_500);
    assert_eq!(peer.count("SELECT count(*) FROM orders").await, 1);
    assert_eq!(peer.count("SELECT count(*) FROM events").await, 1);
    assert_eq!(
        peer.count("SELECT count(*) FROM vouchers WHERE order_id IS NULL")
            .await,
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refusal_is_stored_and_changes_nothing() {
    let peer = Peer::start(PeerMode::RowLocks, 2).await;
    let mut partner = peer.partner();
    let three = ORDER.replace(r#""quantity":1"#, r#""quantity":3"#);
    let out_of_stock = partner.order("stock", three.clone()).await.unwrap();
    assert_eq!(
        status_and_code(&out_of_stock),
        rejected(409, "INSUFFICIENT_INVENTORY")
    );
    assert!(String::from_utf8_lossy(&out_of_stock.body).contains("sbx-instant"));

    peer.sql("UPDATE wallets SET balance = 2499").await;
    let unfunded = partner.order("funds", ORDER).await.unwrap();
    assert_eq!(status_and_code(&unfunded), rejected(402, "INSUFFICIENT_FUNDS"));
    assert_eq!(
        peer.count("SELECT count(*) FROM vouchers WHERE order_id IS NULL")
            .await,
        2
    );
    assert_eq!(peer.count("SELECT count(*) FROM orders").await, 0);

    peer.sql("UPDATE wallets SET balance = 100000").await;
    let replayed = partner.order("funds", ORDER).await.unwrap();
    assert_eq!(
        (status_and_code(&replayed), &replayed.body),
        (status_and_code(&unfunded), &unfunded.body)
    );
    assert_eq!(replayed.header("idempotent-replayed"), Some("true"));
    assert_eq!(
        partner.order("stock", three).await.unwrap().body,
        out_of_stock.body
    );
    assert_eq!(partner.order("new", ORDER).await.unwrap().status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn last_voucher_is_sold_once_and_key_executes_once() {
    let peer = Peer::start(PeerMode::RowLocks, 2).await;
    let repeated = (0..8).map(|_| order(&peer, "same".to_owned()));
    let repeated = join_all(repeated).await;
    assert!(
        repeated
            .iter()
            .all(|response| response.body == repeated[0].body && response.status == 201)
    );
    assert_eq!(peer.count("SELECT count(*) FROM orders").await, 1);

    let distinct = join_all((0..12).map(|number| order(&peer, number.to_string()))).await;
    let mut codes: Vec<_> = distinct.iter().map(status_and_code).collect();
    codes.sort_unstable();
    assert_eq!(codes[0], rejected(201, ""));
    assert!(
        codes[1..]
            .iter()
            .all(|code| *code == rejected(409, "INSUFFICIENT_INVENTORY")),
        "{codes:?}"
    );
    assert_eq!(peer.count("SELECT count(*) FROM allocations").await, 2);
    assert_eq!(
        peer.count("SELECT sum(amount)::bigint - (SELECT balance FROM wallets) FROM ledger")
            .await,
        0
    );
}

async fn order(peer: &Peer, key: String) -> ApiResponse {
    peer.partner().order(&key, ORDER).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_are_rejected() {
    let peer = Peer::start(PeerMode::RowLocks, 1).await;
    let mut partner = peer.partner();
    let (path, now) = ("/api/v1/orders", unix_seconds());
    let signed = |body: &str, at: u64| {
        let mut headers = HeaderMap::new();
        let signed = peer.process.credentials().sign("POST", path, body.as_bytes(), at);
        signed.apply_to(&mut headers);
        headers.insert(IDEMPOTENCY_KEY, "k".parse().unwrap());
        headers
    };
    let mut without_key = signed(ORDER, now);
    without_key.remove(IDEMPOTENCY_KEY);
    let mut duplicated = signed(ORDER, now);
    duplicated.append("x-api-key", "again".parse().unwrap());
    let other = ORDER.replace("sbx-instant", "other");
    let table = [
        (ORDER, signed("{}", now), rejected(401, "INVALID_SIGNATURE")),
        (
            ORDER,
            signed(ORDER, now - 400),
            rejected(401, "TIMESTAMP_OUT_OF_RANGE"),
        ),
        (ORDER, duplicated, rejected(401, "INVALID_CREDENTIALS")),
        (ORDER, without_key, rejected(400, "MISSING_IDEMPOTENCY_KEY")),
        (&other, signed(&other, now), rejected(422, "VALIDATION_FAILED")),
    ];
    for (body, headers, expected) in table {
        let response = partner.send_raw(Method::POST, path, headers, body.to_owned());
        assert_eq!(status_and_code(&response.await.unwrap()), expected);
    }
    let unknown_partner = Credentials::new("vs_sandbox_other", "secret").unwrap();
    let mut unknown_partner = PartnerClient::new(peer.process.url(), unknown_partner).unwrap();
    assert_eq!(
        status_and_code(&unknown_partner.order("k", ORDER).await.unwrap()),
        rejected(401, "INVALID_CREDENTIALS")
    );
    assert_eq!(peer.count("SELECT count(*) FROM orders").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn floor_responds_after_commit() {
    let floor = Peer::start(PeerMode::Floor, 0).await;
    let responses = join_all((0..20).map(|number| order(&floor, number.to_string()))).await;
    assert!(responses.iter().all(|response| response.status == 201));
    for table in [
        "SELECT count(*) FROM orders",
        "SELECT count(*) FROM allocations",
        "SELECT count(*) FROM balances",
        "SELECT count(*) FROM ledger",
        "SELECT count(*) FROM events",
    ] {
        assert_eq!(floor.count(table).await, 20, "{table}");
    }
}
