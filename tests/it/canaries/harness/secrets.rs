//! Secrets as canaries: those that responses issue and those in the data directory.

use hyper::Method;
use serde_json::{Value, json};

use super::super::Canary;
use super::CanaryHarness;
use vouchsafe_test_harness::expect_success;

impl CanaryHarness {
    /// Issues new secrets. They appear in the response that issues them and are canaries from then on.
    pub(in super::super) async fn issue_secrets(&mut self) -> Vec<Canary> {
        let rotated = self
            .call_as_partner(Method::POST, "/api/v1/credentials/rotate", "rotate", "{}")
            .await;
        let rotated = expect_success(&rotated, 201);
        let path = format!("/admin/v1/partners/{}/credentials", self.partner.partner_id);
        let further = self
            .call_as_operator(Method::POST, &path, "application/json", "{}")
            .await;
        let further = expect_success(&further, 201);
        let next = self.partner.with_credential(&rotated);
        expect_success(&next.reconnect().get("/wallets").await, 200);
        let listening = json!({ "url": "http://127.0.0.1:9/" }).to_string();
        let webhook = self
            .call_as_partner(Method::POST, "/api/v1/webhooks", "listen", &listening)
            .await;
        let webhook = expect_success(&webhook, 201);
        webhook["webhook_id"]
            .as_str()
            .unwrap()
            .clone_into(&mut self.webhook_id);
        let headers = self.partner.headers("/api/v1/orders", b"");
        let own = |name: &str| headers[name].to_str().unwrap().to_owned();
        let issued = |issued: &Value, field: &str| issued[field].as_str().unwrap().to_owned();
        let rotate: &[_] = &["POST /api/v1/credentials/rotate"];
        let issue: &[_] = &["POST /admin/v1/partners/"];
        [
            ("the first API key", own("x-api-key"), &[][..]),
            ("the first API secret", own("x-api-secret"), &[]),
            ("the key of a rotation", issued(&rotated, "api_key"), rotate),
            ("the secret of a rotation", issued(&rotated, "api_secret"), rotate),
            ("a key that was issued", issued(&further, "api_key"), issue),
            ("a secret that was issued", issued(&further, "api_secret"), issue),
            (
                "a webhook's secret",
                issued(&webhook, "secret"),
                &["POST /api/v1/webhooks"],
            ),
        ]
        .map(|(name, text, allowed_in)| Canary {
            name,
            text,
            allowed_in,
        })
        .into()
    }

    /// Returns the secrets in the data directory, each with its own file.
    pub(in super::super) fn secrets_in_files(&self) -> Vec<Canary> {
        let read = |name: &str| std::fs::read_to_string(self.service.data_dir().join(name)).unwrap();
        let seeded: Value = serde_json::from_str(&read("sandbox-partner.json")).unwrap();
        let secret = |name, text: &str, allowed_in| Canary {
            name,
            text: text.trim().to_owned(),
            allowed_in,
        };
        vec![
            secret(
                "the operator's token",
                &read("operator-token"),
                &["data/operator-token"],
            ),
            secret("the master key", &read("master-key"), &["data/master-key"]),
            secret(
                "the seeded secret",
                seeded["api_secret"].as_str().unwrap(),
                &["data/sandbox-partner.json"],
            ),
        ]
    }
}
