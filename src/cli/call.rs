//! `vouchsafe call`: a partner's request, signed as a partner signs it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use reqwest::Method;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use vouchsafe_actors::domain::clock::{Clock as _, SystemClock};

use super::client::{client, read_url};
use super::complain;
use super::examples::examples;
use super::exit::Misuse;
use super::{Nearby, Outcome};
use crate::access::credential::ApiSecret;
use crate::access::framing::{API_PREFIX, Framed, SignedRequest, Timestamp};
use crate::access::signature::sign;
use crate::sandbox::PARTNER_FILE;
use crate::secrets::expose;

/// Headers of the answer that are told beside its status.
const TOLD: [&str; 4] = ["location", "idempotent-replayed", "retry-after", "x-trace-id"];

/// Arguments of `vouchsafe call`.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe call GET '/products?currency=EUR'",
    r#"vouchsafe call POST /orders '{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}'"#,
])]
pub struct CallArgs {
    /// What to do with it, in upper or lower case.
    #[arg(ignore_case = true, value_parser = ["GET", "POST", "PUT", "DELETE"])]
    method: String,

    /// The path below the base URL, e.g. /orders.
    path: String,

    /// The body: JSON, @FILE, or - for the standard input.
    body: Option<String>,

    /// Where partners are served. Unset: at VOUCHSAFE_HTTP_ADDR.
    #[arg(long, env = "VOUCHSAFE_URL", value_name = "URL")]
    url: Option<String>,

    /// A file with `api_key` and `api_secret`. Unset: the sandbox partner's in the data directory.
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,

    /// The Idempotency-Key of a POST. Unset: a new one.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Show the answer's body alone, without its status and headers.
    #[arg(long)]
    json: bool,
}

/// What the file of credentials says. It has no `Debug` text.
#[derive(Deserialize)]
struct Credentials {
    #[serde(deserialize_with = "secret")]
    api_key: SecretString,
    #[serde(deserialize_with = "secret")]
    api_secret: SecretString,
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from)
}

/// Runs `vouchsafe call`.
pub(super) async fn run(args: CallArgs, nearby: &Nearby) -> anyhow::Result<Outcome> {
    let credentials = read_credentials(
        args.credentials
            .unwrap_or_else(|| nearby.data_dir.join(PARTNER_FILE))
            .as_path(),
    )?;
    let method: Method = args.method.to_ascii_uppercase().parse().context("METHOD")?;
    let body = args
        .body
        .as_deref()
        .map(read_text)
        .transpose()?
        .unwrap_or_default();
    let base_url = args.url.as_deref().unwrap_or(&nearby.base_url);
    let url = url_of(base_url, &args.path)?;
    let mut request = client(url.as_str())?.request(method.clone(), url.clone());
    request = request.header("X-API-Key", expose(&credentials.api_key));
    request = request.header("X-API-Secret", expose(&credentials.api_secret));
    // A query is not covered by the signature; what has one is read without.
    if url.query().is_none() {
        let (timestamp, signature) = signed(
            &credentials.api_secret,
            method.as_str(),
            url.path(),
            body.as_bytes(),
        )?;
        request = request
            .header("X-Timestamp", timestamp)
            .header("X-Signature", signature);
    }
    if method == Method::POST {
        let key = args.key.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        complain(&format!("Idempotency-Key: {key}"));
        request = request.header("Idempotency-Key", key);
    }
    if !body.is_empty() {
        request = request.header("Content-Type", "application/json").body(body);
    }
    tell(request, base_url, args.json).await
}

/// The status and some headers to the standard error, the body to the standard output.
async fn tell(request: reqwest::RequestBuilder, url: &str, body_alone: bool) -> anyhow::Result<Outcome> {
    let response = request
        .send()
        .await
        .map_err(|error| super::client::unreachable(&error, url, "--url"))?;
    let status = response.status();
    if !body_alone {
        complain(&status.to_string());
        for name in TOLD {
            if let Some(value) = response.headers().get(name).and_then(|value| value.to_str().ok()) {
                complain(&format!("{name}: {value}"));
            }
        }
    }
    let text = response
        .text()
        .await
        .map_err(|error| super::client::unreachable(&error, url, "--url"))?;
    Ok(Outcome {
        text,
        done: status.as_u16() < 400,
    })
}

