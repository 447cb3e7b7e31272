//! Request signing (contract §2): API key, API secret, timestamp, and HMAC-SHA256 of timestamp ‖ method ‖
//! path ‖ body, keyed with the API secret.
//!
//! The time is a parameter, so that tests can sign for the past and the future.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

/// Header with the API key.
pub const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Header with the API secret.
pub const API_SECRET: HeaderName = HeaderName::from_static("x-api-secret");
/// Header with the Unix time of the signature in seconds.
pub const TIMESTAMP: HeaderName = HeaderName::from_static("x-timestamp");
/// Header with `t=<timestamp>,v1=<hex>`.
pub const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");

/// Hex digits of an HMAC-SHA256.
const MAC_HEX_LEN: usize = 64;

/// API key and secret.
///
/// Holds the keyed HMAC state: deriving it costs as much as signing a short message.
#[derive(Clone)]
pub struct Credentials {
    api_key: HeaderValue,
    api_secret: HeaderValue,
    keyed: Hmac<Sha256>,
}

/// Key or secret contains a character that is invalid in an HTTP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API key or secret is not a valid header value")]
pub struct CredentialEncodingError;

impl Credentials {
    /// Creates credentials from an API key and its secret.
    ///
    /// # Errors
    /// [`CredentialEncodingError`] if one of them is not a valid header value.
    pub fn new(api_key: &str, api_secret: &str) -> Result<Self, CredentialEncodingError> {
        let key = HeaderValue::from_str(api_key).map_err(|_| CredentialEncodingError)?;
        let mut secret = HeaderValue::from_str(api_secret).map_err(|_| CredentialEncodingError)?;
        secret.set_sensitive(true);
        let Ok(keyed) = Hmac::new_from_slice(api_secret.as_bytes()) else {
            unreachable!("HMAC accepts keys of any length")
        };
        Ok(Self {
            api_key: key,
            api_secret: secret,
            keyed,
        })
    }

    /// Signs a request at `unix_seconds`. `path` is the absolute path of the request line (`/api/v1/orders`),
    /// `body` the exact bytes.
    #[must_use]
    pub fn sign(&self, method: &str, path: &str, body: &[u8], unix_seconds: u64) -> SignedHeaders {
        let timestamp = HeaderValue::from(unix_seconds);
        let mut signature = Vec::with_capacity("t=".len() + timestamp.len() + ",v1=".len() + MAC_HEX_LEN);
        signature.extend_from_slice(b"t=");
        signature.extend_from_slice(timestamp.as_bytes());
        signature.extend_from_slice(b",v1=");
        signature.extend_from_slice(&self.mac_hex(timestamp.as_bytes(), method, path, body));
        let Ok(signature) = HeaderValue::try_from(signature) else {
            unreachable!("digits and hex are a valid header value")
        };
        let (api_key, api_secret) = (self.api_key.clone(), self.api_secret.clone());
        SignedHeaders {
            api_key,
            api_secret,
            timestamp,
            signature,
        }
    }

    /// The `v1` value for any timestamp text, for tests of invalid signatures.
    #[must_use]
    pub fn signature_hex(&self, timestamp: &str, method: &str, path: &str, body: &[u8]) -> String {
        let digits = self.mac_hex(timestamp.as_bytes(), method, path, body);
        digits.iter().map(|digit| char::from(*digit)).collect()
    }

    /// Adds API key and secret, which every request needs, signed or not.
    pub fn insert_api_headers(&self, headers: &mut HeaderMap) {
        headers.insert(API_KEY, self.api_key.clone());
        headers.insert(API_SECRET, self.api_secret.clone());
    }

    fn mac_hex(&self, timestamp: &[u8], method: &str, path: &str, body: &[u8]) -> [u8; MAC_HEX_LEN] {
        let mut mac = self.keyed.clone();
        mac.update(timestamp);
        mac.update(method.as_bytes());
        mac.update(path.as_bytes());
        mac.update(body);
        let mut digits = [0; MAC_HEX_LEN];
        let Ok(()) = hex::encode_to_slice(mac.finalize().into_bytes(), &mut digits) else {
            unreachable!("32 bytes have 64 hex digits")
        };
        digits
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials { api_key: ***, api_secret: *** }")
    }
}

