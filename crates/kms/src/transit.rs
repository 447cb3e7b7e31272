//! HashiCorp Vault Transit: wraps data keys with a key that never leaves Vault.
//!
//! `POST /v1/{mount}/encrypt/{key}` and `/decrypt/{key}`. The id and purpose of a data key are its associated
//! data, so a row that was moved does not decrypt. The key in Vault must be of a type with associated data,
//! such as the default `aes256-gcm96`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Client, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use vouchsafe_http_client::root_cause;
use vouchsafe_security::secret_file;
use vouchsafe_security::secure_url::is_secure;
use vouchsafe_security::vault::data_key::{DataKey, WrappedKey};
use vouchsafe_security::vault::wrapping_key::{WrapError, WrapFuture, WrappingKey, WrappingKeyId};
use zeroize::Zeroizing;

/// The start of the service, a rotation, and a read of a code under a new data key wait for it.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Vault's ciphertexts begin with it, followed by the version of its key.
const CIPHERTEXT_PREFIX: &[u8] = b"vault:";

const ID_PREFIX: &str = "vault-transit:";

/// A data key and its associated data have 76 and some 60 characters, a ciphertext some 110.
const MAX_REQUEST_BYTES: usize = 1024;

/// A response has some hundred bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Characters of an error from Vault that are shown.
const MAX_ERROR_CHARACTERS: usize = 300;

/// Where the key is, and how to get in.
#[derive(Debug)]
pub struct TransitConfig<'a> {
    pub address: &'a str,
    pub mount: &'a str,
    pub key: &'a str,
    pub token_file: PathBuf,
}

/// A key of Vault's transit engine.
#[derive(Debug)]
pub struct TransitKey {
    client: Client,
    /// Leaves out credentials and path.
    address: String,
    /// Up to and including the mount.
    base: String,
    mount: String,
    key: String,
    token_file: PathBuf,
}

#[derive(Serialize)]
struct EncryptRequest<'a> {
    plaintext: &'a str,
    associated_data: &'a str,
}

#[derive(Serialize)]
struct DecryptRequest<'a> {
    ciphertext: &'a str,
    associated_data: &'a str,
}

#[derive(Deserialize)]
struct DataBody<T> {
    data: T,
}

#[derive(Deserialize)]
struct EncryptData {
    ciphertext: String,
}

#[derive(Deserialize)]
struct DecryptData {
    plaintext: String,
}

#[derive(Deserialize)]
struct ErrorBody {
    errors: Vec<String>,
}

impl TransitKey {
    /// A client of this key. Sends no request.
    ///
    /// # Errors
    /// If the address is no URL or would send the key in plain text to another machine, or TLS is
    /// unavailable.
    pub fn new(config: TransitConfig<'_>) -> anyhow::Result<Self> {
        let TransitConfig {
            address,
            mount,
            key,
            token_file,
        } = config;
        let url = Url::parse(address).ok().filter(Url::has_host);
        let url = url.context("expected a URL such as https://vault.example:8200")?;
        if !is_secure(&url) {
            bail!("the network could read data keys and the token: use https, or http to this machine");
        }
        let builder = vouchsafe_http_client::client_builder(url.as_str())?.timeout(TIMEOUT);
        // A pooled connection would belong to the runtime of its first request.
        let client = builder.pool_max_idle_per_host(0).build();
        for (name, path) in [("VOUCHSAFE_VAULT_MOUNT", mount), ("VOUCHSAFE_VAULT_KEY", key)] {
            if !path.split('/').all(is_path_segment) {
                bail!("{name} {path}: expected letters, digits, hyphens, underscores and dots");
            }
        }
        Ok(Self {
            client: client.context("build the HTTP client")?,
            address: url.origin().ascii_serialization(),
            base: format!("{}/v1/{mount}", url.as_str().trim_end_matches('/')),
            mount: mount.to_owned(),
            key: key.to_owned(),
            token_file,
        })
    }

    /// The parameter is the verb of the route.
    async fn call<T: DeserializeOwned>(&self, verb: &str, body: &impl Serialize) -> Result<T, WrapError> {
        let token = read_token(&self.token_file)?;
        // With capacity for the whole body: growing would leave copies of the data key in memory.
        let mut text = Vec::with_capacity(MAX_REQUEST_BYTES);
        serde_json::to_writer(&mut text, body).map_err(|error| WrapError::KeyManager(error.to_string()))?;
        let request = self
            .client
            .post(format!("{}/{verb}/{}", self.base, self.key))
            .header("X-Vault-Token", token.trim())
            .header("X-Vault-Request", "true")
            .header("Content-Type", "application/json")
            .body(text);
        let unreachable = |error: &reqwest::Error| {
            WrapError::KeyManager(format!(
                "no response from Vault at {}: {}; check VOUCHSAFE_VAULT_ADDR, and whether Vault runs",
                self.base,
                root_cause(error)
            ))
        };
        let mut response = request.send().await.map_err(|error| unreachable(&error))?;
        let status = response.status();
        let text = read_body(&mut response)
            .await
            .map_err(|error| unreachable(&error))?;
        if status.is_success() {
            let body: DataBody<T> = serde_json::from_slice(&text).map_err(|_| {
                WrapError::KeyManager(format!(
                    "the response from {} is not that of Vault's transit engine",
                    self.base
                ))
            })?;
            return Ok(body.data);
        }
        Err(self.refusal(verb, status, &text))
    }

