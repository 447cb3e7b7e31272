//! Parsed base URL: address, `Host` header and path prefix.

use std::fmt;

use hyper::Uri;
use hyper::header::HeaderValue;

/// The base URL does not have the form `http://HOST:PORT/PREFIX`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a URL of the form http://HOST:PORT/PREFIX")]
pub struct UrlError(String);

/// Host, port and path prefix of the service.
#[derive(Clone, Debug)]
pub struct Origin {
    host: String,
    port: u16,
    host_header: HeaderValue,
    prefix: String,
}

impl Origin {
    /// Parses a base URL such as `http://127.0.0.1:8080/api/v1`. TLS is not supported: the generator runs on
    /// the machine of the service.
    ///
    /// # Errors
    /// [`UrlError`] if the URL has another form.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        let invalid = || UrlError(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| invalid())?;
        let authority = uri.authority().ok_or_else(invalid)?;
        if uri.scheme_str() != Some("http") || uri.query().is_some() || authority.as_str().contains('@') {
            return Err(invalid());
        }
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(80),
            host_header: HeaderValue::from_str(authority.as_str()).map_err(|_| invalid())?,
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// Adds the prefix: `/orders` becomes `/api/v1/orders`.
    #[must_use]
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Host and port for connecting.
    #[must_use]
    pub fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// Value of the `Host` header.
    pub(crate) fn host_header(&self) -> &HeaderValue {
        &self.host_header
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.host_header.to_str().unwrap_or(&self.host);
        write!(f, "http://{host}{}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_is_split_into_host_port_and_prefix() {
        let origin = Origin::parse("http://127.0.0.1:8080/api/v1/").unwrap();
        assert_eq!((origin.host.as_str(), origin.port), ("127.0.0.1", 8080));
        assert_eq!(origin.path("/orders"), "/api/v1/orders");
        assert_eq!(origin.host_header, "127.0.0.1:8080");
        assert_eq!(origin.to_string(), "http://127.0.0.1:8080/api/v1");
        assert_eq!(Origin::parse("http://[::1]:9/").unwrap().host, "::1");
    }

    #[test]
    fn unsupported_urls_are_rejected() {
        for url in [
            "127.0.0.1:8080",
            "https://127.0.0.1/",
            "http://a@b/",
            "http://h/?x=1",
            "",
            "/api/v1",
        ] {
            assert!(Origin::parse(url).is_err(), "{url}");
        }
    }
}
