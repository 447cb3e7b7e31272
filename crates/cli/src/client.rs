//! HTTP client of the commands: timeouts, and messages for unreachable services and error responses.

use std::fmt;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use reqwest::header::HeaderValue;
use reqwest::{Client, Identity, RequestBuilder, StatusCode, Url};
use serde::Deserialize;
use vouchsafe_http_client::causes;
use vouchsafe_security::secret_file;
use vouchsafe_security::secure_url::is_loopback;
use vouchsafe_wire::error_body::ErrorDetail;

use super::advice::find_advice;
use super::exit::{UnreachableError, UsageError};
use super::{CONNECTION_OPTIONS, warn_of};

/// The service is on the same machine or network.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest pause of a response: an import responds after its last commit.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// The certificate with which a command identifies itself to a listener that asks for one.
#[derive(Debug, Clone, Args)]
pub(super) struct ClientCertificate {
    /// PEM file with the certificate and private key for a listener that requires client certificates
    /// [default: none].
    #[arg(
        long,
        global = true,
        help_heading = CONNECTION_OPTIONS,
        env = "VOUCHSAFE_CLIENT_CERTIFICATE_FILE",
        value_name = "FILE"
    )]
    client_certificate_file: Option<PathBuf>,
}

/// Builds a client for this URL.
pub(super) fn build_client(url: &str, certificate: &ClientCertificate) -> anyhow::Result<Client> {
    let mut builder = vouchsafe_http_client::client_builder(url)?
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(IDLE_TIMEOUT);
    if let Some(path) = &certificate.client_certificate_file
        && url.starts_with("https:")
    {
        let (text, exposed) = secret_file::read(path)
            .with_context(|| format!("read the client certificate {}", path.display()))?;
        warn_of(exposed.as_ref());
        let identity = Identity::from_pem(text.as_bytes()).map_err(|_| {
            UsageError(format!(
                "{} has no certificate with its private key in PEM format",
                path.display()
            ))
        })?;
        builder = builder.identity(identity);
    }
    builder.build().context("build the HTTP client")
}

/// Parses the URL of an option.
pub(super) fn parse_url(text: &str, option: &str) -> Result<Url, UsageError> {
    let url = Url::parse(text).ok().filter(|url| url.has_host());
    url.ok_or_else(|| {
        UsageError(format!(
            "{option} {text}: expected a URL such as http://127.0.0.1:8081"
        ))
    })
}

/// Option that permits secrets over plain HTTP.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct TransportOptions {
    /// Send secrets over plain HTTP to another machine, where the network can read them.
    #[arg(
        long,
        global = true,
        help_heading = CONNECTION_OPTIONS,
        env = "VOUCHSAFE_INSECURE_HTTP"
    )]
    insecure_http: bool,
}

impl TransportOptions {
    /// Refuses to send a secret over plain HTTP to another machine.
    pub(super) fn check(self, url: &Url, option: &str) -> Result<(), UsageError> {
        if url.scheme() != "http" || is_loopback(url) || self.insecure_http {
            return Ok(());
        }
        Err(UsageError(format!(
            "{option} {url}: the network could read the secret in this request; use an https URL or a tunnel to 127.0.0.1, or \
             permit it with --insecure-http"
        )))
    }
}

/// A complete response.
pub(super) struct ApiResponse {
    pub(super) status: StatusCode,
    pub(super) replayed: bool,
    pub(super) body: String,
}

pub(super) async fn send(request: RequestBuilder, url: &str, option: &str) -> anyhow::Result<ApiResponse> {
    let response = request
        .send()
        .await
        .map_err(|error| unreachable_error(&error, url, option))?;
    let status = response.status();
    if let Some(Ok(lag)) = response
        .headers()
        .get("vouchsafe-replica-lag")
        .map(HeaderValue::to_str)
    {
        // Standard error may be closed.
        drop(writeln!(
            io::stderr(),
            "read from a standby that is {lag} s behind"
        ));
    }
    let replayed = response.headers().contains_key("idempotent-replayed");
    let body = response
        .text()
        .await
        .map_err(|error| unreachable_error(&error, url, option))?;
    Ok(ApiResponse {
        status,
        replayed,
        body,
    })
}

