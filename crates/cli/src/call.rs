//! `vouchsafe call`: sends a signed partner request.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use reqwest::Method;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_private_postgres::{SANDBOX_PARTNER_FILE, write_private};
use vouchsafe_security::credential::ApiSecret;
use vouchsafe_security::framing::{API_PREFIX, CanonicalRequest, SignedRequest, Timestamp};
use vouchsafe_security::secret::expose;
use vouchsafe_security::secret_file;
use vouchsafe_security::signature::sign;
use vouchsafe_wire::error_code::Code;

use super::client::{ClientCertificate, TransportOptions, build_client, parse_url};
use super::examples::examples;
use super::exit::UsageError;
use super::{CONNECTION_OPTIONS, CommandOutput, LocalService, print_error};

/// Response headers printed with the status.
const SHOWN_HEADERS: [&str; 4] = ["location", "idempotent-replayed", "retry-after", "x-trace-id"];

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe call GET '/products?currency=EUR'",
    r#"vouchsafe call POST /orders '{"items":[{"product_id":"sbx-slow","denomination":25,"quantity":1}]}'"#,
])]
pub struct CallArgs {
    /// HTTP method, in upper or lower case.
    #[arg(ignore_case = true, value_parser = ["GET", "POST", "PUT", "DELETE"])]
    method: String,

    /// Path under the base URL, e.g. /orders.
    path: String,

    /// Request body: JSON, @FILE, or - for standard input.
    body: Option<String>,

    /// Base URL of the partner API [default: from VOUCHSAFE_HTTP_ADDR].
    #[arg(long, env = "VOUCHSAFE_URL", help_heading = CONNECTION_OPTIONS, value_name = "URL")]
    url: Option<String>,

    /// File with `api_key` and `api_secret`, or with the output of `partner create --json` [default: the
    /// sandbox partner's, in the data directory].
    #[arg(long, help_heading = CONNECTION_OPTIONS, value_name = "FILE")]
    credentials: Option<PathBuf>,

    #[command(flatten)]
    transport: TransportOptions,

    #[command(flatten)]
    certificate: ClientCertificate,

    /// Idempotency-Key of a POST [default: a new one].
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

/// Content of the credentials file. Has no `Debug`, so that it cannot be logged.
#[derive(Deserialize)]
struct Credentials {
    partner_id: Option<String>,
    /// Known if a `call` has rotated the stored credentials.
    expires_at: Option<String>,
    #[serde(deserialize_with = "deserialize_secret")]
    api_key: SecretString,
    #[serde(deserialize_with = "deserialize_secret")]
    api_secret: SecretString,
}

/// Credentials alone, or what `partner create --json` prints.
#[derive(Deserialize)]
#[serde(untagged)]
enum CredentialsFile {
    CreatedPartner { credential: Credentials },
    Credentials(Credentials),
}

fn deserialize_secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from)
}

