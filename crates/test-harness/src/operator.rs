//! Operator client: creates partners, products, stock and balances.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Method;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_api_client::{ApiResponse, Client, RequestFailure};

use crate::checked::CheckedOperator;
use crate::instance::Instance;
use crate::partner::Partner;
use crate::product::{Sale, unique};
use crate::wait::WAIT_TIMEOUT;

pub struct Operator {
    client: CheckedOperator,
    token: String,
    base_url: String,
    /// Repeats a failed call for this long.
    retry_timeout: Duration,
}

const RETRY_INTERVAL: Duration = Duration::from_millis(20);

impl Operator {
    pub fn of(service: &Instance) -> Self {
        Self::with_client(service, CheckedOperator::new(Self::client(service)))
    }

    /// Repeats a call until its response is definite, and leaves responses unchecked, for services that are
    /// killed.
    pub fn repeating(service: &Instance, retry_timeout: Duration) -> Self {
        let operator = Self::with_client(service, CheckedOperator::unchecked(Self::client(service)));
        Self {
            retry_timeout,
            ..operator
        }
    }

    /// The same service with another token.
    pub fn with_token(self, token: &str) -> Self {
        Self {
            token: token.to_owned(),
            ..self
        }
    }

    fn client(service: &Instance) -> Client {
        Client::new(Origin::parse(&service.admin_url()).unwrap()).with_timeout(WAIT_TIMEOUT)
    }

    fn with_client(service: &Instance, client: CheckedOperator) -> Self {
        Self {
            client,
            token: service.operator_token(),
            base_url: service.base_url(),
            retry_timeout: Duration::ZERO,
        }
    }

    pub async fn call(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> ApiResponse {
        self.try_call(method, path, content_type, body.into())
            .await
            .unwrap()
    }

    /// Sends JSON and returns the response, whatever it is.
    pub async fn call_json(&mut self, method: Method, path: &str, body: impl Into<Bytes>) -> ApiResponse {
        self.call(method, path, "application/json", body).await
    }

    /// Returns the entries of the audit trail that match a filter, newest first.
    pub async fn audit_entries(&mut self, filter: &str) -> Vec<Value> {
        let page = self.get(&format!("/admin/v1/audit?{filter}")).await;
        page["data"].as_array().unwrap().clone()
    }

    /// Posts JSON to a service that may stop meanwhile.
    ///
    /// # Errors
    /// The exchange failed.
    pub async fn try_post(&mut self, path: &str, body: String) -> Result<ApiResponse, RequestFailure> {
        self.try_call(Method::POST, path, "application/json", body.into())
            .await
    }

    async fn try_call(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<ApiResponse, RequestFailure> {
        let mut headers = HeaderMap::new();
        headers.insert(
            AUTHORIZATION,
            HeaderValue::from_str(&format!("Bearer {}", self.token)).unwrap(),
        );
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type).unwrap());
        self.client.call(method, path, headers, body).await
    }

    /// Sends JSON and asserts success.
    pub async fn send_json(&mut self, method: Method, path: &str, body: &Value) -> Value {
        self.send(method, path, "application/json", body.to_string().into())
            .await
    }

