//! The clients of the load generator, with every answer held against the served document.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderMap;
use vouchsafe_load::client::{Answer, Client, Failure};
use vouchsafe_load::origin::Origin;
use vouchsafe_load::partner::PartnerClient;
use vouchsafe_load::signer::Credentials;

use super::described::{Listener, checked};

/// A partner's client.
pub(crate) struct CheckedPartner {
    client: PartnerClient,
    origin: Origin,
}

impl CheckedPartner {
    pub(crate) fn new(base_url: &str, credentials: Credentials) -> Self {
        Self {
            client: PartnerClient::new(base_url, credentials).unwrap(),
            origin: Origin::parse(base_url).unwrap(),
        }
    }

    /// Bounds each whole exchange by `timeout`.
    pub(crate) fn with_timeout(self, timeout: Duration) -> Self {
        Self {
            client: self.client.with_timeout(timeout),
            ..self
        }
    }

    /// The credentials that sign.
    pub(crate) fn credentials(&self) -> &Credentials {
        self.client.credentials()
    }

    /// `POST /orders` under a key.
    pub(crate) async fn order(&mut self, key: &str, body: impl Into<Bytes>) -> Result<Answer, Failure> {
        let answer = self.client.order(key, body).await?;
        Ok(self.checked(&Method::POST, "/orders", answer))
    }

    /// `GET` of a path below the prefix.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer, Failure> {
        let answer = self.client.get(path).await?;
        Ok(self.checked(&Method::GET, path, answer))
    }

    /// The codes of an order.
    pub(crate) async fn codes(&mut self, order_id: &str) -> Result<Answer, Failure> {
        let answer = self.client.codes(order_id).await?;
        Ok(self.checked(&Method::GET, &format!("/orders/{order_id}/vouchers"), answer))
    }

    /// Any signed call to a path below the prefix.
    pub(crate) async fn signed(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
        headers: HeaderMap,
    ) -> Result<Answer, Failure> {
        let answer = self.client.signed(method.clone(), path, body, headers).await?;
        Ok(self.checked(&method, path, answer))
    }

    /// Any call with exactly these headers; `path` is the whole path.
    pub(crate) async fn raw(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<Answer, Failure> {
        let answer = self.client.raw(method.clone(), path, headers, body).await?;
        Ok(checked(Listener::Partner, &method, path, answer))
    }

    /// `path` is below the prefix.
    fn checked(&self, method: &Method, path: &str, answer: Answer) -> Answer {
        checked(Listener::Partner, method, &self.origin.path(path), answer)
    }
}

/// An operator's client.
pub(crate) struct CheckedOperator(Client);

impl CheckedOperator {
    pub(crate) fn new(client: Client) -> Self {
        Self(client)
    }

    /// Any call with exactly these headers.
    pub(crate) async fn call(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, Failure> {
        let answer = self.0.call(method.clone(), path, headers, body).await?;
        Ok(checked(Listener::Operator, &method, path, answer))
    }
}
