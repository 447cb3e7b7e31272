//! Operator client that repeats calls whose response was lost.

use std::fmt::Write as _;

use reqwest::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_api_client::{ApiResponse, RequestFailure};
use vouchsafe_test_harness::{Instance, WAIT_TIMEOUT};

use crate::fixtures::{Buyer, TestProduct};

pub(crate) struct Operator(vouchsafe_test_harness::Operator);

impl Operator {
    pub(crate) fn of(service: &Instance) -> Self {
        Self(vouchsafe_test_harness::Operator::repeating(service, WAIT_TIMEOUT))
    }

    /// Creates a partner without rate limits that may call from this machine.
    pub(crate) async fn create_partner(&mut self, name: &str) -> Buyer {
        let limit = json!({ "quota": 1_000_000, "window_s": 60 });
        let body = json!({
            "name": name, "allowlist": ["127.0.0.0/8", "::1/128"],
            "limits": { "orders": limit, "general": limit, "vouchers": limit },
        });
        let created = self.0.send_json(Method::POST, "/admin/v1/partners", &body).await;
        let text = |name: &str| created["credential"][name].as_str().unwrap().to_owned();
        Buyer {
            partner_id: created["partner_id"].as_str().unwrap().to_owned(),
            credentials: Credentials::new(&text("api_key"), &text("api_secret")).unwrap(),
        }
    }

    /// Adds USD to a partner's wallet, once per reference.
    pub(crate) async fn top_up(&mut self, buyer: &Buyer, usd: u32, reference: &str) {
        let path = format!("/admin/v1/partners/{}/wallets/USD/top-ups", buyer.partner_id);
        let body = json!({ "amount": usd, "reference": reference });
        self.0.send_json(Method::POST, &path, &body).await;
    }

    pub(crate) async fn put_product(&mut self, product: &TestProduct) {
        let changes = json!({
            "vendor": product.vendor, "denominations": [product.usd], "route": product.route,
            "approval": product.approval, "returnable": product.returnable,
        });
        self.0.put_product(product.product_id, changes).await;
    }

    /// Creates a vendor with the HTTP adapter.
    pub(crate) async fn put_vendor(&mut self, vendor_id: &str, url: &str) {
        let body = json!({ "adapter": "http", "url": url, "credentials": "simulator", "concurrency": 8 });
        let path = format!("/admin/v1/vendors/{vendor_id}");
        self.0.send_json(Method::PUT, &path, &body).await;
    }

    /// Posts once, whatever the outcome.
    pub(crate) async fn post_once(
        &mut self,
        path: &str,
        body: &Value,
    ) -> Result<ApiResponse, RequestFailure> {
        self.0.try_post(path, body.to_string()).await
    }

    /// Imports `count` vouchers; repeating a `delivery` imports nothing twice.
    pub(crate) async fn import_stock(&mut self, product: &TestProduct, delivery: &str, count: u64) {
        let TestProduct { product_id, usd, .. } = product;
        let mut csv = String::from("code,pin,serial,url,expiry\n");
        for number in 0..count {
            // Two expiry days, so that the expiry order differs from the import order.
            let day = 30 + number % 2;
            writeln!(
                csv,
                "{product_id}-{delivery}-{number:05},{number:04},,,2099-12-{day}"
            )
            .unwrap();
        }
        let report = self.0.import_stock(product_id, &usd.to_string(), csv).await;
        let stored = report["imported"].as_u64().unwrap() + report["duplicates"].as_u64().unwrap();
        assert_eq!(stored, count, "{report}");
    }

    /// Returns a value of `/metrics` by the start of its line.
    pub(crate) async fn metric(&mut self, line: &str) -> u64 {
        let response = self.0.call(Method::GET, "/metrics", "text/plain", "").await;
        let text = String::from_utf8_lossy(&response.body).into_owned();
        let value = text.lines().find_map(|candidate| candidate.strip_prefix(line));
        value
            .and_then(|rest| rest.trim().parse().ok())
            .unwrap_or_else(|| panic!("no {line} in\n{text}"))
    }
}