pub(super) fn unreachable_error(error: &reqwest::Error, url: &str, option: &str) -> UnreachableError {
    let reasons: Vec<String> = causes(error).map(ToString::to_string).collect();
    if error.is_connect() {
        let reason = reasons
            .last()
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        return UnreachableError(format!(
            "cannot connect to {url}{reason}. Is the service running? Start it with `vouchsafe serve`, or \
             name another URL with {option}"
        ));
    }
    UnreachableError(format!(
        "no response from {url}; the request may have been carried out: {}",
        reasons.last().cloned().unwrap_or_else(|| error.to_string())
    ))
}

/// An error response of the service.
#[derive(Debug)]
pub(super) struct ErrorResponse {
    status: StatusCode,
    body: String,
    json: bool,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorFields,
}

#[derive(Deserialize)]
struct ErrorFields {
    code: String,
    message: String,
    #[serde(default)]
    details: Vec<ErrorDetail>,
}

impl ErrorResponse {
    pub(super) const fn new(status: StatusCode, body: String, json: bool) -> Self {
        Self { status, body, json }
    }

    /// The body, if `--json` was given.
    pub(super) fn raw_body(&self) -> Option<&str> {
        self.json.then_some(self.body.as_str())
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(ErrorBody { error }) = serde_json::from_str(&self.body) else {
            return write!(f, "unexpected response: {}", self.status);
        };
        write!(f, "{} ({})", error.message, error.code)?;
        // A single detail repeats the message.
        if error.details.len() > 1 {
            for detail in &error.details {
                write!(f, "\n  {}: {}", detail.field, detail.message)?;
            }
        }
        let fields = error.details.iter().map(|detail| detail.field.as_str());
        match find_advice(&error.code, fields) {
            Some(advice) => write!(f, "\n{advice}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ErrorResponse {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_response_shows_details_and_hint() {
        let body = r#"{"error":{"name":"ValidationFailed","code":"VALIDATION_FAILED","message":"name: x","retryable":false,
            "details":[{"field":"name","message":"x"},{"field":"brand","message":"y"}],"trace_id":"t"}}"#;
        let response = ErrorResponse::new(StatusCode::UNPROCESSABLE_ENTITY, body.to_owned(), false);
        assert_eq!(
            response.to_string(),
            "name: x (VALIDATION_FAILED)\n  name: x\n  brand: y"
        );
        assert_eq!(response.raw_body(), None);
        for (body, expected) in [
            (
                r#"{"error":{"code":"PARTNER_NOT_FOUND","message":"there is none"}}"#,
                "there is none (PARTNER_NOT_FOUND)\n`vouchsafe partner list` lists",
            ),
            (
                r#"{"error":{"code":"VALIDATION_FAILED","message":"m","details":[{"field":"category_id","message":"m"}]}}"#,
                "m (VALIDATION_FAILED)\n`vouchsafe category list` lists",
            ),
        ] {
            let text = ErrorResponse::new(StatusCode::NOT_FOUND, body.to_owned(), false).to_string();
            assert!(text.starts_with(expected), "{text}");
        }
        let other = ErrorResponse::new(StatusCode::BAD_GATEWAY, "<html>".to_owned(), true);
        assert_eq!(
            (other.to_string().as_str(), other.raw_body()),
            ("unexpected response: 502 Bad Gateway", Some("<html>"))
        );
    }

    #[test]
    fn secret_over_plain_http_to_another_machine_is_refused() {
        let check = |url: &str, insecure_http| {
            let options = TransportOptions { insecure_http };
            options.check(&parse_url(url, "--admin-url").unwrap(), "--admin-url")
        };
        for url in [
            "https://vouchsafe.example",
            "http://127.0.0.1:8081",
            "http://localhost:8081",
            "http://[::1]:8081",
        ] {
            assert!(check(url, false).is_ok(), "{url}");
        }
        for url in [
            "http://10.0.0.7:8081",
            "http://vouchsafe.example",
            "http://localhost.example",
            "http://0.0.0.0:8081",
            "http://[2001:db8::1]:8081",
        ] {
            let refused = check(url, false).unwrap_err().to_string();
            assert!(refused.contains("--insecure-http"), "{refused}");
            assert!(check(url, true).is_ok(), "{url}");
        }
    }

    #[test]
    fn plain_http_client_needs_no_certificates() {
        let none = ClientCertificate {
            client_certificate_file: None,
        };
        assert!(build_client("http://127.0.0.1:8081", &none).is_ok());
    }
}