    /// Sends a request and asserts success.
    async fn send(&mut self, method: Method, path: &str, content_type: &str, body: Bytes) -> Value {
        let deadline = Instant::now() + self.retry_timeout;
        loop {
            let result = self
                .try_call(method.clone(), path, content_type, body.clone())
                .await;
            let is_definite = match &result {
                Ok(response) if response.status.is_success() => {
                    return serde_json::from_slice(&response.body).unwrap_or(Value::Null);
                }
                // An earlier attempt is still executed.
                Ok(response) => response.status.is_client_error() && response.status != 409,
                Err(_) => false,
            };
            assert!(!is_definite && Instant::now() < deadline, "{path}: {result:?}");
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// Sends a GET and asserts success.
    pub async fn get(&mut self, path: &str) -> Value {
        let response = self.call(Method::GET, path, "application/json", "").await;
        assert!(response.status.is_success(), "{path}: {}", response.status);
        serde_json::from_slice(&response.body).unwrap()
    }

    /// Creates a partner with a balance in USD that may call from this machine.
    pub async fn add_partner(&mut self, usd: &str) -> Partner {
        let partner = self.add_partner_with_allowlist(&["127.0.0.0/8", "::1/128"]).await;
        if usd != "0" {
            self.top_up(&partner.partner_id, "USD", usd).await;
        }
        partner
    }

    /// Creates a partner without balance.
    pub async fn add_partner_with_allowlist(&mut self, allowlist: &[&str]) -> Partner {
        let body = json!({ "name": unique("partner"), "allowlist": allowlist });
        let created = self.send_json(Method::POST, "/admin/v1/partners", &body).await;
        let partner_id = created["partner_id"].as_str().unwrap().to_owned();
        let text = |name: &str| created["credential"][name].as_str().unwrap().to_owned();
        let credentials = Credentials::new(&text("api_key"), &text("api_secret")).unwrap();
        Partner::new(&self.base_url, partner_id, credentials).with_credential_id(text("credential_id"))
    }

    pub async fn patch_partner(&mut self, partner: &Partner, change: &Value) {
        self.send_json(
            Method::PATCH,
            &format!("/admin/v1/partners/{}", partner.partner_id),
            change,
        )
        .await;
    }

    pub async fn revoke_credential(&mut self, partner: &Partner) {
        let path = format!("/admin/v1/credentials/{}", partner.credential_id);
        self.send_json(Method::DELETE, &path, &Value::Null).await;
    }

    pub async fn top_up(&mut self, partner_id: &str, currency: &str, amount: &str) -> Value {
        let path = format!("/admin/v1/partners/{partner_id}/wallets/{currency}/top-ups");
        self.send_json(
            Method::POST,
            &path,
            &json!({ "amount": amount, "reference": unique("top-up") }),
        )
        .await
    }

    /// Creates a product of 25 USD with this many vouchers.
    pub async fn add_stocked_product(&mut self, vouchers: usize) -> Sale {
        self.add_product("stock", vouchers).await
    }

    /// Creates a product of 25 USD with this route and this many vouchers.
    pub async fn add_product(&mut self, route: &str, vouchers: usize) -> Sale {
        self.add_product_with(json!({ "route": route }), "25", vouchers)
            .await
    }

    /// Creates a product of 25 USD with these changes and this many vouchers of one denomination.
    pub async fn add_product_with(
        &mut self,
        changes: Value,
        denomination: &'static str,
        vouchers: usize,
    ) -> Sale {
        let sale = Sale {
            product_id: unique("product"),
            denomination,
        };
        self.put_product(&sale.product_id, changes).await;
        if vouchers > 0 {
            self.restock(&sale, vouchers, "2099-12-31").await;
        }
        sale
    }

    /// Creates or replaces a product of 25 USD with these changes.
    pub async fn put_product(&mut self, product_id: &str, changes: Value) {
        // Purchases from a manual vendor stay pending.
        let manual = json!({ "adapter": "manual" });
        self.send_json(Method::PUT, "/admin/v1/vendors/by-hand", &manual)
            .await;
        let mut product = json!({
            "name": "A product", "brand": product_id, "category_id": "retail", "vendor": "by-hand",
            "currency": "USD", "countries": ["US"], "denominations": ["25"],
            "expiry_policy": { "type": "NONE" }, "redemption": { "instructions": "", "terms": "" }, "route": "stock",
        });
        let Value::Object(changes) = changes else {
            panic!("{changes}")
        };
        product.as_object_mut().unwrap().extend(changes);
        self.send_json(Method::PUT, &format!("/admin/v1/products/{product_id}"), &product)
            .await;
    }

    /// Imports this many new vouchers with this last valid day; an empty text means no expiry.
    pub async fn restock(&mut self, sale: &Sale, vouchers: usize, expiry: &str) {
        let code = |_| format!("{}-{},0000,,,{expiry}\n", sale.product_id, unique("code"));
        let codes: String = (0..vouchers).map(code).collect();
        let imported = self
            .import_csv(sale, format!("code,pin,serial,url,expiry\n{codes}"))
            .await;
        assert_eq!(imported["imported"], vouchers, "{imported}");
    }

    pub async fn import_csv(&mut self, sale: &Sale, csv: String) -> Value {
        self.import_stock(&sale.product_id, sale.denomination, csv).await
    }

    pub async fn import_stock(&mut self, product_id: &str, denomination: &str, csv: String) -> Value {
        let path = format!("/admin/v1/stock?product_id={product_id}&denomination={denomination}");
        self.send(Method::POST, &path, "text/csv", csv.into()).await
    }

    pub async fn call_without_token(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> ApiResponse {
        let headers = headers.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        });
        self.client
            .call(method, path, headers.collect(), Bytes::new())
            .await
            .unwrap()
    }
}
