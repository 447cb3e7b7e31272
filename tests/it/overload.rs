//! What hears who comes while as much is under way as may be?

use std::net::SocketAddr;

use futures_util::future::join_all;
use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use vouchsafe_actors::engine::MAX_ADMITTED;

use crate::support::{Database, Instance, Operator, Partner, WAIT_TIMEOUT, Sale, eventually, send_signal, unique};

/// An order without credentials, on a connection that is to stay.
const UNAUTHENTICATED_ORDER: &str = "POST /api/v1/orders HTTP/1.1\r\nhost: vouchsafe.test\r\ncontent-type: application/json\r\n\
                        traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\ncontent-length: 2\r\n\r\n{}";

/// Sends it, and reads head and body of the answer.
async fn send_order(connection: &mut TcpStream) -> String {
    connection.write_all(UNAUTHENTICATED_ORDER.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let mut buffer = [0; 4096];
    while !answer.ends_with("}}") {
        let read = connection.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the connection was closed after {answer}");
        answer.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    answer
}

/// Asks on a connection of its own.
async fn send_order_on_new_connection(address: SocketAddr) -> (TcpStream, String) {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let answer = send_order(&mut connection).await;
    (connection, answer)
}

/// Orders until it is placed; whoever is told to come again does so.
async fn order_until_placed(mut partner: Partner, sale: &Sale) {
    let key = unique("key");
    let placed = eventually("an order is placed", WAIT_TIMEOUT * 3, async || {
        let answer = partner.order_with_key(&key, sale, 1).await;
        Some(answer.status.as_u16()).filter(|status| ![409, 503].contains(status))
    });
    assert_eq!(placed.await, 201);
}

#[tokio::test]
async fn an_order_too_many_is_turned_away_unread_and_its_connection_stays() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let orders = MAX_ADMITTED as usize;
    let sale = operator.add_stocked_product(orders).await;
    let partner = operator.add_partner("1000000").await;
    let lanes =
        "SELECT pid::text FROM pg_stat_activity WHERE application_name LIKE 'vouchsafe lane%' AND $1 = ''";
    let lanes = Database::of(&service).await.texts(lanes, "").await;
    let each_lane = |what| lanes.iter().for_each(|pid| send_signal(pid.parse().unwrap(), what));
    let anybody = || send_order_on_new_connection(service.http_address());
    assert!(anybody().await.1.starts_with("HTTP/1.1 401 "));

    each_lane(Signal::STOP);
    let held_up = async {
        let refused = eventually("no more is admitted", WAIT_TIMEOUT, async || {
            Some(anybody().await).filter(|(_, answer)| answer.starts_with("HTTP/1.1 503 "))
        });
        let (mut connection, refused) = refused.await;
        for told in [
            "\r\nretry-after: 1\r\n",
            "\r\nx-trace-id: 4bf92f3577b34da6a3ce929d0e0e4736\r\n",
            r#""code":"SERVICE_UNAVAILABLE""#,
            r#""retryable":true,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736""#,
        ] {
            assert!(refused.contains(told), "{told} is not in {refused}");
        }
        // The same connection is good for the next.
        assert!(send_order(&mut connection).await.starts_with("HTTP/1.1 503 "));
        each_lane(Signal::CONT);
    };
    let ordering = join_all((0..orders).map(|_| order_until_placed(partner.reconnect(), &sale)));
    tokio::join!(ordering, held_up);
    let (_, answer) = anybody().await;
    assert!(
        answer.starts_with("HTTP/1.1 401 "),
        "there is room again: {answer}"
    );
    let mut partner = partner.reconnect();
    assert_eq!(
        partner.balance("USD").await,
        format!("{}.00", 1_000_000 - 25 * orders)
    );
    service.assert_verified();
}
