//! HTTP/1.1 client for one origin over one keep-alive connection; it connects on demand and reconnects when
//! the server closed the connection.
//!
//! Rule: an error states whether a byte of the request may have been sent. Only [`RequestFailure::NotSent`]
//! may be repeated freely; after [`RequestFailure::Unknown`] a repetition under the same Idempotency-Key
//! settles the outcome.
//!
//! The sending task also drives the connection, so a request needs no second task and no hand-over.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::header::{HOST, HeaderMap};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::origin::Origin;

/// Default timeout for connecting and for one exchange each: longer than every deadline of the service.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum response size in bytes. An order of 1,000 vouchers stays below 1 MiB.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// A complete response.
#[derive(Clone, Debug)]
pub struct ApiResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl From<Response<Bytes>> for ApiResponse {
    fn from(response: Response<Bytes>) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            body,
        }
    }
}

impl ApiResponse {
    /// Returns a header value if it is present and text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns `error.code` of an error response.
    #[must_use]
    pub fn error_code(&self) -> Option<String> {
        crate::wire::error_code(&self.body)
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    /// If the body is not JSON of type `T`.
    pub fn json<'a, T: serde::Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.body)
    }
}

/// Reason for a missing response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFailure {
    #[error("not sent: {0}")]
    NotSent(String),
    #[error("outcome unknown: {0}")]
    Unknown(String),
}

type HttpConnection = Connection<TokioIo<TcpStream>, Full<Bytes>>;

struct OpenConnection {
    sender: SendRequest<Full<Bytes>>,
    /// `None` after the connection ended.
    driver: Option<HttpConnection>,
}

/// One connection to one origin, for sequential requests. Concurrent requests need several clients.
pub struct Client {
    origin: Origin,
    timeout: Duration,
    /// Boxed because each request moves it out and back; hyper's state has a kilobyte.
    connection: Option<Box<OpenConnection>>,
}

/// A request without a response.
struct FailedExchange {
    failure: RequestFailure,
    /// The request, if no byte of it was sent.
    unsent: Option<Request<Full<Bytes>>>,
}

impl Client {
    /// Connects at the first request.
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            timeout: DEFAULT_TIMEOUT,
            connection: None,
        }
    }

    /// Sets the timeout for connecting and for each exchange.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The origin of all requests.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Builds and sends one request. `path` includes the prefix. Adds only `Host` and `Content-Length`;
    /// nothing is signed.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn call(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<ApiResponse, RequestFailure> {
        let uri: Uri = path
            .parse()
            .map_err(|error| RequestFailure::NotSent(format!("invalid path `{path}`: {error}")))?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        self.send(request).await
    }

    /// Sends a request and reads the whole response.
    ///
    /// Replaces a connection that the server closed, once, if no byte of the request was sent on it. Dropping
    /// the future drops the connection.
    ///
    /// # Errors
    /// [`RequestFailure::NotSent`] if no byte was sent, else [`RequestFailure::Unknown`].
    pub async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Result<ApiResponse, RequestFailure> {
        if !request.headers().contains_key(HOST) {
            request
                .headers_mut()
                .insert(HOST, self.origin.host_header().clone());
        }
        let request = match self.connection.take() {
            None => request,
            Some(connection) => match self.exchange(connection, request).await {
                Ok(response) => return Ok(response),
                Err(FailedExchange {
                    unsent: Some(request),
                    ..
                }) => request,
                Err(FailedExchange {
                    failure,
                    unsent: None,
                }) => return Err(failure),
            },
        };
        let connection = self.connect().await?;
        self.exchange(connection, request)
            .await
            .map_err(|broken| broken.failure)
    }

    async fn connect(&self) -> Result<Box<OpenConnection>, RequestFailure> {
        let not_sent = |error: &dyn std::fmt::Display| {
            RequestFailure::NotSent(format!("cannot connect to {}: {error}", self.origin))
        };
        let connecting = TcpStream::connect(self.origin.address());
        let stream = match tokio::time::timeout(self.timeout, connecting).await {
            Ok(connected) => connected.map_err(|error| not_sent(&error))?,
            Err(elapsed) => return Err(not_sent(&elapsed)),
        };
        // Nagle's algorithm would delay a small request until the previous one is acknowledged.
        stream.set_nodelay(true).map_err(|error| not_sent(&error))?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, driver) = handshake.map_err(|error| not_sent(&error))?;
        let driver = Some(driver);
        Ok(Box::new(OpenConnection { sender, driver }))
    }

    /// Keeps the connection only after a complete response.
    async fn exchange(
        &mut self,
        mut connection: Box<OpenConnection>,
        request: Request<Full<Bytes>>,
    ) -> Result<ApiResponse, FailedExchange> {
        let OpenConnection { sender, driver } = connection.as_mut();
        let exchange = poll_both(driver, send_request(sender, request));
        let outcome = match tokio::time::timeout(self.timeout, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(unknown_outcome(&format!(
                "no complete response within {:?}",
                self.timeout
            ))),
        };
        if outcome.is_ok() && connection.driver.is_some() {
            self.connection = Some(connection);
        }
        outcome
    }
}

async fn send_request(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<ApiResponse, FailedExchange> {
    if let Err(error) = sender.ready().await {
        return Err(FailedExchange {
            failure: RequestFailure::NotSent(error.to_string()),
            unsent: Some(request),
        });
    }
    let response = match sender.try_send_request(request).await {
        Ok(response) => response,
        Err(mut error) => {
            // hyper returns the request only if the connection never accepted it.
            let unsent = error.take_message();
            let text = error_chain(error.error());
            let failure = if unsent.is_some() {
                RequestFailure::NotSent(text)
            } else {
                RequestFailure::Unknown(text)
            };
            return Err(FailedExchange { failure, unsent });
        }
    };
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
    let body = body
        .map_err(|error| unknown_outcome(&error_chain(error.as_ref())))?
        .to_bytes();
    Ok(Response::from_parts(head, body).into())
}

/// Polls the connection and the exchange as one future until the exchange completes.
async fn poll_both<T>(driver: &mut Option<HttpConnection>, exchange: impl Future<Output = T>) -> T {
    let mut exchange = pin!(exchange);
    poll_fn(|cx| {
        if let Poll::Ready(done) = exchange.as_mut().poll(cx) {
            return Poll::Ready(done);
        }
        // Dropping an ended connection wakes the exchange, which reports the error.
        if driver
            .as_mut()
            .is_some_and(|driver| Pin::new(driver).poll(cx).is_ready())
        {
            *driver = None;
        }
        // The connection may just have delivered the response; polling now avoids another wake-up of this
        // task.
        exchange.as_mut().poll(cx)
    })
    .await
}

fn unknown_outcome(reason: &str) -> FailedExchange {
    FailedExchange {
        failure: RequestFailure::Unknown(reason.to_owned()),
        unsent: None,
    }
}

/// Appends the causes; hyper's own message names only the layer.
fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}
