//! Clients of the load generator that check every response against the served OpenAPI document.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::header::HeaderMap;
use hyper::{Method, StatusCode};
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_api_client::{ApiResponse, Client, RequestFailure};

use crate::openapi_check::{Listener, assert_documented};
use crate::wait::WAIT_TIMEOUT;

/// Sends a request again while the service says that it did not read the request head in time, as partners
/// do. Actix checks the deadline before it reads: a service that got no processor for five seconds refuses a
/// head that has arrived.
macro_rules! send_until_read {
    ($request:expr) => {{
        let begin = Instant::now();
        loop {
            let response = $request.await?;
            let was_read = response.status != StatusCode::REQUEST_TIMEOUT || !response.body.is_empty();
            if was_read || begin.elapsed() > WAIT_TIMEOUT {
                break response;
            }
        }
    }};
}

pub struct CheckedPartner {
    client: PartnerClient,
    origin: Origin,
}

impl CheckedPartner {
    pub fn new(base_url: &str, credentials: Credentials) -> Self {
        Self {
            client: PartnerClient::new(base_url, credentials)
                .unwrap()
                .with_timeout(WAIT_TIMEOUT),
            origin: Origin::parse(base_url).unwrap(),
        }
    }

    /// Sets the timeout of a whole exchange.
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self {
            client: self.client.with_timeout(timeout),
            ..self
        }
    }

    pub fn credentials(&self) -> &Credentials {
        self.client.credentials()
    }

    /// # Errors
    /// The exchange failed.
    pub async fn order(&mut self, key: &str, body: impl Into<Bytes>) -> Result<ApiResponse, RequestFailure> {
        let body = body.into();
        let response = send_until_read!(self.client.order(key, body.clone()));
        Ok(self.assert_documented(&Method::POST, "/orders", response))
    }

    /// Sends a `GET`; `path` is below the API prefix.
    ///
    /// # Errors
    /// The exchange failed.
    pub async fn get(&mut self, path: &str) -> Result<ApiResponse, RequestFailure> {
        let response = send_until_read!(self.client.get(path));
        Ok(self.assert_documented(&Method::GET, path, response))
    }

    /// # Errors
    /// The exchange failed.
    pub async fn get_codes(&mut self, order_id: &str) -> Result<ApiResponse, RequestFailure> {
        let response = send_until_read!(self.client.get_codes(order_id));
        Ok(self.assert_documented(&Method::GET, &format!("/orders/{order_id}/vouchers"), response))
    }

    /// Sends a signed request; `path` is below the API prefix.
    ///
    /// # Errors
    /// The exchange failed.
    pub async fn send_signed(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
        headers: HeaderMap,
    ) -> Result<ApiResponse, RequestFailure> {
        let body = body.into();
        let response =
            send_until_read!(
                self.client
                    .send_signed(method.clone(), path, body.clone(), headers.clone())
            );
        Ok(self.assert_documented(&method, path, response))
    }

    /// Sends a request with exactly these headers; `path` is the full path.
    ///
    /// # Errors
    /// The exchange failed.
    pub async fn send_raw(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<ApiResponse, RequestFailure> {
        let body = body.into();
        let response =
            send_until_read!(
                self.client
                    .send_raw(method.clone(), path, headers.clone(), body.clone())
            );
        Ok(assert_documented(Listener::Partner, &method, path, response))
    }

    /// `path` is below the API prefix.
    fn assert_documented(&self, method: &Method, path: &str, response: ApiResponse) -> ApiResponse {
        assert_documented(Listener::Partner, method, &self.origin.path(path), response)
    }
}

pub struct CheckedOperator {
    client: Client,
    is_checked: bool,
}

impl CheckedOperator {
    pub fn new(client: Client) -> Self {
        let is_checked = true;
        Self { client, is_checked }
    }

    /// Leaves the responses unchecked: only the shared service serves the document.
    pub fn unchecked(client: Client) -> Self {
        let is_checked = false;
        Self { client, is_checked }
    }

    /// Sends a request with exactly these headers.
    ///
    /// # Errors
    /// The exchange failed.
    pub async fn call(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<ApiResponse, RequestFailure> {
        let response =
            send_until_read!(
                self.client
                    .call(method.clone(), path, headers.clone(), body.clone())
            );
        Ok(match self.is_checked {
            true => assert_documented(Listener::Operator, &method, path, response),
            false => response,
        })
    }
}
