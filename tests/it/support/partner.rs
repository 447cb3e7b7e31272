//! The partner: signs and sends with the signer of the load generator, which shares no code with the service.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_load::client::Answer;
use vouchsafe_load::partner::PartnerClient;
use vouchsafe_load::signer::Credentials;

use super::operator::{Sale, unique};

/// A partner at a service.
pub(crate) struct Partner {
    /// Its id.
    pub(crate) partner_id: String,
    /// Its connection; any call can be made with it.
    pub(crate) client: PartnerClient,
    base_url: String,
}

impl Partner {
    pub(crate) fn new(base_url: &str, partner_id: String, credentials: Credentials) -> Self {
        let client = PartnerClient::new(base_url, credentials).unwrap();
        Self { partner_id, client, base_url: base_url.to_owned() }
    }

    /// The same partner on another connection.
    pub(crate) fn again(&self) -> Self {
        Self::new(&self.base_url, self.partner_id.clone(), self.client.credentials().clone())
    }

    /// The same partner at another service.
    pub(crate) fn at(&self, base_url: &str) -> Self {
        Self::new(base_url, self.partner_id.clone(), self.client.credentials().clone())
    }

    /// Orders so many of a product under a new key.
    pub(crate) async fn order(&mut self, sale: &Sale, quantity: u32) -> Answer {
        self.order_under(&unique("key"), sale, quantity).await
    }

    /// Orders so many of a product under this key.
    pub(crate) async fn order_under(&mut self, key: &str, sale: &Sale, quantity: u32) -> Answer {
        self.send(key, &order_of(sale, quantity)).await
    }

    /// Sends this body as an order.
    pub(crate) async fn send(&mut self, key: &str, body: &Value) -> Answer {
        self.client.order(key, body.to_string()).await.unwrap()
    }

    /// A GET below the prefix.
    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.client.get(path).await.unwrap()
    }

    /// What a wallet holds, as it is written.
    pub(crate) async fn wallet(&mut self, currency: &str) -> Value {
        let wallets = json_of(&self.get("/wallets").await);
        let found = wallets["data"].as_array().unwrap().iter().find(|wallet| wallet["currency"] == currency);
        found.cloned().unwrap_or(Value::Null)
    }

    /// The codes of an order.
    pub(crate) async fn codes(&mut self, order_id: &str) -> Answer {
        self.client.codes(order_id).await.unwrap()
    }

    /// A signed call with any method and path below the prefix.
    pub(crate) async fn signed(&mut self, method: Method, path: &str, body: &str) -> Answer {
        self.client.signed(method, path, body.to_owned().into(), hyper::HeaderMap::new()).await.unwrap()
    }
}

/// An order of one line.
pub(crate) fn order_of(sale: &Sale, quantity: u32) -> Value {
    let denomination: Value = serde_json::from_str(sale.denomination).unwrap();
    json!({ "items": [{ "product_id": sale.product_id, "denomination": denomination, "quantity": quantity }] })
}

/// The body of an answer.
pub(crate) fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{error}: {:?}", answer.body))
}
