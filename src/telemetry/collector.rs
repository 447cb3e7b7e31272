//! Who collects spans? The one parse function of its address.

use std::str::FromStr;

use reqwest::Url;

/// The address of a collector that speaks OTLP over HTTP: scheme, host, port, and a path if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorUrl(Url);

/// Why a text is not the address of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoCollector {
    #[error("expected a URL such as http://127.0.0.1:4318")]
    NoUrl,
    /// It has what an address of a collector has not. A password would be in each line that names it.
    #[error(
        "expected scheme, host, port and path alone, such as http://127.0.0.1:4318; what authenticates goes into \
         OTEL_EXPORTER_OTLP_HEADERS"
    )]
    TooMuch,
}

impl CollectorUrl {
    /// Where it takes spans.
    #[must_use]
    pub fn traces(&self) -> String {
        format!("{}/v1/traces", self.0.as_str().trim_end_matches('/'))
    }
}

impl FromStr for CollectorUrl {
    type Err = NoCollector;

    fn from_str(text: &str) -> Result<Self, NoCollector> {
        let url = Url::parse(text).map_err(|_| NoCollector::NoUrl)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(NoCollector::NoUrl);
        }
        let says_who = !url.username().is_empty() || url.password().is_some();
        if says_who || url.query().is_some() || url.fragment().is_some() {
            return Err(NoCollector::TooMuch);
        }
        Ok(Self(url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_have_a_path_of_their_own() {
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
                text.parse::<CollectorUrl>().map(|url| url.traces()),
                Ok(traces.to_owned())
            );
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for (text, why) in [
            ("", NoCollector::NoUrl),
            ("127.0.0.1:4318", NoCollector::NoUrl),
            ("grpc://127.0.0.1:4317", NoCollector::NoUrl),
            ("http://", NoCollector::NoUrl),
            ("http://user:word@collect.example", NoCollector::TooMuch),
            ("http://user@collect.example", NoCollector::TooMuch),
            ("http://collect.example/?key=word", NoCollector::TooMuch),
            ("http://collect.example/#traces", NoCollector::TooMuch),
        ] {
            assert_eq!(text.parse::<CollectorUrl>(), Err(why), "{text}");
        }
    }
}
