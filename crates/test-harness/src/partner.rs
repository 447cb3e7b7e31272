//! Partner client. Uses the signer of the load generator, which shares no code with the service.

use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::partner::{IDEMPOTENCY_KEY, unix_seconds};
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_api_client::wire::{ListView, WalletView};

use crate::checked::CheckedPartner;
use crate::product::{Sale, order_body, unique};
use crate::response::{expect_success, json_of};

pub struct Partner {
    pub partner_id: String,
    /// Empty if unknown.
    pub credential_id: String,
    pub client: CheckedPartner,
    base_url: String,
}

impl Partner {
    pub fn new(base_url: &str, partner_id: String, credentials: Credentials) -> Self {
        let client = CheckedPartner::new(base_url, credentials);
        Self {
            partner_id,
            credential_id: String::new(),
            client,
            base_url: base_url.to_owned(),
        }
    }

    pub fn with_credential_id(mut self, credential_id: String) -> Self {
        self.credential_id = credential_id;
        self
    }

    /// Returns the same partner with another credential, from the response that issued it.
    pub fn with_credential(&self, issued: &Value) -> Self {
        let text = |name: &str| issued[name].as_str().unwrap().to_owned();
        let credentials = Credentials::new(&text("api_key"), &text("api_secret")).unwrap();
        let partner = Self::new(&self.base_url, self.partner_id.clone(), credentials);
        partner.with_credential_id(text("credential_id"))
    }

    pub fn reconnect(&self) -> Self {
        self.connect_to(&self.base_url)
    }

    pub fn connect_to(&self, base_url: &str) -> Self {
        let partner = Self::new(
            base_url,
            self.partner_id.clone(),
            self.client.credentials().clone(),
        );
        partner.with_credential_id(self.credential_id.clone())
    }

    pub async fn order(&mut self, sale: &Sale, quantity: u32) -> ApiResponse {
        self.order_with_key(&unique("key"), sale, quantity).await
    }

    pub async fn order_with_key(&mut self, key: &str, sale: &Sale, quantity: u32) -> ApiResponse {
        self.send(key, &order_body(sale, quantity)).await
    }

    pub async fn send(&mut self, key: &str, body: &Value) -> ApiResponse {
        self.send_text(key, &body.to_string()).await
    }

    pub async fn send_text(&mut self, key: &str, body: &str) -> ApiResponse {
        self.client.order(key, body.to_owned()).await.unwrap()
    }

    /// Sends a GET; `path` is below the API prefix.
    pub async fn get(&mut self, path: &str) -> ApiResponse {
        self.client.get(path).await.unwrap()
    }

    /// Sends a GET with one more header; `path` is below the API prefix.
    pub async fn get_with_header(&mut self, path: &str, header: (&'static str, &str)) -> ApiResponse {
        let mut headers = HeaderMap::new();
        self.client.credentials().insert_api_headers(&mut headers);
        headers.insert(header.0, HeaderValue::from_str(header.1).unwrap());
        let path = format!("/api/v1{path}");
        self.client
            .send_raw(Method::GET, &path, headers, "")
            .await
            .unwrap()
    }

    /// Returns every entry of a list, following `next_cursor`.
    pub async fn list_all(&mut self, path: &str) -> Vec<Value> {
        let (mut entries, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.read(&format!("{path}{cursor}")).await;
            entries.extend(page["data"].as_array().unwrap().iter().cloned());
            assert_eq!(
                page["has_more"].as_bool().unwrap(),
                page["next_cursor"].is_string()
            );
            let Some(next) = page["next_cursor"].as_str() else {
                return entries;
            };
            let separator = if path.contains('?') { '&' } else { '?' };
            cursor = format!("{separator}cursor={next}");
        }
    }

    /// Sends a GET, asserts success and returns the body.
    pub async fn read(&mut self, path: &str) -> Value {
        let response = self.get(path).await;
        assert_eq!(response.status, 200, "{path}: {:?}", response.body);
        json_of(&response)
    }

    /// Returns the exact balance; empty if there is no such wallet.
    pub async fn balance(&mut self, currency: &str) -> String {
        let response = self.get("/wallets").await;
        let wallets: ListView<WalletView<'_>> = response.json().unwrap();
        let found = wallets.data.iter().find(|wallet| wallet.currency == currency);
        found
            .map(|wallet| wallet.balance.get().to_owned())
            .unwrap_or_default()
    }

    /// Returns balance and pending orders of the first wallet, which is in USD.
    pub async fn usd_balances(&mut self) -> (f64, f64) {
        let wallets = self.read("/wallets").await;
        let wallet = &wallets["data"][0];
        assert_eq!(wallet["currency"], "USD");
        (
            wallet["balance"].as_f64().unwrap(),
            wallet["pending_orders"].as_f64().unwrap(),
        )
    }

    /// Fetches the codes of an order and returns how many there are.
    pub async fn count_codes(&mut self, order_id: &str) -> usize {
        let codes = expect_success(&self.get_codes(order_id).await, 200);
        codes["data"].as_array().unwrap().len()
    }

    pub async fn get_codes(&mut self, order_id: &str) -> ApiResponse {
        self.client.get_codes(order_id).await.unwrap()
    }

    /// Sends a signed request; `path` is below the API prefix.
    pub async fn send_signed(&mut self, method: Method, path: &str, body: &str) -> ApiResponse {
        self.client
            .send_signed(method, path, body.to_owned(), HeaderMap::new())
            .await
            .unwrap()
    }

    /// Returns the headers of a valid order under a new key; `path` is the full path that is signed.
    pub fn headers(&self, path: &str, body: &[u8]) -> HeaderMap {
        self.headers_at(unix_seconds(), path, body)
    }

    /// Signs as [`Self::headers`] does, at this time.
    pub fn headers_at(&self, time: u64, path: &str, body: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        self.client
            .credentials()
            .sign("POST", path, body, time)
            .apply_to(&mut headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_str(&unique("key")).unwrap());
        headers
    }

    /// Returns the headers of a signed GET; `path` is the full path.
    pub fn headers_of_get(&self, path: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let signed = self.client.credentials().sign("GET", path, b"", unix_seconds());
        signed.apply_to(&mut headers);
        headers
    }

    /// Posts an order with exactly these headers.
    pub async fn post(&mut self, headers: HeaderMap, body: impl Into<bytes::Bytes>) -> ApiResponse {
        self.client
            .send_raw(Method::POST, "/api/v1/orders", headers, body)
            .await
            .unwrap()
    }
}
