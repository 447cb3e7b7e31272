//! URL of an OTLP collector, and the headers that it expects.

use std::collections::HashMap;
use std::str::FromStr;

use reqwest::Url;

/// Base URL of an OTLP/HTTP collector: scheme, host, port and optional path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorUrl(Url);

/// Why a text is not a collector URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCollectorUrl {
    #[error("expected a URL such as http://127.0.0.1:4318")]
    InvalidUrl,
    /// User, query or fragment. Log lines contain the URL, so it must not hold a password.
    #[error(
        "expected only scheme, host, port and path, such as http://127.0.0.1:4318; put credentials into \
         OTEL_EXPORTER_OTLP_HEADERS"
    )]
    UnexpectedPart,
}

impl CollectorUrl {
    /// The endpoint for spans.
    #[must_use]
    pub fn traces_url(&self) -> String {
        format!("{}/v1/traces", self.0.as_str().trim_end_matches('/'))
    }
}

impl FromStr for CollectorUrl {
    type Err = InvalidCollectorUrl;

    fn from_str(text: &str) -> Result<Self, InvalidCollectorUrl> {
        let url = Url::parse(text).map_err(|_| InvalidCollectorUrl::InvalidUrl)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(InvalidCollectorUrl::InvalidUrl);
        }
        let has_user = !url.username().is_empty() || url.password().is_some();
        if has_user || url.query().is_some() || url.fragment().is_some() {
            return Err(InvalidCollectorUrl::UnexpectedPart);
        }
        Ok(Self(url))
    }
}

/// Parses `name=value,…`. Values stay percent-encoded: the exporter decodes them. `None` if an entry is not
/// of that form.
pub(super) fn parse_headers(text: &str) -> Option<HashMap<String, String>> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            let (name, value) = entry.split_once('=')?;
            Some((name.trim().to_owned(), value.trim().to_owned())).filter(|(name, _)| !name.is_empty())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_names_and_values() {
        let parsed = parse_headers(" authorization = Basic%20YTpi==, x-tenant=7,").unwrap();
        let expected = [("authorization", "Basic%20YTpi=="), ("x-tenant", "7")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parsed, HashMap::from(expected));
        assert_eq!(parse_headers(""), Some(HashMap::new()));
        for text in ["authorization", "=value", "x-tenant=7,authorization"] {
            assert_eq!(parse_headers(text), None, "{text}");
        }
    }

    #[test]
    fn traces_url_appends_the_otlp_path() {
        for (text, traces) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            (
                "https://collect.example/otlp",
                "https://collect.example/otlp/v1/traces",
            ),
            ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
        ] {
            assert_eq!(
                text.parse::<CollectorUrl>().map(|url| url.traces_url()),
                Ok(traces.to_owned())
            );
        }
    }

    #[test]
    fn invalid_collector_url_is_rejected() {
        for (text, expected) in [
            ("", InvalidCollectorUrl::InvalidUrl),
            ("127.0.0.1:4318", InvalidCollectorUrl::InvalidUrl),
            ("grpc://127.0.0.1:4317", InvalidCollectorUrl::InvalidUrl),
            ("http://", InvalidCollectorUrl::InvalidUrl),
            (
                "http://user:word@collect.example",
                InvalidCollectorUrl::UnexpectedPart,
            ),
            ("http://user@collect.example", InvalidCollectorUrl::UnexpectedPart),
            (
                "http://collect.example/?key=word",
                InvalidCollectorUrl::UnexpectedPart,
            ),
            (
                "http://collect.example/#traces",
                InvalidCollectorUrl::UnexpectedPart,
            ),
        ] {
            assert_eq!(text.parse::<CollectorUrl>(), Err(expected), "{text}");
        }
    }
}
