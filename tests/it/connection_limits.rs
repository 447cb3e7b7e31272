//! Floods of connections: a client address has a cap, the listeners share the open files, and the database
//! keeps its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use vouchsafe_test_harness::{Instance, Operator, WAIT_TIMEOUT, expect_success, program};

use crate::commands::utf8;
use crate::metrics::scrape;

/// A connection from an address of this machine.
async fn connect(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from.into(), 0)).unwrap();
    socket.connect(to).await.unwrap()
}

/// Connections that are idle.
async fn connect_many(from: Ipv4Addr, to: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(connect(from, to).await);
    }
    connections
}

/// Sends a request that leaves the connection open, and returns whether the service responds.
async fn is_served(connection: &mut TcpStream) -> bool {
    // The service may have closed the connection.
    drop(
        connection
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: vouchsafe.test\r\n\r\n")
            .await,
    );
    let mut buffer = [0; 4096];
    let read = tokio::time::timeout(WAIT_TIMEOUT, connection.read(&mut buffer));
    matches!(read.await.expect("neither response nor close"), Ok(1..))
}

/// Positions of the connections that are served.
async fn served(connections: &mut [TcpStream]) -> Vec<usize> {
    let mut served = Vec::new();
    for (position, connection) in connections.iter_mut().enumerate() {
        if is_served(connection).await {
            served.push(position);
        }
    }
    served
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_one_address_leaves_the_listener_to_others() {
    let service = Instance::start_with(&[
        ("VOUCHSAFE_MAX_CONNECTIONS_PER_ADDRESS", "20"),
        ("VOUCHSAFE_ADMIN_TRUSTED_PROXIES", "127.0.0.3"),
    ]);
    let flooder = Ipv4Addr::new(127, 0, 0, 2);
    for address in [service.http_address(), service.admin_address()] {
        let mut flood = connect_many(flooder, address, 50).await;
        let open = served(&mut flood).await;
        assert_eq!(open.len(), 20, "{open:?}");
        let mut other = connect(Ipv4Addr::new(127, 0, 0, 4), address).await;
        assert!(is_served(&mut other).await, "another address is served");
        // A connection above the cap ends none of the others.
        assert_eq!(served(&mut flood).await, open);
    }
    // A proxy connects for all clients.
    let mut proxied = connect_many(Ipv4Addr::new(127, 0, 0, 3), service.admin_address(), 50).await;
    assert_eq!(served(&mut proxied).await.len(), 50);
    let mut operator = Operator::of(&service);
    operator.get("/admin/v1/partners").await;
    let metrics = scrape(&service).await;
    for listener in ["partner", "operator"] {
        let line = metrics.lines().find(|line| {
            line.starts_with("vouchsafe_http_connections_refused_total") && line.contains(listener)
        });
        let count: u64 = line.unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(count, 30, "{listener}: {line:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listener_that_is_full_leaves_the_other_and_the_database_working() {
    // So low a limit of open files that the flood would reach it, if the connections did not have a limit of
    // their own.
    let service = Instance::start_with_open_files(2_700, &[]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("1000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let flood = connect_many(Ipv4Addr::new(127, 0, 0, 2), service.admin_address(), 1_500).await;
    // Orders and new database connections work; the log has no error of a missing descriptor.
    expect_success(&partner.order(&sale, 1).await, 201);
    expect_success(&partner.reconnect().get("/wallets").await, 200);
    drop(flood);
    operator.get("/admin/v1/partners").await;
    let log = service.log();
    assert!(!log.contains("Too many open files"), "{log}");
}

#[test]
fn start_below_the_sum_of_open_files_is_refused_with_setting_and_limit() {
    let directory = TempDir::new().unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 4096 && exec \"$0\" \"$@\""])
        .arg(program());
    command.arg("--data-dir").arg(directory.path()).arg("serve");
    let output = command
        .env_remove("DATABASE_URL")
        .env("VOUCHSAFE_MAX_CONNECTIONS", "3000")
        .output()
        .unwrap();
    let message = utf8(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    for part in [
        "VOUCHSAFE_MAX_CONNECTIONS=3000",
        "(RLIMIT_NOFILE) is 4096",
        "LimitNOFILE",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}
