//! Tests of the client's outcome classification, with raw sockets that respond, close or stay silent at a
//! given point.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use rustix::net::sockopt::set_socket_linger;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::{ApiResponse, Client, RequestFailure};

/// Timeout for a request that no server responds to.
const SHORT: Duration = Duration::from_millis(200);

/// Only a hang takes this long.
const LONG: Duration = Duration::from_mins(5);

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

/// A raw server on a separate thread.
struct Server {
    thread: JoinHandle<Vec<String>>,
    /// One message after each closed connection.
    closed: UnboundedReceiver<()>,
}

impl Server {
    /// Accepts `connections` connections and passes each to `serve`, which returns the requests that it read.
    fn start(
        connections: usize,
        serve: impl Fn(usize, &mut TcpStream) -> Vec<String> + Send + 'static,
    ) -> (Client, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let (closing, closed) = unbounded_channel();
        let thread = std::thread::spawn(move || {
            let mut requests = Vec::new();
            for index in 0..connections {
                let (mut stream, _) = listener.accept().unwrap();
                // Closing returns once the client's kernel has confirmed it.
                set_socket_linger(&stream, Some(LONG)).unwrap();
                requests.extend(serve(index, &mut stream));
                drop(stream);
                // The test may have stopped waiting.
                let _ = closing.send(());
            }
            requests
        });
        (Client::new(origin).with_timeout(LONG), Self { thread, closed })
    }

    /// Waits for all connections; returns the requests.
    fn requests(self) -> Vec<String> {
        self.thread.join().unwrap()
    }
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

async fn get(client: &mut Client, path: &str) -> Result<ApiResponse, RequestFailure> {
    client
        .call(Method::GET, path, HeaderMap::new(), Bytes::new())
        .await
}

#[tokio::test]
async fn requests_share_one_connection() {
    let (mut client, server) = Server::start(1, |_, stream| {
        (0..3)
            .map(|_| {
                let read = read_request(stream);
                stream.write_all(OK).unwrap();
                read
            })
            .collect()
    });
    for path in ["/a", "/b", "/c?d=1"] {
        assert_eq!(get(&mut client, path).await.unwrap().body, "{}");
    }
    let requests = server.requests();
    assert!(
        requests[2].starts_with("GET /c?d=1 HTTP/1.1\r\nhost: 127.0.0.1:"),
        "{}",
        requests[2]
    );
}

#[tokio::test]
async fn closed_connection_is_replaced() {
    let (mut client, mut server) = Server::start(3, |index, stream| {
        let read = read_request(stream);
        let closing = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(if index == 0 { closing } else { OK }).unwrap();
        vec![read]
    });
    for _ in 0..3 {
        assert_eq!(get(&mut client, "/").await.unwrap().status, 200);
        // The client's kernel knows of the close. A task that yields continues after the runtime has polled
        // its sockets.
        server.closed.recv().await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn refused_connection_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let failure = get(&mut Client::new(origin), "/").await.unwrap_err();
    assert!(matches!(failure, RequestFailure::NotSent(_)), "{failure}");
}

#[tokio::test]
async fn invalid_path_is_not_sent() {
    let (mut client, _server) = Server::start(0, |_, _| Vec::new());
    let failure = get(&mut client, "/a b").await.unwrap_err();
    assert!(matches!(failure, RequestFailure::NotSent(_)), "{failure}");
}

#[tokio::test]
async fn unanswered_request_is_unknown() {
    for partial_response in [
        &b""[..],
        b"HTTP/1.1 20",
        b"HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\n{\"ord",
        b"\0\0 what",
    ] {
        let (mut client, server) = Server::start(1, move |_, stream| {
            let read = read_request(stream);
            stream.write_all(partial_response).unwrap();
            vec![read]
        });
        let failure = get(&mut client, "/").await.unwrap_err();
        assert!(matches!(failure, RequestFailure::Unknown(_)), "{failure}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn timeout_is_unknown_and_closes_connection() {
    let (mut client, server) = Server::start(2, |index, stream| {
        let read = read_request(stream);
        stream.write_all(OK).unwrap();
        if index == 0 {
            // Responds to no further request and blocks until the client closes.
            stream.read_to_end(&mut Vec::new()).unwrap();
        }
        vec![read]
    });
    assert_eq!(get(&mut client, "/first").await.unwrap().status, 200);
    // The client is connected: only the response is late.
    let mut client = client.with_timeout(SHORT);
    let failure = get(&mut client, "/second").await.unwrap_err();
    assert!(matches!(failure, RequestFailure::Unknown(_)), "{failure}");
    let mut client = client.with_timeout(LONG);
    assert_eq!(get(&mut client, "/third").await.unwrap().status, 200);
    assert!(server.requests()[1].starts_with("GET /third"));
}

#[tokio::test]
async fn oversized_response_is_unknown() {
    let (mut client, server) = Server::start(1, |_, stream| {
        let read = read_request(stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n")
            .unwrap();
        while stream.write_all(&[b' '; 65_536]).is_ok() {}
        vec![read]
    });
    let failure = get(&mut client, "/").await.unwrap_err();
    assert!(matches!(failure, RequestFailure::Unknown(_)), "{failure}");
    drop(client);
    server.requests();
}
