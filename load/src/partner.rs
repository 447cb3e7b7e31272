//! How does a partner call the service? Signed writes and code reads, identified reads, and calls with headers of
//! one's own for the tests of bad input.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};

use crate::client::{ApiResponse, Client, RequestFailure};
use crate::origin::{Origin, UrlError};
use crate::signer::Credentials;

/// Header that names an order so that it is executed once.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// One partner on one connection.
pub struct PartnerClient {
    client: Client,
    credentials: Credentials,
    orders: Uri,
}

/// A signed request, ready to leave: what stands before it is not part of its latency.
pub struct SignedRequest(Request<Full<Bytes>>);

impl PartnerClient {
    /// A partner's client for a base URL such as `http://127.0.0.1:8080/api/v1`.
    ///
    /// # Errors
    /// [`UrlError`] when the URL is of another form.
    pub fn new(base_url: &str, credentials: Credentials) -> Result<Self, UrlError> {
        let origin = Origin::parse(base_url)?;
        let Ok(orders) = Uri::try_from(origin.path("/orders")) else {
            unreachable!("a URL's path with a plain word behind it is a path")
        };
        Ok(Self {
            client: Client::new(origin),
            credentials,
            orders,
        })
    }

    /// Bounds connecting, and each whole exchange, by `timeout`.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.client = self.client.with_timeout(timeout);
        self
    }

    /// The same partner on a connection of its own, with the ordinary timeout.
    #[must_use]
    pub fn new_connection(&self) -> Self {
        Self {
            client: Client::new(self.client.origin().clone()),
            credentials: self.credentials.clone(),
            orders: self.orders.clone(),
        }
    }

    /// Signs and identifies with these from now on: partners that share a connection.
    pub fn set_credentials(&mut self, credentials: Credentials) {
        self.credentials = credentials;
    }

    /// The credentials that sign.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// `POST /orders` under an Idempotency-Key.
    ///
    /// # Errors
    /// [`Failure`] if no whole answer came; an error answer is an `Ok` with its status.
    pub async fn order(&mut self, key: &str, body: impl Into<Bytes>) -> Result<ApiResponse, RequestFailure> {
        let request = self.sign_order(key, body.into())?;
        self.send(request).await
    }

    /// Signs an order now, to be sent with [`PartnerClient::send`].
    ///
    /// # Errors
    /// [`Failure::NotSent`] if the key cannot stand in a header.
    pub fn sign_order(&self, key: &str, body: Bytes) -> Result<SignedRequest, RequestFailure> {
        let key = HeaderValue::from_str(key)
            .map_err(|_| RequestFailure::NotSent("the idempotency key is no header value".to_owned()))?;
        let signed = self
            .credentials
            .sign("POST", self.orders.path(), &body, unix_seconds());
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.orders.clone();
        // Four for the signature, the two here, Host, and the slack a header map wants.
        let mut headers = HeaderMap::with_capacity(8);
        signed.apply_to(&mut headers);
        headers.insert(IDEMPOTENCY_KEY, key);
        headers.insert(CONTENT_TYPE, JSON);
        *request.headers_mut() = headers;
        Ok(SignedRequest(request))
    }

    /// Sends what was signed before.
    ///
    /// # Errors
    /// [`Failure`] if no whole answer came.
    pub async fn send(&mut self, request: SignedRequest) -> Result<ApiResponse, RequestFailure> {
        self.client.send(request.0).await
    }

    /// `GET` of a path under the prefix, such as `/orders/ord_…` or `/products?currency=USD`: identified, not
    /// signed.
    ///
    /// # Errors
    /// [`Failure`] if no whole answer came.
    pub async fn get(&mut self, path: &str) -> Result<ApiResponse, RequestFailure> {
        let mut headers = HeaderMap::new();
        self.credentials.insert_api_headers(&mut headers);
        let path = self.client.origin().path(path);
        self.client.call(Method::GET, &path, headers, Bytes::new()).await
    }

    /// `GET /orders/{order_id}/vouchers`, signed: the answer carries codes in clear.
    ///
    /// # Errors
    /// [`Failure`] if no whole answer came.
    pub async fn get_codes(&mut self, order_id: &str) -> Result<ApiResponse, RequestFailure> {
        self.send_signed(
            Method::GET,
            &format!("/orders/{order_id}/vouchers"),
            Bytes::new(),
            HeaderMap::new(),
        )
        .await
    }

    /// Any signed call to a path under the prefix; `headers` are sent beside the signature's.
    ///
    /// # Errors
    /// [`Failure`] if no whole answer came.
    pub async fn send_signed(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
        mut headers: HeaderMap,
    ) -> Result<ApiResponse, RequestFailure> {
        let (path, body) = (self.client.origin().path(path), body.into());
        self.credentials
            .sign(method.as_str(), &path, &body, unix_seconds())
            .apply_to(&mut headers);
        if !body.is_empty() && !headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, JSON);
        }
        self.client.call(method, &path, headers, body).await
    }

    /// Any call with exactly these headers, for tests of bad input. `path` goes to the wire as it is, without the
    /// prefix; a header appended twice is sent twice.
    ///
    /// # Errors
    /// [`Failure`] if no whole answer came.
    pub async fn send_raw(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<ApiResponse, RequestFailure> {
        self.client.call(method, path, headers, body.into()).await
    }
}

/// The clock that signatures carry: Unix time in seconds.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "a partner has a clock of its own, and reads it here alone"
)]
pub fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
