//! Requests as bytes, for what no client library would send.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use vouchsafe_load::client::Answer;

use super::described::{Listener, checked};
use super::service::shared;

/// Longer than every deadline of the service for a request.
const ANSWER_DEADLINE: Duration = Duration::from_secs(20);

/// How long the service is kept waiting for the next piece of a slow request.
const PAUSE: Duration = Duration::from_millis(250);

/// The head of a request that is the last one on its connection; a body may follow.
pub(crate) fn head(request_line: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut head =
        format!("{request_line} HTTP/1.1\r\nhost: vouchsafe.test\r\nconnection: close\r\n").into_bytes();
    for (name, value) in headers {
        head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    head.extend(b"\r\n");
    head
}

/// Sends this request and reads what comes back, until the service closes; the answer must be as described.
pub(crate) async fn exchange(address: SocketAddr, request: &[u8]) -> Answer {
    let answer = exchange_undescribed(address, request).await;
    described(address, request, answer)
}

/// Like [`exchange`], for what is no request of any operation, such as garbage or another spelling of a path: nothing
/// describes the answer.
pub(crate) async fn exchange_undescribed(address: SocketAddr, request: &[u8]) -> Answer {
    let (read, mut write) = connect(address).await;
    // The service may refuse before it has read everything.
    drop(write.write_all(request).await);
    answer(read).await
}

/// Sends these bytes and gives what comes back as it came, until the service closes.
pub(crate) async fn bytes_of(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let (read, mut write) = connect(address).await;
    drop(write.write_all(request).await);
    received(read).await
}

/// Sends the first bytes at once and then one after the other, without end; the answer comes in between, and must be as
/// described.
pub(crate) async fn drip(address: SocketAddr, first: &[u8], endless: u8) -> Answer {
    let answer = drip_undescribed(address, first, endless).await;
    described(address, first, answer)
}

/// Like [`drip`], for what never becomes a request.
pub(crate) async fn drip_undescribed(address: SocketAddr, first: &[u8], endless: u8) -> Answer {
    let (read, mut write) = connect(address).await;
    write.write_all(first).await.unwrap();
    let dripping = async {
        while write.write_all(&[endless]).await.is_ok() {
            tokio::time::sleep(PAUSE).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = answer(read) => answer,
        () = dripping => unreachable!("it drips on"),
    }
}

/// The answer to a request that begins with these bytes, if it is as the listener's document says.
fn described(address: SocketAddr, request: &[u8], answer: Answer) -> Answer {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = std::str::from_utf8(line).unwrap().split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let listener = if address == shared().admin_address() {
        Listener::Operator
    } else {
        Listener::Partner
    };
    checked(listener, &method.parse().unwrap(), target, answer)
}

async fn connect(address: SocketAddr) -> (OwnedReadHalf, OwnedWriteHalf) {
    TcpStream::connect(address).await.unwrap().into_split()
}

async fn answer(read: OwnedReadHalf) -> Answer {
    parse(&received(read).await)
}

async fn received(mut read: OwnedReadHalf) -> Vec<u8> {
    let mut received = Vec::new();
    let reading = async {
        let mut part = [0; 4096];
        // A reset after the answer is an end like any other.
        while let Ok(count @ 1..) = read.read(&mut part).await {
            received.extend_from_slice(&part[..count]);
        }
    };
    tokio::time::timeout(ANSWER_DEADLINE, reading)
        .await
        .expect("the service neither answers nor closes");
    received
}

fn parse(received: &[u8]) -> Answer {
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
    Answer {
        status: StatusCode::from_bytes(status.as_bytes()).unwrap(),
        headers: headers.collect(),
        body: Bytes::copy_from_slice(&received[end + 4..]),
    }
}
