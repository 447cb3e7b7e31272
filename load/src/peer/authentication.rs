//! Request authentication of the peer: the API key and secret of its only partner, and the signature of a
//! write.

use actix_web::http::header::HeaderMap;
use uuid::Uuid;
use vouchsafe_api_client::partner::unix_seconds;
use vouchsafe_api_client::signer::Credentials;

use super::process::PeerCredentials;
use super::refusal::Refusal;

/// Maximum clock skew in either direction, inclusive, in seconds.
const MAX_SKEW_S: u64 = 300;

/// The only partner, with the keyed state that verifies its signatures.
#[derive(Clone)]
pub(super) struct Partner {
    pub(super) id: Uuid,
    presented: PeerCredentials,
    signer: Credentials,
}

impl Partner {
    pub(super) fn new(id: Uuid, presented: PeerCredentials) -> anyhow::Result<Self> {
        let signer = presented.signer()?;
        Ok(Self {
            id,
            presented,
            signer,
        })
    }

    /// Checks API key and secret.
    pub(super) fn authenticate(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let presents = |name, expected: &str| single_value(headers, name) == Some(expected);
        let is_known = presents("x-api-key", &self.presented.api_key)
            && presents("x-api-secret", &self.presented.api_secret);
        is_known.then_some(()).ok_or(Refusal::InvalidCredentials)
    }

    /// Checks timestamp and signature of an authenticated request.
    pub(super) fn verify(
        &self,
        headers: &HeaderMap,
        (method, path): (&str, &str),
        body: &[u8],
    ) -> Result<(), Refusal> {
        let timestamp = single_value(headers, "x-timestamp").ok_or(Refusal::TimestampOutOfRange)?;
        let signed_at: u64 = timestamp.parse().map_err(|_| Refusal::TimestampOutOfRange)?;
        if signed_at.abs_diff(unix_seconds()) > MAX_SKEW_S {
            return Err(Refusal::TimestampOutOfRange);
        }
        let mac = self.signer.signature_hex(timestamp, method, path, body);
        let signature = single_value(headers, "x-signature").and_then(|signature| {
            let (signed_at, mac) = signature.strip_prefix("t=")?.split_once(",v1=")?;
            Some((signed_at, mac))
        });
        (signature == Some((timestamp, &mac)))
            .then_some(())
            .ok_or(Refusal::InvalidSignature)
    }
}

/// Value of a header that occurs exactly once.
pub(super) fn single_value<'a>(headers: &'a HeaderMap, name: &'static str) -> Option<&'a str> {
    let mut values = headers.get_all(name);
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}