fn read_credentials(path: &Path) -> anyhow::Result<Credentials> {
    let text = std::fs::read_to_string(path).with_context(|| {
        format!("cannot read credentials from {}; the first start of a sandbox makes them, or name others with --credentials", path.display())
    })?;
    // The parser's words may quote a secret.
    serde_json::from_str(&text)
        .ok()
        .with_context(|| format!("{} holds no api_key and api_secret", path.display()))
}

/// A path below the base URL, with or without the base's own path before it. A base without a path has that of the API.
fn url_of(base: &str, path: &str) -> anyhow::Result<reqwest::Url> {
    let base = read_url(base, "--url")?;
    let own = base.path().trim_matches('/');
    let prefix = if own.is_empty() {
        API_PREFIX.trim_matches('/')
    } else {
        own
    };
    let path = path.trim_start_matches('/');
    let below = path
        .strip_prefix(prefix)
        .map_or(path, |below| below.trim_start_matches('/'));
    let url = base.join(&format!("/{prefix}/{below}"));
    Ok(url.map_err(|_| Misuse(format!("{path}: expected a path such as /orders")))?)
}

/// `X-Timestamp` and `X-Signature`.
fn signed(secret: &SecretString, method: &str, path: &str, body: &[u8]) -> anyhow::Result<(String, String)> {
    let secret = ApiSecret::parse(expose(secret).as_bytes()).context("api_secret")?;
    let timestamp =
        Timestamp::from_unix_s(SystemClock::new().now().unix_timestamp()).context("this machine's clock")?;
    let framed = Framed::new(timestamp, SignedRequest { method, path, body });
    let framed = framed.map_err(|_| {
        Misuse(
            "the request cannot be signed: a body is empty or a JSON object, a path has no special characters"
                .to_owned(),
        )
    })?;
    let digits = String::from_utf8_lossy(timestamp.digits()).into_owned();
    Ok((digits, sign(&secret, timestamp, &framed)))
}

/// A text as it was given, or that of @FILE, or of the standard input for `-`.
pub(super) fn read_text(argument: &str) -> anyhow::Result<String> {
    if argument == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("read the standard input")?;
        return Ok(text);
    }
    let Some(path) = argument.strip_prefix('@') else {
        return Ok(argument.to_owned());
    };
    if path.is_empty() {
        bail!("@ names a file: @order.json");
    }
    std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_with_and_without_the_prefix() {
        let base = "http://127.0.0.1:8080/api/v1";
        for (path, expected) in [
            ("/orders", "http://127.0.0.1:8080/api/v1/orders"),
            ("orders", "http://127.0.0.1:8080/api/v1/orders"),
            ("/api/v1/orders", "http://127.0.0.1:8080/api/v1/orders"),
            (
                "/products?currency=USD",
                "http://127.0.0.1:8080/api/v1/products?currency=USD",
            ),
        ] {
            assert_eq!(url_of(base, path).unwrap().as_str(), expected, "{path}");
            assert_eq!(
                url_of(&format!("{base}/"), path).unwrap().as_str(),
                expected,
                "{path}"
            );
        }
        assert_eq!(
            url_of("http://h:1", "/orders").unwrap().as_str(),
            "http://h:1/api/v1/orders"
        );
        assert!(url_of("nowhere", "/orders").is_err());
    }

    #[test]
    fn a_signature_names_its_timestamp() {
        let secret = SecretString::from(format!("vss_{}", "ab".repeat(32)));
        let (timestamp, signature) = signed(&secret, "POST", "/api/v1/orders", b"{}").unwrap();
        assert!(signature.starts_with(&format!("t={timestamp},v1=")) && signature.len() == 2 + 10 + 4 + 64);
        assert!(signed(&secret, "POST", "/api/v1/orders", b"no object").is_err());
    }
}
