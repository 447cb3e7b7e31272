//! Requests as bytes, for what no client library would send.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use vouchsafe_load::client::ApiResponse;

use super::openapi_check::{Listener, assert_documented};
use super::service::shared;

/// Longer than every deadline of the service for a request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the service is kept waiting for the next piece of a slow request.
const SLOW_INTERVAL: Duration = Duration::from_millis(250);

/// The head of a request that is the last one on its connection; a body may follow.
pub(crate) fn request_head(request_line: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut head =
        format!("{request_line} HTTP/1.1\r\nhost: vouchsafe.test\r\nconnection: close\r\n").into_bytes();
    for (name, value) in headers {
        head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    head.extend(b"\r\n");
    head
}

/// Sends this request and reads what comes back, until the service closes; the answer must be as described.
pub(crate) async fn exchange(address: SocketAddr, request: &[u8]) -> ApiResponse {
    let answer = exchange_undocumented(address, request).await;
    assert_documented_response(address, request, answer)
}

/// Like [`exchange`], for what is no request of any operation, such as garbage or another spelling of a path: nothing
/// describes the answer.
pub(crate) async fn exchange_undocumented(address: SocketAddr, request: &[u8]) -> ApiResponse {
    let (read, mut write) = connect(address).await;
    // The service may refuse before it has read everything.
    drop(write.write_all(request).await);
    read_response(read).await
}

/// Sends these bytes and gives what comes back as it came, until the service closes.
pub(crate) async fn exchange_bytes(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let (read, mut write) = connect(address).await;
    drop(write.write_all(request).await);
    read_until_closed(read).await
}

/// Sends the first bytes at once and then one after the other, without end; the answer comes in between, and must be as
/// described.
pub(crate) async fn send_slowly(address: SocketAddr, first: &[u8], endless: u8) -> ApiResponse {
    let answer = send_slowly_undocumented(address, first, endless).await;
    assert_documented_response(address, first, answer)
}

/// Like [`send_slowly`], for what never becomes a request.
pub(crate) async fn send_slowly_undocumented(address: SocketAddr, first: &[u8], endless: u8) -> ApiResponse {
    let (read, mut write) = connect(address).await;
    write.write_all(first).await.unwrap();
    let dripping = async {
        while write.write_all(&[endless]).await.is_ok() {
            tokio::time::sleep(SLOW_INTERVAL).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = read_response(read) => answer,
        () = dripping => unreachable!("it drips on"),
    }
}

/// The answer to a request that begins with these bytes, if it is as the listener's document says.
fn assert_documented_response(address: SocketAddr, request: &[u8], answer: ApiResponse) -> ApiResponse {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = std::str::from_utf8(line).unwrap().split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let listener = if address == shared().admin_address() {
        Listener::Operator
    } else {
        Listener::Partner
    };
    assert_documented(listener, &method.parse().unwrap(), target, answer)
}

async fn connect(address: SocketAddr) -> (OwnedReadHalf, OwnedWriteHalf) {
    TcpStream::connect(address).await.unwrap().into_split()
}

async fn read_response(read: OwnedReadHalf) -> ApiResponse {
    parse_response(&read_until_closed(read).await)
}

async fn read_until_closed(mut read: OwnedReadHalf) -> Vec<u8> {
    let mut received = Vec::new();
    let reading = async {
        let mut part = [0; 4096];
        // A reset after the answer is an end like any other.
        while let Ok(count @ 1..) = read.read(&mut part).await {
            received.extend_from_slice(&part[..count]);
        }
    };
    tokio::time::timeout(RESPONSE_TIMEOUT, reading)
        .await
        .expect("the service neither answers nor closes");
    received
}

fn parse_response(received: &[u8]) -> ApiResponse {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(received)));
    let mut lines = std::str::from_utf8(&received[..end]).unwrap().split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (
            HeaderName::try_from(name).unwrap(),
            HeaderValue::from_str(value).unwrap(),
        )
    });
    ApiResponse {
        status: StatusCode::from_bytes(status.as_bytes()).unwrap(),
        headers: headers.collect(),
        body: Bytes::copy_from_slice(&received[end + 4..]),
    }
}
