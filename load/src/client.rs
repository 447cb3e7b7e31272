//! How does one request reach the service, and what is known when it fails? One origin, one keep-alive HTTP/1.1
//! connection, opened when needed and opened anew when the server closed it.
//!
//! Rule: a failure says whether a byte of the request may have left. Only [`Failure::NotSent`] may be repeated as
//! if nothing had happened; after [`Failure::Unknown`] the same Idempotency-Key must settle it.
//!
//! The connection is driven inside the task that sends, so a request costs no second task and no hand-over.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::header::{HOST, HeaderMap};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::origin::Origin;

/// How long connecting and one whole exchange may each take, unless told otherwise. The service answers within
/// seconds or refuses; 30 s is past every deadline it has.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest answer that is read, in bytes: an order of 1,000 vouchers is below 1 MiB, and a runaway answer must
/// not take the memory.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct ApiResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The exact bytes of the body.
    pub body: Bytes,
}

impl ApiResponse {
    /// A header as text, if it is there and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The `error.code` of an error answer.
    #[must_use]
    pub fn error_code(&self) -> Option<String> {
        crate::wire::error_code(&self.body)
    }

    /// The body as JSON of type `T`.
    ///
    /// # Errors
    /// When the body is not JSON of that form.
    pub fn json<'a, T: serde::Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.body)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFailure {
    /// Certain: no byte of the request left this process.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The request may have been executed: only a repetition under the same key tells.
    #[error("outcome unknown: {0}")]
    Unknown(String),
}

type Wire = Connection<TokioIo<TcpStream>, Full<Bytes>>;

struct Open {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once the connection has ended.
    wire: Option<Wire>,
}

/// One connection to one origin. Requests on it follow each other; take several clients for concurrency.
pub struct Client {
    origin: Origin,
    timeout: Duration,
    /// Boxed, because it is taken out and put back at every request, and hyper's state is a kilobyte.
    open: Option<Box<Open>>,
}

/// A request that did not come back as an answer.
struct Broken {
    failure: RequestFailure,
    /// The request, if it certainly never left.
    unsent: Option<Request<Full<Bytes>>>,
}

impl Client {
    /// A client that connects at its first request.
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            timeout: DEFAULT_TIMEOUT,
            open: None,
        }
    }

    /// Bounds connecting, and each whole exchange, by `timeout`.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The origin that requests go to.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Builds and sends one request. `path` goes to the wire as it is, prefix included; nothing is signed or
    /// added but `Host` and `Content-Length`.
    ///
    /// # Errors
    /// [`Failure`], as [`Client::send`].
    pub async fn call(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<ApiResponse, RequestFailure> {
        let uri: Uri = path
            .parse()
            .map_err(|error| RequestFailure::NotSent(format!("path `{path}`: {error}")))?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        self.send(request).await
    }

    /// Sends a request and reads its answer to the end.
    ///
    /// A kept connection that the server closed meanwhile is replaced once, if the request certainly never left
    /// on it. If the returned future is dropped, the connection is dropped with it.
    ///
    /// # Errors
    /// [`Failure::NotSent`] if certainly no byte left, else [`Failure::Unknown`].
    pub async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Result<ApiResponse, RequestFailure> {
        if !request.headers().contains_key(HOST) {
            request
                .headers_mut()
                .insert(HOST, self.origin.host_header().clone());
        }
        let request = match self.open.take() {
            None => request,
            Some(kept) => match self.exchange(kept, request).await {
                Ok(answer) => return Ok(answer),
                Err(Broken {
                    unsent: Some(request),
                    ..
                }) => request,
                Err(Broken {
                    failure,
                    unsent: None,
                }) => return Err(failure),
            },
        };
        let fresh = self.connect().await?;
        self.exchange(fresh, request)
            .await
            .map_err(|broken| broken.failure)
    }

    async fn connect(&self) -> Result<Box<Open>, RequestFailure> {
        let not_sent = |error: &dyn std::fmt::Display| RequestFailure::NotSent(format!("connecting: {error}"));
        let connecting = TcpStream::connect(self.origin.address());
        let stream = match tokio::time::timeout(self.timeout, connecting).await {
            Ok(connected) => connected.map_err(|error| not_sent(&error))?,
            Err(elapsed) => return Err(not_sent(&elapsed)),
        };
        // Without it a small request waits for the acknowledgement of the one before.
        stream.set_nodelay(true).map_err(|error| not_sent(&error))?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, wire) = handshake.map_err(|error| not_sent(&error))?;
        let wire = Some(wire);
        Ok(Box::new(Open { sender, wire }))
    }

    /// One request over one connection; the connection is kept only after a whole answer.
    async fn exchange(
        &mut self,
        mut open: Box<Open>,
        request: Request<Full<Bytes>>,
    ) -> Result<ApiResponse, Broken> {
        let Open { sender, wire } = open.as_mut();
        let exchange = drive(wire, ask(sender, request));
        let outcome = match tokio::time::timeout(self.timeout, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(unknown(&format!("no whole answer within {:?}", self.timeout))),
        };
        if outcome.is_ok() && open.wire.is_some() {
            self.open = Some(open);
        }
        outcome
    }
}

async fn ask(sender: &mut SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) -> Result<ApiResponse, Broken> {
    if let Err(error) = sender.ready().await {
        return Err(Broken {
            failure: RequestFailure::NotSent(error.to_string()),
            unsent: Some(request),
        });
    }
    let response = match sender.try_send_request(request).await {
        Ok(response) => response,
        Err(mut error) => {
            // The request comes back exactly if the connection never took it up.
            let unsent = error.take_message();
            let text = describe(error.error());
            let failure = if unsent.is_some() {
                RequestFailure::NotSent(text)
            } else {
                RequestFailure::Unknown(text)
            };
            return Err(Broken { failure, unsent });
        }
    };
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
    let body = body
        .map_err(|error| unknown(&describe(error.as_ref())))?
        .to_bytes();
    Ok(ApiResponse {
        status: head.status,
        headers: head.headers,
        body,
    })
}

/// Polls the connection and the exchange over it as one future, until the exchange is done.
async fn drive<T>(wire: &mut Option<Wire>, exchange: impl Future<Output = T>) -> T {
    let mut exchange = pin!(exchange);
    poll_fn(|cx| {
        if let Poll::Ready(done) = exchange.as_mut().poll(cx) {
            return Poll::Ready(done);
        }
        // An ended connection is dropped at once: that is what ends the exchange's wait on it. Its error reaches
        // the exchange on its own way.
        if wire
            .as_mut()
            .is_some_and(|wire| Pin::new(wire).poll(cx).is_ready())
        {
            *wire = None;
        }
        // The connection may just have delivered; a wake-up of this very task would cost a round of the runtime.
        exchange.as_mut().poll(cx)
    })
    .await
}

fn unknown(reason: &str) -> Broken {
    Broken {
        failure: RequestFailure::Unknown(reason.to_owned()),
        unsent: None,
    }
}

/// The error with its causes: hyper's own text names only the layer.
fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}
