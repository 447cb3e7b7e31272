//! Operator client: creates partners, products, stock and balances, and repeats calls whose response was lost.

use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_api_client::{ApiResponse, Client, RequestFailure};

use crate::fixtures::{Buyer, TestProduct};
use crate::program::{Program, START_TIMEOUT};

/// A start may be in progress.
const RETRY_TIMEOUT: Duration = START_TIMEOUT;

pub(crate) struct Operator {
    client: Client,
    token: String,
}

impl Operator {
    pub(crate) fn of(program: &Program) -> Self {
        let token = std::fs::read_to_string(program.data_dir().join("operator-token")).unwrap();
        let client = Client::new(Origin::parse(&program.admin_url()).unwrap());
        Self {
            client,
            token: token.trim().to_owned(),
        }
    }

    async fn call(
        &mut self,
        method: Method,
        path: &str,
        kind: &str,
        body: String,
    ) -> Result<ApiResponse, RequestFailure> {
        let mut headers = HeaderMap::new();
        headers.insert(
            AUTHORIZATION,
            HeaderValue::from_str(&format!("Bearer {}", self.token)).unwrap(),
        );
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(kind).unwrap());
        self.client.call(method, path, headers, Bytes::from(body)).await
    }

    /// Repeats an idempotent call until it succeeds.
    async fn call_until_success(&mut self, method: Method, path: &str, kind: &str, body: String) -> Value {
        let deadline = Instant::now() + RETRY_TIMEOUT;
        loop {
            let response = self.call(method.clone(), path, kind, body.clone()).await;
            match response {
                Ok(response) if response.status.is_success() => return response.json().unwrap(),
                Ok(response) if response.status.is_client_error() && response.status.as_u16() != 409 => {
                    panic!(
                        "{path}: {} {}",
                        response.status,
                        String::from_utf8_lossy(&response.body)
                    )
                }
                _ => assert!(Instant::now() < deadline, "{path} keeps failing: {response:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn send_json(&mut self, method: Method, path: &str, body: &Value) -> Value {
        self.call_until_success(method, path, "application/json", body.to_string())
            .await
    }

    /// Creates a partner without rate limits that may call from this machine.
    pub(crate) async fn create_partner(&mut self, name: &str) -> Buyer {
        let limit = json!({ "quota": 1_000_000, "window_s": 60 });
        let body = json!({
            "name": name, "allowlist": ["127.0.0.0/8", "::1/128"],
            "limits": { "orders": limit, "general": limit, "vouchers": limit },
        });
        let created = self.send_json(Method::POST, "/admin/v1/partners", &body).await;
        let text = |name: &str| created["credential"][name].as_str().unwrap().to_owned();
        Buyer {
            partner_id: created["partner_id"].as_str().unwrap().to_owned(),
            credentials: Credentials::new(&text("api_key"), &text("api_secret")).unwrap(),
        }
    }

    /// Adds USD to a partner's wallet, once per reference.
    pub(crate) async fn top_up(&mut self, buyer: &Buyer, usd: u32, reference: &str) {
        let path = format!("/admin/v1/partners/{}/wallets/USD/top-ups", buyer.partner_id);
        self.send_json(
            Method::POST,
            &path,
            &json!({ "amount": usd, "reference": reference }),
        )
        .await;
    }

    pub(crate) async fn put_product(&mut self, product: &TestProduct) {
        let manual = json!({ "adapter": "manual" });
        self.send_json(Method::PUT, "/admin/v1/vendors/manual", &manual)
            .await;
        let body = json!({
            "name": "A product", "brand": product.product_id, "category_id": "retail", "vendor": product.vendor,
            "currency": "USD", "countries": ["US"], "denominations": [product.usd],
            "expiry_policy": { "type": "NONE" }, "redemption": { "instructions": "", "terms": "" },
            "route": product.route, "approval": product.approval, "returnable": product.returnable,
        });
        self.send_json(
            Method::PUT,
            &format!("/admin/v1/products/{}", product.product_id),
            &body,
        )
        .await;
    }

    /// Creates a vendor with the HTTP adapter.
    pub(crate) async fn put_vendor(&mut self, vendor_id: &str, url: &str) {
        let body = json!({ "adapter": "http", "url": url, "credentials": "simulator", "concurrency": 8 });
        self.send_json(Method::PUT, &format!("/admin/v1/vendors/{vendor_id}"), &body)
            .await;
    }

    /// Posts once, whatever the outcome.
    pub(crate) async fn post_once(
        &mut self,
        path: &str,
        body: &Value,
    ) -> Result<ApiResponse, RequestFailure> {
        self.call(Method::POST, path, "application/json", body.to_string())
            .await
    }

    /// Imports `count` vouchers; repeating a `delivery` imports nothing twice.
    pub(crate) async fn import_stock(&mut self, product: &TestProduct, delivery: &str, count: u64) {
        let path = format!(
            "/admin/v1/stock?product_id={}&denomination={}",
            product.product_id, product.usd
        );
        let mut csv = String::from("code,pin,serial,url,expiry\n");
        for number in 0..count {
            // Two expiry days, so that the expiry order differs from the import order.
            let day = 30 + number % 2;
            csv.push_str(&format!(
                "{}-{delivery}-{number:05},{number:04},,,2099-12-{day}\n",
                product.product_id
            ));
        }
        let report = self
            .call_until_success(Method::POST, &path, "text/csv", csv)
            .await;
        let stored = report["imported"].as_u64().unwrap() + report["duplicates"].as_u64().unwrap();
        assert_eq!(stored, count, "{report}");
    }

    /// Returns a value of `/metrics` by the start of its line.
    pub(crate) async fn metric(&mut self, line: &str) -> u64 {
        let response = self
            .call(Method::GET, "/metrics", "text/plain", String::new())
            .await
            .unwrap();
        let text = String::from_utf8_lossy(&response.body).into_owned();
        let value = text.lines().find_map(|candidate| candidate.strip_prefix(line));
        value
            .and_then(|rest| rest.trim().parse().ok())
            .unwrap_or_else(|| panic!("no {line} in\n{text}"))
    }
}
