//! How do commands send, and what do they say when nothing or nothing good comes back?

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde::Deserialize;

use super::advice::advice;
use super::exit::{Misuse, Unreachable};
use crate::outgoing;

/// How long a connection may take to stand: the service is near, or it is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an answer may pause. An import answers after its last commit, so this is not for the whole.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// A client for this URL.
pub(super) fn client(url: &str) -> anyhow::Result<Client> {
    let builder = outgoing::client_for(url)?
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(IDLE_TIMEOUT);
    builder.build().context("make an HTTP client")
}

/// The URL that an option names.
pub(super) fn read_url(text: &str, option: &str) -> Result<Url, Misuse> {
    let url = Url::parse(text).ok().filter(|url| url.has_host());
    url.ok_or_else(|| {
        Misuse(format!(
            "{option} {text}: expected a URL such as http://127.0.0.1:8081"
        ))
    })
}

/// An answer, whole.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) replayed: bool,
    pub(super) body: String,
}

/// Sends and reads the answer.
pub(super) async fn send(request: RequestBuilder, url: &str, option: &str) -> anyhow::Result<Answer> {
    let response = request
        .send()
        .await
        .map_err(|error| unreachable(&error, url, option))?;
    let status = response.status();
    let replayed = response.headers().contains_key("idempotent-replayed");
    let body = response
        .text()
        .await
        .map_err(|error| unreachable(&error, url, option))?;
    Ok(Answer {
        status,
        replayed,
        body,
    })
}

pub(super) fn unreachable(error: &reqwest::Error, url: &str, option: &str) -> Unreachable {
    if error.is_connect() {
        return Unreachable(format!(
            "nothing answers at {url}. Is the service running? `vouchsafe serve` starts it; {option} names another place"
        ));
    }
    let mut reasons = Vec::new();
    let mut source = std::error::Error::source(error);
    while let Some(reason) = source {
        reasons.push(reason.to_string());
        source = reason.source();
    }
    Unreachable(format!(
        "the request to {url} got no answer, and may have been carried out: {}",
        reasons.last().cloned().unwrap_or_else(|| error.to_string())
    ))
}

/// An answer that says no.
#[derive(Debug)]
pub(super) struct Refusal {
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

#[derive(Deserialize)]
struct ErrorDetail {
    field: String,
    message: String,
}

impl Refusal {
    pub(super) const fn new(status: StatusCode, body: String, json: bool) -> Self {
        Self { status, body, json }
    }

    /// The answer as it came, where that was asked for.
    pub(super) fn raw(&self) -> Option<&str> {
        self.json.then_some(self.body.as_str())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(ErrorBody { error }) = serde_json::from_str(&self.body) else {
            return write!(f, "the answer was {}", self.status);
        };
        write!(f, "{} ({})", error.message, error.code)?;
        // One fault is the message already.
        if error.details.len() > 1 {
            for detail in &error.details {
                write!(f, "\n  {}: {}", detail.field, detail.message)?;
            }
        }
        let fields = error.details.iter().map(|detail| detail.field.as_str());
        match advice(&error.code, fields) {
            Some(advice) => write!(f, "\n{advice}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_tells_its_faults() {
        let body = r#"{"error":{"name":"ValidationFailed","code":"VALIDATION_FAILED","message":"name: x","retryable":false,
            "details":[{"field":"name","message":"x"},{"field":"brand","message":"y"}],"trace_id":"t"}}"#;
        let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, body.to_owned(), false);
        assert_eq!(
            refusal.to_string(),
            "name: x (VALIDATION_FAILED)\n  name: x\n  brand: y"
        );
        assert_eq!(refusal.raw(), None);
        for (body, expected) in [
            (
                r#"{"error":{"code":"PARTNER_NOT_FOUND","message":"there is none"}}"#,
                "there is none (PARTNER_NOT_FOUND)\n`vouchsafe partner list` shows",
            ),
            (
                r#"{"error":{"code":"VALIDATION_FAILED","message":"m","details":[{"field":"category_id","message":"m"}]}}"#,
                "m (VALIDATION_FAILED)\n`vouchsafe category list` shows",
            ),
        ] {
            let said = Refusal::new(StatusCode::NOT_FOUND, body.to_owned(), false).to_string();
            assert!(said.starts_with(expected), "{said}");
        }
        let other = Refusal::new(StatusCode::BAD_GATEWAY, "<html>".to_owned(), true);
        assert_eq!(
            (other.to_string().as_str(), other.raw()),
            ("the answer was 502 Bad Gateway", Some("<html>"))
        );
    }

    #[test]
    fn a_client_for_plain_http_needs_no_certificates() {
        assert!(client("http://127.0.0.1:8081").is_ok());
    }
}
