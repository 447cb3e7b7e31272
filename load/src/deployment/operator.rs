//! Admin API client: creates products, stock, partners and balances before a run, and reads state after it.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::signer::{CredentialEncodingError, Credentials};
use vouchsafe_api_client::{ApiResponse, Client};

/// Lines per import. The service has no limit; it processes this number well within the client's timeout.
const IMPORT_LINES: u64 = 20_000;

/// Attempts per import. Concurrent imports overload a debug build on a busy machine, which responds 503.
const IMPORT_ATTEMPTS: u32 = 10;

const IMPORT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Request timeout. Nothing is measured here, and a debug build on a busy machine needs long for an import.
const TIMEOUT: Duration = Duration::from_secs(120);

const JSON: &str = "application/json";

/// A created partner with its credentials.
#[derive(Clone, Debug)]
pub struct LoadPartner {
    /// `ptn_…`.
    pub partner_id: String,
    pub credentials: Credentials,
}

#[derive(Deserialize)]
struct CreatedPartner {
    partner_id: String,
    credential: CreatedCredential,
}

#[derive(Deserialize)]
struct CreatedCredential {
    api_key: String,
    api_secret: String,
}

#[derive(Deserialize)]
struct ImportResult {
    imported: u64,
    /// Vouchers of an earlier attempt with the same file.
    duplicates: u64,
}

pub struct Operator {
    client: Client,
    bearer: HeaderValue,
}

impl Operator {
    /// Creates a client for an admin URL such as `http://127.0.0.1:8081` and an operator token.
    ///
    /// # Errors
    /// If the URL has another form or the token is not a valid header value.
    pub fn new(admin_url: &str, token: &str) -> anyhow::Result<Self> {
        let mut bearer =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| CredentialEncodingError)?;
        bearer.set_sensitive(true);
        Ok(Self {
            client: Client::new(Origin::parse(admin_url)?).with_timeout(TIMEOUT),
            bearer,
        })
    }

    /// Creates a client for the same operator with a separate connection.
    pub(super) fn new_connection(&self) -> Self {
        Self {
            client: Client::new(self.client.origin().clone()).with_timeout(TIMEOUT),
            bearer: self.bearer.clone(),
        }
    }

    /// Replaces the connection. A connection belongs to the runtime that opened it and hangs on another one.
    pub(super) fn reconnect(&mut self) {
        self.client = Client::new(self.client.origin().clone()).with_timeout(TIMEOUT);
    }

    /// Creates a USD product that is sold from stock only, at these denominations or at each amount of a
    /// range.
    pub(crate) async fn put_product(
        &mut self,
        product_id: &str,
        denominations: &[u32],
        range: Value,
    ) -> anyhow::Result<()> {
        let body = json!({
            "name": "Load test product", "brand": product_id, "category_id": "retail", "vendor": "manual",
            "currency": "USD", "countries": ["US"], "denominations": denominations, "denomination_range": range,
            "expiry_policy": { "type": "NONE" }, "redemption": { "instructions": "", "terms": "" },
            "route": "stock",
        });
        self.send_json(Method::PUT, &format!("/admin/v1/products/{product_id}"), &body)
            .await
            .map(drop)
    }

    /// Creates the manual vendor that the products reference.
    pub(crate) async fn put_manual_vendor(&mut self) -> anyhow::Result<()> {
        let body = json!({ "adapter": "manual" });
        self.send_json(Method::PUT, "/admin/v1/vendors/manual", &body)
            .await
            .map(drop)
    }

    /// Imports `count` vouchers whose codes begin with `prefix`.
    pub(crate) async fn import_vouchers(
        &mut self,
        product_id: &str,
        denomination: u32,
        prefix: &str,
        count: u64,
    ) -> anyhow::Result<()> {
        let path = format!("/admin/v1/stock?product_id={product_id}&denomination={denomination}");
        let (mut from, mut imported) = (0, 0);
        while from < count {
            let to = count.min(from + IMPORT_LINES);
            let result: ImportResult = self.import_lines(&path, csv_codes(prefix, from, to)).await?;
            imported += result.imported + result.duplicates;
            from = to;
        }
        ensure!(
            imported == count,
            "{imported} of {count} vouchers of {product_id} were imported"
        );
        Ok(())
    }

    /// Imports one file and retries on 503. Vouchers of earlier attempts count as duplicates.
    async fn import_lines(&mut self, path: &str, lines: String) -> anyhow::Result<ImportResult> {
        let mut attempts = 1;
        loop {
            let response = self.send(Method::POST, path, "text/csv", lines.clone()).await?;
            if response.status == StatusCode::SERVICE_UNAVAILABLE && attempts < IMPORT_ATTEMPTS {
                attempts += 1;
                tokio::time::sleep(IMPORT_RETRY_DELAY).await;
            } else {
                return Ok(require_success(path, response)?.json()?);
            }
        }
    }

    /// Creates a partner that may call from this machine, with the default rate limits.
    pub(crate) async fn create_partner(&mut self, name: &str) -> anyhow::Result<LoadPartner> {
        let path = "/admin/v1/partners";
        let body = json!({ "name": name, "allowlist": ["127.0.0.0/8", "::1/128"] });
        let response = self.send_json(Method::POST, path, &body).await?;
        let created: CreatedPartner = response.json().context(path)?;
        Ok(LoadPartner {
            partner_id: created.partner_id,
            credentials: Credentials::new(&created.credential.api_key, &created.credential.api_secret)?,
        })
    }

    /// Tops up a partner's USD wallet, once per reference.
    pub(crate) async fn top_up(
        &mut self,
        buyer: &LoadPartner,
        usd: u64,
        reference: &str,
    ) -> anyhow::Result<()> {
        let path = format!("/admin/v1/partners/{}/wallets/USD/top-ups", buyer.partner_id);
        let body = json!({ "amount": usd, "reference": reference });
        self.send_json(Method::POST, &path, &body).await.map(drop)
    }

    /// Sends `GET` for a path of the admin listener, such as `/admin/v1/stock?limit=100`.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<ApiResponse> {
        require_success(path, self.send(Method::GET, path, JSON, String::new()).await?)
    }

    async fn send_json(&mut self, method: Method, path: &str, body: &Value) -> anyhow::Result<ApiResponse> {
        require_success(path, self.send(method, path, JSON, body.to_string()).await?)
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: String,
    ) -> anyhow::Result<ApiResponse> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, self.bearer.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        let response = self.client.call(method, path, headers, Bytes::from(body)).await;
        response.with_context(|| path.to_owned())
    }
}

fn require_success(path: &str, response: ApiResponse) -> anyhow::Result<ApiResponse> {
    let ApiResponse { status, body, .. } = &response;
    ensure!(
        status.is_success(),
        "{path}: {status} {}",
        String::from_utf8_lossy(body)
    );
    Ok(response)
}

/// CSV file with recognizable test codes.
fn csv_codes(prefix: &str, from: u64, to: u64) -> String {
    let mut csv = String::from("code\n");
    for number in from..to {
        csv.push_str(prefix);
        csv.push_str(&format!("-{number:09}\n"));
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_codes_continue_numbering() {
        assert_eq!(csv_codes("L", 9, 11), "code\nL-000000009\nL-000000010\n");
    }
}
