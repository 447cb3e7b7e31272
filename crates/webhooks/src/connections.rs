//! Connections to receivers: kept alive between attempts, and replaced at once where the receiver has closed
//! one.
//!
//! Servers close idle connections after a time of their own (Node.js after 5 s). A request that crosses with
//! the close gets no response, though nothing is wrong with the receiver: it is sent again on a new
//! connection, within the same attempt.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::{Client, Request, RequestBuilder, Response, Url};
use vouchsafe_http_client::causes;

/// Idle connections are closed after this time, so that the host is resolved again.
pub(crate) const IDLE_CONNECTION: Duration = Duration::from_secs(30);

/// Origins that are remembered before those without a connection are dropped.
const MAX_ORIGINS: usize = 1_024;

/// The clients of a scheme.
pub(crate) struct Connections {
    keeping: Client,
    /// Opens a connection per request.
    fresh: Client,
    /// When each origin last responded: since then a kept connection may be open.
    responded: Mutex<HashMap<String, Instant>>,
}

impl Connections {
    /// `keeping` keeps idle connections for [`IDLE_CONNECTION`], `fresh` keeps none.
    pub(crate) fn new(keeping: Client, fresh: Client) -> Self {
        Self {
            keeping,
            fresh,
            responded: Mutex::default(),
        }
    }

    /// Begins a request.
    pub(crate) fn post(&self, url: Url) -> RequestBuilder {
        self.keeping.post(url)
    }

    /// Sends a request, and once more on a new connection if a kept one was closed before a response.
    pub(crate) async fn send(&self, request: Request) -> Result<Response, reqwest::Error> {
        let origin = origin(request.url());
        let again = request.try_clone();
        let sent = self.keeping.execute(request).await;
        let sent = match (sent, again) {
            (Err(error), Some(again)) if is_closed(&error) && self.forget(&origin) => {
                tracing::debug!(url.origin = %origin, "kept connection was closed; sending again on a new one");
                self.fresh.execute(again).await
            }
            (sent, _) => sent,
        };
        if sent.is_ok() {
            self.remember(origin);
        }
        sent
    }

    fn remember(&self, origin: String) {
        let mut responded = self.responded.lock();
        if responded.len() >= MAX_ORIGINS {
            responded.retain(|_, at| at.elapsed() < IDLE_CONNECTION);
        }
        responded.insert(origin, Instant::now());
    }

    /// Whether a kept connection may have been open. A receiver that closes new connections, too, is not sent
    /// to twice again.
    fn forget(&self, origin: &str) -> bool {
        let mut responded = self.responded.lock();
        let at = responded.remove(origin);
        // The pool checks the age before it uses a connection, up to an attempt earlier.
        at.is_some_and(|at| at.elapsed() < 2 * IDLE_CONNECTION)
    }
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Whether the connection ended before a response: what was sent may have arrived, which a receiver of events
/// at least once expects.
fn is_closed(error: &reqwest::Error) -> bool {
    if error.is_timeout() || error.is_connect() {
        return false;
    }
    causes(error).any(|cause| {
        let is_ended =
            |error: &hyper::Error| error.is_incomplete_message() || error.is_canceled() || error.is_closed();
        let is_broken = |error: &std::io::Error| {
            matches!(
                error.kind(),
                ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionAborted
                    | ErrorKind::BrokenPipe
                    | ErrorKind::UnexpectedEof
            )
        };
        cause.downcast_ref().is_some_and(is_ended) || cause.downcast_ref().is_some_and(is_broken)
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    fn connections() -> Connections {
        let client = |idle| {
            let builder = vouchsafe_http_client::client_builder("http:").unwrap();
            builder.http1_only().pool_max_idle_per_host(idle).build().unwrap()
        };
        Connections::new(client(4), client(0))
    }

    /// Reads a request without a body.
    async fn read_request(stream: &mut TcpStream) {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
    }

    async fn respond(stream: &mut TcpStream) {
        read_request(stream).await;
        let response = b"HTTP/1.1 204 No Content\r\n\r\n";
        stream.write_all(response).await.unwrap();
    }

    #[tokio::test]
    async fn request_on_a_closed_kept_connection_is_sent_again_on_a_new_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = async move {
            let (mut kept, _) = listener.accept().await.unwrap();
            respond(&mut kept).await;
            // The close crosses with the second request.
            read_request(&mut kept).await;
            drop(kept);
            let (mut new, _) = listener.accept().await.unwrap();
            respond(&mut new).await;
            // A receiver that closes new connections is asked once per attempt.
            let mut closed = 0;
            while let Ok((mut stream, _)) = listener.accept().await {
                read_request(&mut stream).await;
                drop(stream);
                closed += 1;
                if closed == 3 {
                    return;
                }
            }
        };
        let connections = connections();
        let request = || Client::new().post(&url).build().unwrap();
        let sender = async {
            for _ in 0..2 {
                assert_eq!(connections.send(request()).await.unwrap().status(), 204);
            }
            // A new connection and, because the last response may have left one, another; then one per
            // attempt.
            assert!(connections.send(request()).await.is_err());
            assert!(connections.send(request()).await.is_err());
        };
        tokio::join!(server, sender);
    }
}
