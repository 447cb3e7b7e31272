//! Raw HTTP requests that no client library sends.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use vouchsafe_api_client::ApiResponse;

use crate::instance::shared;
use crate::openapi_check::{Listener, assert_documented};
use crate::wait::WAIT_TIMEOUT;

/// Pause between two pieces of a slow request.
const SLOW_INTERVAL: Duration = Duration::from_millis(250);

/// Returns the head of the last request of a connection; a body may follow.
pub fn request_head(request_line: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut head =
        format!("{request_line} HTTP/1.1\r\nhost: vouchsafe.test\r\nconnection: close\r\n").into_bytes();
    for (name, value) in headers {
        head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    head.extend(b"\r\n");
    head
}

/// Sends a request, reads until the service closes and checks the response against the document.
pub async fn exchange(address: SocketAddr, request: &[u8]) -> ApiResponse {
    let response = exchange_undocumented(address, request).await;
    assert_documented_response(address, request, response)
}

/// Sends bytes that belong to no operation, such as invalid HTTP or another spelling of a path.
pub async fn exchange_undocumented(address: SocketAddr, request: &[u8]) -> ApiResponse {
    let (read, mut write) = connect(address).await;
    // The service may reject the request before it has read everything.
    drop(write.write_all(request).await);
    read_response(read).await
}

/// Sends bytes and returns everything received until the service closes.
pub async fn exchange_bytes(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let (read, mut write) = connect(address).await;
    drop(write.write_all(request).await);
    read_until_closed(read).await
}

/// Sends the first bytes immediately and then the endless byte repeatedly, until a documented response
/// arrives.
pub async fn send_slowly(address: SocketAddr, first: &[u8], endless: u8) -> ApiResponse {
    let response = send_slowly_undocumented(address, first, endless).await;
    assert_documented_response(address, first, response)
}

pub async fn send_slowly_undocumented(address: SocketAddr, first: &[u8], endless: u8) -> ApiResponse {
    let (read, mut write) = connect(address).await;
    write.write_all(first).await.unwrap();
    let sending = async {
        while write.write_all(&[endless]).await.is_ok() {
            tokio::time::sleep(SLOW_INTERVAL).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        response = read_response(read) => response,
        () = sending => unreachable!("the sender never completes"),
    }
}

/// Checks the response to a request that starts with these bytes.
fn assert_documented_response(address: SocketAddr, request: &[u8], response: ApiResponse) -> ApiResponse {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut parts = std::str::from_utf8(line).unwrap().split(' ');
    let (method, target) = (parts.next().unwrap(), parts.next().unwrap());
    let listener = if address == shared().admin_address() {
        Listener::Operator
    } else {
        Listener::Partner
    };
    assert_documented(listener, &method.parse().unwrap(), target, response)
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
        // The service may reset the connection after the response.
        while let Ok(count @ 1..) = read.read(&mut part).await {
            received.extend_from_slice(&part[..count]);
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, reading)
        .await
        .expect("neither response nor close");
    received
}

fn parse_response(received: &[u8]) -> ApiResponse {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no response: {:?}", String::from_utf8_lossy(received)));
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
