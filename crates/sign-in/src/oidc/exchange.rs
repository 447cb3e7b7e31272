//! One HTTP request to the provider, with a limit on the length of the response.

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{RequestBuilder, StatusCode};

use super::error::OidcError;

/// Longest body of the provider; key sets have some kilobytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;

pub(super) const JSON: &str = "application/json";

/// Media type of a key set (RFC 7517).
pub(super) const JWK_SET: &str = "application/jwk-set+json";

/// Media type of signed claims (RFC 7519).
pub(super) const JWT: &str = "application/jwt";

/// A response of the provider. Has no `Debug`: the body may contain tokens.
pub(super) struct ProviderResponse {
    pub(super) status: StatusCode,
    /// Lower case without parameters; JSON if the header is absent.
    pub(super) media_type: String,
    pub(super) body: Vec<u8>,
}

impl ProviderResponse {
    /// Whether this is a 200 with one of these media types.
    pub(super) fn is_ok_with(&self, media_types: &[&str]) -> bool {
        self.status == StatusCode::OK && media_types.contains(&self.media_type.as_str())
    }

    /// Does not quote the body, which may contain tokens or data of the person.
    pub(super) fn unexpected(&self, endpoint: &str) -> OidcError {
        let status = self.status.as_u16();
        OidcError::Unavailable(format!(
            "unexpected response of the {endpoint} endpoint, with status {status}"
        ))
    }
}

/// Why a request to the provider failed.
#[derive(Debug, thiserror::Error)]
enum ExchangeError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("the response is longer than {MAX_BODY_BYTES} bytes")]
    TooLong,
}

pub(super) async fn exchange(request: RequestBuilder) -> Result<ProviderResponse, OidcError> {
    try_exchange(request)
        .await
        .map_err(|error| OidcError::unavailable(&error))
}

async fn try_exchange(request: RequestBuilder) -> Result<ProviderResponse, ExchangeError> {
    let mut response = request.send().await?;
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await? {
        if body.len() + part.len() > MAX_BODY_BYTES {
            return Err(ExchangeError::TooLong);
        }
        body.extend_from_slice(&part);
    }
    Ok(ProviderResponse {
        status: response.status(),
        media_type: media_type(response.headers()),
        body,
    })
}

fn media_type(headers: &HeaderMap) -> String {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return JSON.to_owned();
    };
    // A value that is not ASCII is none of the expected ones.
    let value = value.to_str().unwrap_or_default();
    let essence = value.split_once(';').map_or(value, |(essence, _)| essence);
    essence.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn media_type_has_no_parameters_and_defaults_to_json() {
        for (value, expected) in [
            (None, JSON),
            (Some(&b"application/json"[..]), JSON),
            (Some(b"Application/JSON; charset=utf-8"), JSON),
            (Some(b"application/jwt ;a=b"), JWT),
            (Some(b"application/jsonp"), "application/jsonp"),
            (Some(b""), ""),
            (Some(b"application/json\xe9"), ""),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(CONTENT_TYPE, HeaderValue::from_bytes(value).unwrap());
            }
            assert_eq!(media_type(&headers), expected, "{value:?}");
        }
    }
}
