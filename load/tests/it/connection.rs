//! What does the client know when a connection ends? Raw sockets that answer, stop, or stay silent at a given point.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use vouchsafe_load::client::{ApiResponse, Client, RequestFailure};
use vouchsafe_load::origin::Origin;

/// Bound of an exchange where silence is what is tested; all others end by themselves.
const SHORT: Duration = Duration::from_millis(200);

/// How often the runtime looks at its sockets for the end of a connection: some milliseconds of looking.
const LOOKS: usize = 5_000;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

/// A server on a thread of its own.
struct Server {
    thread: JoinHandle<Vec<String>>,
    /// One message for each connection that it closed, sent after the closing.
    closed: UnboundedReceiver<()>,
}

impl Server {
    /// Accepts `connections` and hands each to `serve`, which returns the requests it read.
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
                requests.extend(serve(index, &mut listener.accept().unwrap().0));
                // The test may not wait for it any more.
                let _ = closing.send(());
            }
            requests
        });
        (Client::new(origin), Self { thread, closed })
    }

    /// The requests it read, once it has served all its connections.
    fn requests(self) -> Vec<String> {
        self.thread.join().unwrap()
    }
}

/// Reads one request without a body.
fn request(stream: &mut TcpStream) -> String {
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
async fn requests_follow_each_other_on_one_connection() {
    let (mut client, server) = Server::start(1, |_, stream| {
        (0..3)
            .map(|_| {
                let read = request(stream);
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
async fn a_connection_that_the_server_closed_is_replaced() {
    let (mut client, mut server) = Server::start(3, |index, stream| {
        let read = request(stream);
        let closing = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(if index == 0 { closing } else { OK }).unwrap();
        vec![read]
    });
    for _ in 0..3 {
        assert_eq!(get(&mut client, "/").await.unwrap().status, 200);
        // The end of the connection must have arrived, and the runtime have looked at its sockets: before that,
        // nobody can know of it. A busy kernel brings it a moment after the closing, so the runtime looks often.
        server.closed.recv().await.unwrap();
        for _ in 0..LOOKS {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn nobody_listening_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let failure = get(&mut Client::new(origin), "/").await.unwrap_err();
    assert!(matches!(failure, RequestFailure::NotSent(_)), "{failure}");
}

#[tokio::test]
async fn what_cannot_be_a_path_is_not_sent() {
    let (mut client, _server) = Server::start(0, |_, _| Vec::new());
    let failure = get(&mut client, "/a b").await.unwrap_err();
    assert!(matches!(failure, RequestFailure::NotSent(_)), "{failure}");
}

#[tokio::test]
async fn a_request_that_was_read_and_not_answered_is_unknown() {
    for answer in [
        &b""[..],
        b"HTTP/1.1 20",
        b"HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\n{\"ord",
        b"\0\0 what",
    ] {
        let (mut client, server) = Server::start(1, move |_, stream| {
            let read = request(stream);
            stream.write_all(answer).unwrap();
            vec![read]
        });
        let failure = get(&mut client, "/").await.unwrap_err();
        assert!(matches!(failure, RequestFailure::Unknown(_)), "{failure}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn silence_is_unknown_and_its_connection_is_not_used_again() {
    let (client, server) = Server::start(2, |index, stream| {
        let read = request(stream);
        if index == 1 {
            stream.write_all(OK).unwrap();
            return vec![read];
        }
        // Until the client gives up.
        stream.read_to_end(&mut Vec::new()).unwrap();
        vec![read]
    });
    let mut client = client.with_timeout(SHORT);
    let failure = get(&mut client, "/first").await.unwrap_err();
    assert!(matches!(failure, RequestFailure::Unknown(_)), "{failure}");
    assert_eq!(get(&mut client, "/second").await.unwrap().status, 200);
    assert!(server.requests()[1].starts_with("GET /second"));
}

#[tokio::test]
async fn an_answer_without_end_is_given_up() {
    let (mut client, server) = Server::start(1, |_, stream| {
        let read = request(stream);
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
