//! Client of the partner API: signed writes and code reads, unsigned reads, and raw calls for tests of
//! invalid input.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};

use super::http::{ApiResponse, Client, RequestFailure};
use super::origin::{Origin, UrlError};
use super::signer::Credentials;

/// Header with the idempotency key of an order.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub struct PartnerClient {
    client: Client,
    credentials: Credentials,
    orders: Uri,
}

/// A signed request. Signing happens before the latency measurement.
pub struct SignedRequest(Request<Full<Bytes>>);

impl PartnerClient {
    /// Creates a client for a base URL such as `http://127.0.0.1:8080/api/v1`.
    ///
    /// # Errors
    /// [`UrlError`] if the URL has another form.
    pub fn new(base_url: &str, credentials: Credentials) -> Result<Self, UrlError> {
        let origin = Origin::parse(base_url)?;
        let Ok(orders) = Uri::try_from(origin.path("/orders")) else {
            unreachable!("a valid path followed by `/orders` is a valid path")
        };
        Ok(Self {
            client: Client::new(origin),
            credentials,
            orders,
        })
    }

    /// Sets the timeout for connecting and for each exchange.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.client = self.client.with_timeout(timeout);
        self
    }

    /// Creates a client for the same partner with a separate connection and the default timeout.
    #[must_use]
    pub fn new_connection(&self) -> Self {
        Self {
            client: Client::new(self.client.origin().clone()),
            credentials: self.credentials.clone(),
            orders: self.orders.clone(),
        }
    }

    /// Switches to another partner on the same connection.
    pub fn set_credentials(&mut self, credentials: Credentials) {
        self.credentials = credentials;
    }

    /// The current credentials.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Sends `POST /orders` with an Idempotency-Key.
    ///
    /// # Errors
    /// [`RequestFailure`] without a complete response. An error response is an `Ok` with its status.
    pub async fn order(&mut self, key: &str, body: impl Into<Bytes>) -> Result<ApiResponse, RequestFailure> {
        let request = self.sign_order(key, body.into())?;
        self.send(request).await
    }

    /// Signs an order, to be sent with [`PartnerClient::send`].
    ///
    /// # Errors
    /// [`RequestFailure::NotSent`] if the key is not a valid header value.
    pub fn sign_order(&self, key: &str, body: Bytes) -> Result<SignedRequest, RequestFailure> {
        let key = HeaderValue::from_str(key).map_err(|_| {
            RequestFailure::NotSent("the idempotency key is not a valid header value".to_owned())
        })?;
        let signed = self
            .credentials
            .sign("POST", self.orders.path(), &body, unix_seconds());
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.orders.clone();
        // Four signature headers, the two below, `Host`, and spare capacity.
        let mut headers = HeaderMap::with_capacity(8);
        signed.apply_to(&mut headers);
        headers.insert(IDEMPOTENCY_KEY, key);
        headers.insert(CONTENT_TYPE, JSON);
        *request.headers_mut() = headers;
        Ok(SignedRequest(request))
    }

    /// Sends a signed request.
    ///
    /// # Errors
    /// [`RequestFailure`] without a complete response.
    pub async fn send(&mut self, request: SignedRequest) -> Result<ApiResponse, RequestFailure> {
        self.client.send(request.0).await
    }

    /// Sends an unsigned `GET` for a path under the prefix, such as `/orders/ord_…` or
    /// `/products?currency=USD`.
    ///
    /// # Errors
    /// [`RequestFailure`] without a complete response.
    pub async fn get(&mut self, path: &str) -> Result<ApiResponse, RequestFailure> {
        let mut headers = HeaderMap::new();
        self.credentials.insert_api_headers(&mut headers);
        let path = self.client.origin().path(path);
        self.client.call(Method::GET, &path, headers, Bytes::new()).await
    }

    /// Sends a signed `GET /orders/{order_id}/vouchers`. The response contains voucher codes in plain text.
    ///
    /// # Errors
    /// [`RequestFailure`] without a complete response.
    pub async fn get_codes(&mut self, order_id: &str) -> Result<ApiResponse, RequestFailure> {
        self.send_signed(
            Method::GET,
            &format!("/orders/{order_id}/vouchers"),
            Bytes::new(),
            HeaderMap::new(),
        )
        .await
    }

    /// Sends a signed request to a path under the prefix, with additional `headers`.
    ///
    /// # Errors
    /// [`RequestFailure`] without a complete response.
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

    /// Sends a request with exactly these headers, for tests of invalid input. `path` includes the prefix; a
    /// header appended twice is sent twice.
    ///
    /// # Errors
    /// [`RequestFailure`] without a complete response.
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

/// Current Unix time in seconds, for signatures.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "a partner has its own clock; this is the only place that reads it"
)]
pub fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