    fn refusal(&self, verb: &str, status: StatusCode, text: &[u8]) -> WrapError {
        let (mount, key, token) = (&self.mount, &self.key, self.token_file.display());
        let advice = match status.as_u16() {
            400 => format!(
                "the key {key} must exist in {mount} and be of type aes256-gcm96, aes128-gcm96 or \
                 chacha20-poly1305, and the row in data_keys must be unchanged"
            ),
            403 => format!(
                "the token in {token} is invalid or expired, or its policy lacks: path \"{mount}/{verb}/{key}\" {{ capabilities = \
                 [\"update\"] }}"
            ),
            404 => format!(
                "Vault has no transit engine at {mount}: run vault secrets enable -path={mount} transit"
            ),
            503 => "Vault is sealed or in maintenance: unseal it".to_owned(),
            _ => "see the log of Vault".to_owned(),
        };
        let errors = serde_json::from_slice(text).map(|body: ErrorBody| body.errors.join("; "));
        let errors: String = errors
            .unwrap_or_default()
            .chars()
            .take(MAX_ERROR_CHARACTERS)
            .collect();
        WrapError::KeyManager(format!(
            "Vault refused to {verb} with {mount}/{key}: {} {}; {advice}",
            status.as_u16(),
            errors.trim()
        ))
    }
}

impl WrappingKey for TransitKey {
    fn id(&self) -> WrappingKeyId {
        WrappingKeyId::new(format!("{ID_PREFIX}{}/{}/{}", self.address, self.mount, self.key))
    }

    /// Ignores the address: Vault may have moved, and another Vault refuses to decrypt.
    fn is_named_by(&self, id: &WrappingKeyId) -> bool {
        id.as_str().starts_with(ID_PREFIX) && id.as_str().ends_with(&format!("/{}/{}", self.mount, self.key))
    }

    fn wrap<'a>(&'a self, key: &'a DataKey) -> WrapFuture<'a, WrappedKey> {
        Box::pin(async move {
            let plaintext = Zeroizing::new(STANDARD.encode(key.expose()));
            let request = EncryptRequest {
                plaintext: &plaintext,
                associated_data: &STANDARD.encode(key.associated_data()),
            };
            let data: EncryptData = self.call("encrypt", &request).await?;
            if !data.ciphertext.as_bytes().starts_with(CIPHERTEXT_PREFIX) {
                return Err(WrapError::KeyManager(
                    "Vault returned no ciphertext of its transit engine".to_owned(),
                ));
            }
            Ok(key.wrapped_as(data.ciphertext.into_bytes(), WrappingKey::id(self)))
        })
    }

    fn unwrap_key<'a>(&'a self, wrapped: &'a WrappedKey) -> WrapFuture<'a, DataKey> {
        Box::pin(async move {
            let invalid = || {
                WrapError::KeyManager(format!(
                    "data key {} is no key of Vault's transit engine: its row was altered",
                    wrapped.key_id
                ))
            };
            let request = DecryptRequest {
                ciphertext: std::str::from_utf8(&wrapped.wrapped).map_err(|_| invalid())?,
                associated_data: &STANDARD.encode(wrapped.associated_data()),
            };
            let data: DecryptData = self.call("decrypt", &request).await?;
            let encoded = Zeroizing::new(data.plaintext);
            let plain = STANDARD.decode(encoded.as_bytes()).map(Zeroizing::new);
            let plain = plain.map_err(|_| invalid())?;
            wrapped.with_plaintext(&plain).ok_or_else(invalid)
        })
    }
}

fn is_path_segment(segment: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    segment.bytes().all(is_allowed) && !matches!(segment, "" | "." | "..")
}

/// Read before each request: an agent renews the token.
fn read_token(path: &Path) -> Result<Zeroizing<String>, WrapError> {
    let read = secret_file::read(path);
    let (token, _) = read.map_err(|error| {
        WrapError::KeyManager(format!(
            "cannot read the token for Vault from VOUCHSAFE_VAULT_TOKEN_FILE {}: {error}",
            path.display()
        ))
    })?;
    if token.trim().is_empty() || token.trim().bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Err(WrapError::KeyManager(format!(
            "VOUCHSAFE_VAULT_TOKEN_FILE {} has no token for Vault",
            path.display()
        )));
    }
    Ok(token)
}

async fn read_body(response: &mut Response) -> Result<Zeroizing<Vec<u8>>, reqwest::Error> {
    let mut body = Zeroizing::new(Vec::with_capacity(MAX_RESPONSE_BYTES));
    while let Some(chunk) = response.chunk().await? {
        let room = MAX_RESPONSE_BYTES - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() >= room {
            break;
        }
    }
    Ok(body)
}
