//! Load shedding: orders beyond the admission limit.

use std::net::SocketAddr;

use futures_util::future::join_all;
use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use vouchsafe_actors::journal::MAX_ADMITTED;

use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, ServiceDatabase, WAIT_TIMEOUT, eventually, send_signal, unique,
};

/// An order without credentials on a keep-alive connection.
const UNAUTHENTICATED_ORDER: &str = "POST /api/v1/orders HTTP/1.1\r\nhost: vouchsafe.test\r\ncontent-type: application/json\r\n\
                        traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\ncontent-length: 2\r\n\r\n{}";

/// Sends the order and reads head and body of the response.
async fn send_order(connection: &mut TcpStream) -> String {
    connection
        .write_all(UNAUTHENTICATED_ORDER.as_bytes())
        .await
        .unwrap();
    let mut response = String::new();
    let mut buffer = [0; 4096];
    while !response.ends_with("}}") {
        let read = connection.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the connection was closed after {response}");
        response.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    response
}

async fn send_order_on_new_connection(address: SocketAddr) -> (TcpStream, String) {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let response = send_order(&mut connection).await;
    (connection, response)
}

/// Retries an order on 409 and 503 until it is placed.
async fn order_until_placed(mut partner: Partner, sale: &Sale) {
    let key = unique("key");
    let placed = eventually("the order to be placed", WAIT_TIMEOUT, async || {
        let response = partner.order_with_key(&key, sale, 1).await;
        Some(response.status.as_u16()).filter(|status| ![409, 503].contains(status))
    });
    assert_eq!(placed.await, 201);
}

#[tokio::test]
async fn order_beyond_admission_limit_is_rejected_unread_on_open_connection() {
    let service = Instance::start_with(&[("VOUCHSAFE_LANES", "1")]);
    let mut operator = Operator::of(&service);
    let orders = MAX_ADMITTED;
    let sale = operator.add_stocked_product(orders).await;
    let partner = operator.add_partner("1000000").await;
    let lanes =
        "SELECT pid::text FROM pg_stat_activity WHERE application_name LIKE 'vouchsafe lane%' AND $1 = ''";
    let lanes = ServiceDatabase::of(&service).await.texts(lanes, "").await;
    let signal_lanes = |signal| {
        lanes
            .iter()
            .for_each(|pid| send_signal(pid.parse().unwrap(), signal))
    };
    let connect = || send_order_on_new_connection(service.http_address());
    assert!(connect().await.1.starts_with("HTTP/1.1 401 "));

    signal_lanes(Signal::STOP);
    let at_limit = async {
        let rejected = eventually("the admission limit to be reached", WAIT_TIMEOUT, async || {
            Some(connect().await).filter(|(_, response)| response.starts_with("HTTP/1.1 503 "))
        });
        let (mut connection, rejected) = rejected.await;
        for expected in [
            "\r\nretry-after: 1\r\n",
            "\r\nx-trace-id: 4bf92f3577b34da6a3ce929d0e0e4736\r\n",
            r#""code":"SERVICE_UNAVAILABLE""#,
            r#""retryable":true,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736""#,
        ] {
            assert!(rejected.contains(expected), "{expected} is not in {rejected}");
        }
        // The connection stays usable.
        assert!(send_order(&mut connection).await.starts_with("HTTP/1.1 503 "));
        signal_lanes(Signal::CONT);
    };
    let ordering = join_all((0..orders).map(|_| order_until_placed(partner.reconnect(), &sale)));
    tokio::join!(ordering, at_limit);
    let (_, response) = connect().await;
    assert!(
        response.starts_with("HTTP/1.1 401 "),
        "orders must be admitted again: {response}"
    );
    let mut partner = partner.reconnect();
    assert_eq!(
        partner.balance("USD").await,
        format!("{}.00", 1_000_000 - 25 * orders)
    );
    service.assert_verified();
}
