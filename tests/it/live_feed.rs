//! Live feed of the operator API: its number per node, and its end when the service stops.

use bytes::Bytes;
use hyper::Method;
use hyper::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use vouchsafe_api_client::Client;
use vouchsafe_api_client::origin::Origin;
use vouchsafe_test_harness::{
    CheckedOperator, Instance, Operator, WAIT_TIMEOUT, eventually, expect_error, text_of,
};

/// Feeds that a node serves at the same time.
const MAX_FEEDS: usize = 64;

/// A client that follows the feed.
pub(crate) struct LiveFeed {
    stream: TcpStream,
    received: Vec<u8>,
}

impl LiveFeed {
    /// Follows the feed, which must not be refused.
    pub(crate) async fn open(service: &Instance) -> Self {
        let feed = Self::connect(service).await;
        assert!(feed.is_open(), "{}", String::from_utf8_lossy(&feed.received));
        feed
    }

    /// Asks for the feed, and reads the head of the response.
    async fn connect(service: &Instance) -> Self {
        let mut stream = TcpStream::connect(service.admin_address()).await.unwrap();
        let head = format!(
            "GET /admin/v1/live HTTP/1.1\r\nhost: vouchsafe.test\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\n\r\n",
            service.operator_token()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut feed = Self {
            stream,
            received: Vec::new(),
        };
        while !String::from_utf8_lossy(&feed.received).contains("\r\n\r\n") {
            let count = feed.read_more().await;
            assert!(count > 0, "{}", String::from_utf8_lossy(&feed.received));
        }
        feed
    }

    fn is_open(&self) -> bool {
        let head = String::from_utf8_lossy(&self.received);
        head.starts_with("HTTP/1.1 200") && head.contains("content-type: text/event-stream")
    }

    /// Returns the data of the next event.
    pub(crate) async fn next_event(&mut self) -> Value {
        const EVENT: &str = "event: sample\ndata: ";
        loop {
            let text = String::from_utf8_lossy(&self.received).into_owned();
            if let Some((_, event)) = text.split_once(EVENT)
                && let Some((data, rest)) = event.split_once("\n\n")
            {
                self.received = rest.as_bytes().to_vec();
                return serde_json::from_str(data).unwrap();
            }
            assert!(self.read_more().await > 0, "the feed ended: {text}");
        }
    }

    /// Reads until the service ends the feed. The last chunk of a complete response is empty.
    async fn read_to_end(&mut self) {
        while self.read_more().await > 0 {}
        let text = String::from_utf8_lossy(&self.received);
        assert!(text.ends_with("\r\n0\r\n\r\n"), "{text}");
    }

    async fn read_more(&mut self) -> usize {
        let read = self.stream.read_buf(&mut self.received);
        tokio::time::timeout(WAIT_TIMEOUT, read)
            .await
            .expect("data or the end of the live feed")
            .unwrap()
    }
}

/// The exit code 0 shows that nothing had to be cut off: with a request that stays open the service exits
/// with 1.
#[tokio::test]
async fn live_feed_ends_when_the_service_stops() {
    let mut service = Instance::start();
    let mut feeds = Vec::new();
    for _ in 0..3 {
        let mut feed = LiveFeed::open(&service).await;
        feed.next_event().await;
        feeds.push(feed);
    }
    service.terminate();
    for feed in &mut feeds {
        feed.read_to_end().await;
    }
    assert_eq!(service.wait_for_exit(), Some(0), "{}", service.log());
}

#[tokio::test]
async fn live_feed_beyond_the_limit_is_refused_until_one_ends() {
    let service = Instance::start();
    let mut feeds = Vec::new();
    for _ in 0..MAX_FEEDS {
        feeds.push(LiveFeed::open(&service).await);
    }
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let bearer = format!("Bearer {}", service.operator_token());
    headers.insert(AUTHORIZATION, bearer.parse().unwrap());
    let mut operator = CheckedOperator::new(Client::new(Origin::parse(&service.admin_url()).unwrap()));
    let refused = operator
        .call(Method::GET, "/admin/v1/live", headers, Bytes::new())
        .await
        .unwrap();
    expect_error(&refused, 503, "SERVICE_UNAVAILABLE");
    assert!(
        text_of(&refused).contains("close one, or poll"),
        "{}",
        text_of(&refused)
    );
    // Polling is not limited.
    let mut operator = Operator::of(&service);
    assert!(operator.get("/admin/v1/live").await["actors"].is_object());

    drop(feeds.pop());
    eventually("room for a feed", WAIT_TIMEOUT, async || {
        let feed = LiveFeed::connect(&service).await;
        feed.is_open().then_some(())
    })
    .await;
}
