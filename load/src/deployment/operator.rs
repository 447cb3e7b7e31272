//! What does an operator do before and after a run? Puts products on sale, imports stock, makes partners and gives them
//! money, over the operators' API; and reads what became of it.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{ApiResponse, Client, RequestFailure};
use crate::origin::{Origin, UrlError};
use crate::signer::{Credentials, CredentialEncodingError};

/// Lines of one import. The service takes any number; so many are read and sealed well within a client's timeout.
const IMPORT_LINES: u64 = 20_000;

/// How often a file is sent that is refused with 503: several at once are much for a debug build on a busy machine.
const IMPORT_TRIES: u32 = 10;

/// Pause before it is sent again.
const IMPORT_PAUSE: Duration = Duration::from_secs(1);

/// How long an answer may take. Nothing of it is measured, and a debug build on a machine that does other things takes its
/// time over an import.
const TIMEOUT: Duration = Duration::from_secs(120);

const JSON: &str = "application/json";

/// Why an operator did not get what it wanted.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// No whole answer came.
    #[error("{path}: {failure}")]
    Failed {
        /// What was asked for.
        path: String,
        failure: RequestFailure,
    },
    /// It was answered with something else than success.
    #[error("{path}: {status} {answer}")]
    Refused {
        /// What was asked for.
        path: String,
        status: u16,
        answer: String,
    },
    /// The answer is not of the contract's form.
    #[error("{path}: the answer is not as the contract says")]
    Malformed {
        /// What was asked for.
        path: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// Not everything came into stock.
    #[error("of {wanted} vouchers of {product_id}, {imported} were imported")]
    NotImported {
        product_id: String,
        /// How many were sent.
        wanted: u64,
        /// How many came in.
        imported: u64,
    },
    /// The token, or a partner's key, cannot stand in a header.
    #[error(transparent)]
    Credentials(#[from] CredentialEncodingError),
    /// The service's address is of another form.
    #[error(transparent)]
    Url(#[from] UrlError),
}

/// A partner that may call, and how it signs.
#[derive(Clone, Debug)]
pub struct LoadPartner {
    /// The partner's id, `ptn_…`.
    pub partner_id: String,
    pub credentials: Credentials,
}

#[derive(Deserialize)]
struct Made {
    partner_id: String,
    credential: MadeCredential,
}

#[derive(Deserialize)]
struct MadeCredential {
    api_key: String,
    api_secret: String,
}

#[derive(Deserialize)]
struct Imported {
    imported: u64,
    /// Of a file that is sent again, because it was refused half-way.
    duplicates: u64,
}

/// An operator on one connection.
pub struct Operator {
    client: Client,
    bearer: HeaderValue,
}

impl Operator {
    /// An operator of the service at this address, such as `http://127.0.0.1:8081`, with this token.
    ///
    /// # Errors
    /// [`OperatorError`] if the address is of another form or the token cannot stand in a header.
    pub fn new(admin_url: &str, token: &str) -> Result<Self, OperatorError> {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| CredentialEncodingError)?;
        bearer.set_sensitive(true);
        Ok(Self {
            client: Client::new(Origin::parse(admin_url)?).with_timeout(TIMEOUT),
            bearer,
        })
    }

    /// The same operator on a connection of its own.
    pub(super) fn new_connection(&self) -> Self {
        Self {
            client: Client::new(self.client.origin().clone()).with_timeout(TIMEOUT),
            bearer: self.bearer.clone(),
        }
    }

    /// Goes on over a new connection. A connection belongs to the runtime that opened it: on another one it would hang.
    pub(super) fn reconnect(&mut self) {
        self.client = Client::new(self.client.origin().clone()).with_timeout(TIMEOUT);
    }

    /// Puts a product of USD on sale, out of stock alone, at these denominations.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub async fn put_product(&mut self, product_id: &str, denominations: &[u32]) -> Result<(), OperatorError> {
        let body = json!({
            "name": "A product under load", "brand": product_id, "category_id": "retail", "vendor": "manual",
            "currency": "USD", "countries": ["US"], "denominations": denominations,
            "expiry_policy": { "type": "NONE" }, "redemption": { "instructions": "", "terms": "" },
            "route": "stock",
        });
        self.json(Method::PUT, &format!("/admin/v1/products/{product_id}"), &body)
            .await
            .map(drop)
    }

    /// Makes the vendor that the products of a run name and nobody buys from.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub async fn put_manual_vendor(&mut self) -> Result<(), OperatorError> {
        let body = json!({ "adapter": "manual" });
        self.json(Method::PUT, "/admin/v1/vendors/manual", &body)
            .await
            .map(drop)
    }

    /// Imports `count` new vouchers, whose codes begin with `prefix`.
    ///
    /// # Errors
    /// [`OperatorError`]; of what was imported before, nothing is taken back.
    pub async fn import_vouchers(
        &mut self,
        product_id: &str,
        denomination: u32,
        prefix: &str,
        count: u64,
    ) -> Result<(), OperatorError> {
        let path = format!("/admin/v1/stock?product_id={product_id}&denomination={denomination}");
        let (mut from, mut imported) = (0, 0);
        while from < count {
            let to = count.min(from + IMPORT_LINES);
            let answer = self.import_lines(&path, codes(prefix, from, to)).await?;
            let came: Imported = parsed(&path, &answer)?;
            imported += came.imported + came.duplicates;
            from = to;
        }
        if imported == count {
            return Ok(());
        }
        Err(OperatorError::NotImported {
            product_id: product_id.to_owned(),
            wanted: count,
            imported,
        })
    }

    /// Sends a file, again and again while the service has no time for it: what came in stays, and counts as a duplicate then.
    async fn import_lines(&mut self, path: &str, lines: String) -> Result<ApiResponse, OperatorError> {
        let mut tries = 1;
        loop {
            match self.call(Method::POST, path, "text/csv", lines.clone()).await {
                Err(OperatorError::Refused { status: 503, .. }) if tries < IMPORT_TRIES => {
                    tries += 1;
                    tokio::time::sleep(IMPORT_PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Makes a partner who may call from this machine, as often as the service's own limits say.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub async fn create_partner(&mut self, name: &str) -> Result<LoadPartner, OperatorError> {
        let path = "/admin/v1/partners";
        let body = json!({ "name": name, "allowlist": ["127.0.0.0/8", "::1/128"] });
        let answer = self.json(Method::POST, path, &body).await?;
        let made: Made = parsed(path, &answer)?;
        Ok(LoadPartner {
            partner_id: made.partner_id,
            credentials: Credentials::new(&made.credential.api_key, &made.credential.api_secret)?,
        })
    }

    /// Adds USD to a partner's wallet, once a reference.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub async fn top_up(&mut self, buyer: &LoadPartner, usd: u64, reference: &str) -> Result<(), OperatorError> {
        let path = format!("/admin/v1/partners/{}/wallets/USD/top-ups", buyer.partner_id);
        let body = json!({ "amount": usd, "reference": reference });
        self.json(Method::POST, &path, &body).await.map(drop)
    }

    /// Reads a path of the operators' listener, such as `/admin/v1/stock?limit=100`.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub async fn get(&mut self, path: &str) -> Result<ApiResponse, OperatorError> {
        self.call(Method::GET, path, JSON, String::new()).await
    }

    async fn json(&mut self, method: Method, path: &str, body: &Value) -> Result<ApiResponse, OperatorError> {
        self.call(method, path, JSON, body.to_string()).await
    }

    async fn call(
        &mut self,
        method: Method,
        path: &str,
        kind: &'static str,
        body: String,
    ) -> Result<ApiResponse, OperatorError> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, self.bearer.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let answer = self.client.call(method, path, headers, Bytes::from(body)).await;
        let answer = answer.map_err(|failure| OperatorError::Failed {
            path: path.to_owned(),
            failure,
        })?;
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(OperatorError::Refused {
            path: path.to_owned(),
            status: answer.status.as_u16(),
            answer: String::from_utf8_lossy(&answer.body).into_owned(),
        })
    }
}

/// Codes as an import takes them. They are of a load run, and visibly so.
fn codes(prefix: &str, from: u64, to: u64) -> String {
    let mut csv = String::from("code\n");
    for number in from..to {
        csv.push_str(prefix);
        csv.push_str(&format!("-{number:09}\n"));
    }
    csv
}

fn parsed<'a, T: Deserialize<'a>>(path: &str, answer: &'a ApiResponse) -> Result<T, OperatorError> {
    answer.json().map_err(|source| OperatorError::Malformed {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_numbered_on() {
        assert_eq!(codes("L", 9, 11), "code\nL-000000009\nL-000000010\n");
    }
}