pub(super) async fn run(
    args: CallArgs,
    json: bool,
    local_service: &LocalService,
) -> anyhow::Result<CommandOutput> {
    let stored_file = local_service.data_dir.join(SANDBOX_PARTNER_FILE);
    let file = args.credentials.as_ref().unwrap_or(&stored_file);
    let credentials = read_credentials(file)?;
    let method: Method = args.method.to_ascii_uppercase().parse().context("METHOD")?;
    let body = args
        .body
        .as_deref()
        .map(read_text)
        .transpose()?
        .unwrap_or_default();
    let base_url = args.url.as_deref().unwrap_or(&local_service.base_url);
    let url = resolve_url(base_url, &args.path)?;
    args.transport.check(&url, "--url")?;
    let mut request = build_client(url.as_str(), &args.certificate)?.request(method.clone(), url.clone());
    request = request.header("X-API-Key", expose(&credentials.api_key));
    request = request.header("X-API-Secret", expose(&credentials.api_secret));
    // The signature does not cover a query string; such requests are sent without one.
    if url.query().is_none() {
        let (timestamp, signature) = sign_request(
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
        print_error(&format!("Idempotency-Key: {key}"));
        request = request.header("Idempotency-Key", key);
    }
    if !body.is_empty() {
        request = request.header("Content-Type", "application/json").body(body);
    }
    let output = send_and_print(request, base_url, json).await?;
    let response: Value = serde_json::from_str(&output.text).unwrap_or_default();
    if let Some(end) = end_of_rotated(&response).filter(|_| args.credentials.is_none()) {
        // A data directory may be read-only; then later calls do not name the end.
        drop(store_end(file, end));
    }
    if let Some(advice) = credential_advice(&response, &credentials, file) {
        print_error(&advice);
    }
    Ok(output)
}

/// When the credentials of a rotation end, from its response.
fn end_of_rotated(response: &Value) -> Option<&str> {
    response.get("api_secret")?;
    response["previous_expires_at"].as_str()
}

/// Adds the end of the stored credentials to their file.
fn store_end(file: &Path, end: &str) -> anyhow::Result<()> {
    let mut stored: Map<String, Value> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    stored.insert("expires_at".to_owned(), end.into());
    write_private(file, &format!("{:#}\n", Value::Object(stored)))
        .with_context(|| format!("write {}", file.display()))
}

/// What to do with the response of a rotation, and with credentials that end or have ended.
fn credential_advice(response: &Value, credentials: &Credentials, file: &Path) -> Option<String> {
    let file = file.display();
    if let Some(end) = end_of_rotated(response) {
        return Some(format!(
            "The new secret is shown only here. Save this response in a file and name it with --credentials FILE.\n\
             {file} still has the old credentials, which end at {end}."
        ));
    }
    if response["error"]["code"] == Code::InvalidCredentials.as_str() {
        let partner_id = credentials.partner_id.as_deref().unwrap_or("PARTNER_ID");
        return Some(format!(
            "The credentials in {file} no longer work: they were rotated or revoked, or belong to another service.\n\
             Name others with --credentials FILE, or issue new ones:\n  \
             vouchsafe credential issue {partner_id} --json > FILE"
        ));
    }
    let end = credentials.expires_at.as_ref()?;
    Some(format!(
        "The credentials in {file} were rotated and end at {end}. Name the new ones with --credentials FILE."
    ))
}

/// Prints status and headers to standard error, the body to standard output.
async fn send_and_print(
    request: reqwest::RequestBuilder,
    url: &str,
    body_alone: bool,
) -> anyhow::Result<CommandOutput> {
    let response = request
        .send()
        .await
        .map_err(|error| super::client::unreachable_error(&error, url, "--url"))?;
    let status = response.status();
    if !body_alone {
        print_error(&status.to_string());
        for name in SHOWN_HEADERS {
            if let Some(value) = response.headers().get(name).and_then(|value| value.to_str().ok()) {
                print_error(&format!("{name}: {value}"));
            }
        }
    }
    let text = response
        .text()
        .await
        .map_err(|error| super::client::unreachable_error(&error, url, "--url"))?;
    Ok(CommandOutput {
        text,
        succeeded: status.as_u16() < 400,
    })
}

/// `None` if the text has no credentials. The parser's error, which may quote a secret, is left out.
fn parse_credentials(text: &str) -> Option<Credentials> {
    Some(match serde_json::from_str(text).ok()? {
        CredentialsFile::CreatedPartner { credential } => credential,
        CredentialsFile::Credentials(credentials) => credentials,
    })
}

fn read_credentials(path: &Path) -> anyhow::Result<Credentials> {
    let (text, exposed) = secret_file::read(path).with_context(|| {
        format!(
            "cannot read credentials from {}; start a sandbox to create them, or name others with \
            --credentials",
            path.display()
        )
    })?;
    super::warn_of(exposed.as_ref());
    parse_credentials(&text)
        .with_context(|| format!("{} does not contain api_key and api_secret", path.display()))
}

/// Joins a path to the base URL. The path may repeat the base's own path, which defaults to the API prefix.
fn resolve_url(base: &str, path: &str) -> anyhow::Result<reqwest::Url> {
    let base = parse_url(base, "--url")?;
    let base_path = base.path().trim_matches('/');
    let prefix = if base_path.is_empty() {
        API_PREFIX.trim_matches('/')
    } else {
        base_path
    };
    let path = path.trim_start_matches('/');
    let below = path
        .strip_prefix(prefix)
        .map_or(path, |below| below.trim_start_matches('/'));
    let url = base.join(&format!("/{prefix}/{below}"));
    Ok(url.map_err(|_| UsageError(format!("{path}: expected a path such as /orders")))?)
}

fn sign_request(
    secret: &SecretString,
    method: &str,
    path: &str,
    body: &[u8],
) -> anyhow::Result<(String, String)> {
    let secret = ApiSecret::parse(expose(secret).as_bytes()).context("api_secret")?;
    let timestamp =
        Timestamp::from_unix_s(SystemClock::new().now().unix_timestamp()).context("read the system clock")?;
    let framed = CanonicalRequest::new(timestamp, SignedRequest { method, path, body });
    let framed = framed.map_err(|_| {
        UsageError(
            "cannot sign the request: the body must be empty or a JSON object, and the path without special characters"
                .to_owned(),
        )
    })?;
    let digits = String::from_utf8_lossy(timestamp.digits()).into_owned();
    Ok((digits, sign(&secret, timestamp, &framed)))
}

/// Returns the argument itself, the content of @FILE, or standard input for `-`.
pub(super) fn read_text(argument: &str) -> anyhow::Result<String> {
    if argument == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("read standard input")?;
        return Ok(text);
    }
    let Some(path) = argument.strip_prefix('@') else {
        return Ok(argument.to_owned());
    };
    if path.is_empty() {
        bail!("expected a file name after @, such as @order.json");
    }
    std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_resolves_with_and_without_prefix() {
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
            assert_eq!(resolve_url(base, path).unwrap().as_str(), expected, "{path}");
            assert_eq!(
                resolve_url(&format!("{base}/"), path).unwrap().as_str(),
                expected,
                "{path}"
            );
        }
        assert_eq!(
            resolve_url("http://h:1", "/orders").unwrap().as_str(),
            "http://h:1/api/v1/orders"
        );
        assert!(resolve_url("nowhere", "/orders").is_err());
    }

    #[test]
    fn file_has_credentials_or_a_created_partner() {
        let credential = r#"{"credential_id":"cred_1","api_key":"k","api_secret":"s","partner_id":"ptn_1"}"#;
        let created = format!(r#"{{"partner_id":"ptn_1","name":"Example","credential":{credential}}}"#);
        for file in [credential, &created] {
            let credentials = parse_credentials(file).expect(file);
            assert_eq!(
                (expose(&credentials.api_key), expose(&credentials.api_secret)),
                ("k", "s")
            );
        }
        for file in [r#"{"partner_id":"ptn_1","credential":null}"#, "{}", "no JSON"] {
            assert!(parse_credentials(file).is_none(), "{file}");
        }
    }

    #[test]
    fn signature_contains_timestamp() {
        let secret = SecretString::from(format!("vss_{}", "ab".repeat(32)));
        let (timestamp, signature) = sign_request(&secret, "POST", "/api/v1/orders", b"{}").unwrap();
        assert!(signature.starts_with(&format!("t={timestamp},v1=")) && signature.len() == 2 + 10 + 4 + 64);
        assert!(sign_request(&secret, "POST", "/api/v1/orders", b"no object").is_err());
    }
}