/// The four authentication headers of one signed request.
#[derive(Clone, Debug)]
pub struct SignedHeaders {
    api_key: HeaderValue,
    api_secret: HeaderValue,
    timestamp: HeaderValue,
    signature: HeaderValue,
}

impl SignedHeaders {
    /// Sets the four headers, replacing existing values.
    pub fn apply_to(self, headers: &mut HeaderMap) {
        headers.insert(API_KEY, self.api_key);
        headers.insert(API_SECRET, self.api_secret);
        headers.insert(TIMESTAMP, self.timestamp);
        headers.insert(SIGNATURE, self.signature);
    }

    /// Value of `X-Signature`.
    #[must_use]
    pub fn signature(&self) -> &HeaderValue {
        &self.signature
    }

    /// Value of `X-Timestamp`.
    #[must_use]
    pub fn timestamp(&self) -> &HeaderValue {
        &self.timestamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &[u8] = br#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;

    struct Vector {
        secret: String,
        time: u64,
        method: &'static str,
        path: &'static str,
        body: &'static [u8],
        v1: &'static str,
    }

    /// Computed with Python's `hmac`, the first one also with `openssl dgst -sha256 -hmac`.
    fn vectors() -> [Vector; 3] {
        [
            Vector {
                secret: "sbx-secret-for-tests".into(),
                time: 1_767_225_600,
                method: "POST",
                path: "/api/v1/orders",
                body: ORDER,
                v1: "dee036980acdc04c218b6db8acef4d06509f045f8f7c51bf0a3758e528b909b6",
            },
            Vector {
                secret: "sbx-secret-for-tests".into(),
                time: 1_767_225_600,
                method: "GET",
                path: "/api/v1/orders/ord_018f0000000070008000000000000001/vouchers",
                body: b"",
                v1: "18de618fd0d95afab781b4f70782370d02e1419fd2e9cd87fa75c0e5d0db78db",
            },
            // HMAC hashes a key longer than SHA-256's block of 64 bytes.
            Vector {
                secret: "k".repeat(100),
                time: 1_767_225_601,
                method: "DELETE",
                path: "/api/v1/webhooks/wh_1",
                body: b"",
                v1: "ee4ab9a0271d5eab6ffb700b377b326d23618e9b8d1e6c2f18420dec465993ea",
            },
        ]
    }

    #[test]
    fn signatures_match_reference_vectors() {
        for Vector {
            secret,
            time,
            method,
            path,
            body,
            v1,
        } in vectors()
        {
            let credentials = Credentials::new("vs_sandbox_test", &secret).unwrap();
            let signed = credentials.sign(method, path, body, time);
            assert_eq!(signed.signature().to_str().unwrap(), format!("t={time},v1={v1}"));
            assert_eq!(signed.timestamp().to_str().unwrap(), time.to_string());
            assert_eq!(
                credentials.signature_hex(&time.to_string(), method, path, body),
                v1
            );
        }
    }

    #[test]
    fn apply_to_sets_four_headers() {
        let credentials = Credentials::new("vs_sandbox_key", "the-secret").unwrap();
        let mut headers = HeaderMap::new();
        credentials
            .sign("POST", "/api/v1/orders", ORDER, 1_767_225_600)
            .apply_to(&mut headers);
        assert_eq!(headers.len(), 4);
        assert_eq!(headers[API_KEY], "vs_sandbox_key");
        assert_eq!(headers[API_SECRET], "the-secret");
        assert_eq!(headers[TIMESTAMP], "1767225600");
    }

    #[test]
    fn debug_output_hides_key_and_secret() {
        let credentials = Credentials::new("vs_sandbox_key", "the-secret").unwrap();
        let signed = credentials.sign("POST", "/", b"", 1_767_225_600);
        assert!(!format!("{credentials:?}").contains("vs_sandbox_key"));
        assert!(!format!("{credentials:?}{signed:?}").contains("the-secret"));
    }
}
