//! Verification of request signatures (HMAC-SHA256).
//!
//! The checks, in the order that decides the error:
//!
//! | Check | Otherwise | On the wire |
//! |---|---|---|
//! | `X-Signature` is present | [`SignatureError::Missing`] | `INVALID_SIGNATURE` |
//! | `X-Timestamp` occurs once, ten digits | [`SignatureError::Timestamp`] | `TIMESTAMP_OUT_OF_RANGE` |
//! | `X-Signature` occurs once, `t=…,v1=<64 hex>` | [`SignatureError::Malformed`] | `INVALID_SIGNATURE` |
//! | `t` equals `X-Timestamp` | [`SignatureError::Timestamp`] | `TIMESTAMP_OUT_OF_RANGE` |
//! | at most 300 s of clock skew, either way | [`SignatureError::Timestamp`] | `TIMESTAMP_OUT_OF_RANGE` |
//! | the message is unambiguous | [`SignatureError::Framing`] | body: `MALFORMED_REQUEST`; else `INVALID_SIGNATURE` |
//! | the HMAC matches one form of the path | [`SignatureError::Mismatch`] | `INVALID_SIGNATURE` |
//!
//! The signature does not cover `Idempotency-Key`: TLS and the allowlist keep an attacker from replaying a
//! captured request under another key.

use hmac::{Hmac, Mac};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use super::credential::ApiSecret;
use super::framing::{CanonicalRequest, FramingError, SignedRequest, Timestamp};
use super::headers::{AuthHeaders, UniqueHeader};
use super::secret::keyed_hash;

/// Largest difference between a timestamp and the server's clock, in seconds, either way, inclusive.
pub const MAX_SKEW_S: u64 = 300;

const MAC_BYTES: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("X-Signature is missing")]
    Missing,
    /// `X-Signature` is repeated or has another format.
    #[error("X-Signature must appear once, in the form t=<timestamp>,v1=<64 hex digits>")]
    Malformed,
    #[error(transparent)]
    Timestamp(#[from] TimestampError),
    #[error(transparent)]
    Framing(#[from] FramingError),
    /// The HMAC belongs to another message or another secret.
    #[error("the signature does not match this method, path and body")]
    Mismatch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    #[error("X-Timestamp is missing")]
    Missing,
    /// `X-Timestamp` is repeated or not ten digits.
    #[error("X-Timestamp must appear once, as Unix seconds in ten digits")]
    Malformed,
    /// `t=` differs from `X-Timestamp`.
    #[error("t in X-Signature differs from X-Timestamp")]
    Mismatch,
    /// Too early or too late.
    #[error(
        "X-Timestamp is {} s {} the server's clock; at most {MAX_SKEW_S} s either way are allowed",
        .ahead_s.unsigned_abs(),
        if *.ahead_s < 0 { "behind" } else { "ahead of" },
    )]
    Skewed {
        /// Seconds ahead of this clock; negative is behind.
        ahead_s: i64,
    },
}

/// Verifies the signature of a request whose secret was verified before.
///
/// # Errors
/// [`SignatureError`], in the order of the table above.
pub fn verify(
    secret: &ApiSecret,
    headers: &AuthHeaders<'_>,
    request: SignedRequest<'_>,
    now: OffsetDateTime,
) -> Result<(), SignatureError> {
    if headers.signature == UniqueHeader::Missing {
        return Err(SignatureError::Missing);
    }
    let timestamp = parse_timestamp(headers.timestamp)?;
    let signature = headers
        .signature
        .value()
        .and_then(Signature::parse)
        .ok_or(SignatureError::Malformed)?;
    if signature.t != timestamp.digits() {
        return Err(TimestampError::Mismatch.into());
    }
    check_skew(timestamp, now)?;
    let canonical = CanonicalRequest::new(timestamp, request)?;
    let is_valid = [canonical.as_received(), canonical.without_prefix()]
        .into_iter()
        .any(|message| signature.matches(secret, message));
    if is_valid {
        Ok(())
    } else {
        Err(SignatureError::Mismatch)
    }
}

/// Length and SHA-256 of the message that a request with the path as received should have signed, for a
/// client's developer; `None` if there is no such message.
#[must_use]
pub fn expected_message(headers: &AuthHeaders<'_>, request: SignedRequest<'_>) -> Option<(usize, String)> {
    let timestamp = parse_timestamp(headers.timestamp).ok()?;
    let canonical = CanonicalRequest::new(timestamp, request).ok()?;
    let (mut length, mut hash) = (0, Sha256::new());
    for part in canonical.as_received() {
        length += part.len();
        hash.update(part);
    }
    Some((length, hex::encode(hash.finalize())))
}

/// The value of `X-Signature` for a request, as a client computes it; `vouchsafe call` uses it.
#[must_use]
pub fn sign(secret: &ApiSecret, timestamp: Timestamp, canonical: &CanonicalRequest<'_>) -> String {
    let digits: String = timestamp.digits().iter().copied().map(char::from).collect();
    let mac = compute_hmac(secret, canonical.as_received())
        .finalize()
        .into_bytes();
    format!("t={digits},v1={}", hex::encode(mac))
}

fn parse_timestamp(header: UniqueHeader<'_>) -> Result<Timestamp, TimestampError> {
    match header {
        UniqueHeader::Missing => Err(TimestampError::Missing),
        UniqueHeader::Repeated => Err(TimestampError::Malformed),
        UniqueHeader::Single(text) => Timestamp::parse(text).ok_or(TimestampError::Malformed),
    }
}

fn check_skew(timestamp: Timestamp, now: OffsetDateTime) -> Result<(), TimestampError> {
    let ahead_s = timestamp.unix_s() - now.unix_timestamp();
    if ahead_s.unsigned_abs() > MAX_SKEW_S {
        return Err(TimestampError::Skewed { ahead_s });
    }
    Ok(())
}

struct Signature<'a> {
    t: &'a [u8],
    v1: [u8; MAC_BYTES],
}

impl<'a> Signature<'a> {
    /// Accepts exactly `t=…,v1=…` in this order, without further fields. One space may follow the comma, and
    /// hex digits may have either case, as partners' libraries differ.
    fn parse(header: &'a [u8]) -> Option<Self> {
        let fields = header.strip_prefix(b"t=")?;
        let comma = fields.iter().position(|&b| b == b',')?;
        let (t, rest) = (&fields[..comma], &fields[comma + 1..]);
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        let mut v1 = [0; MAC_BYTES];
        // Takes the same time for all digits: a branch per digit would show in the time of the refusal.
        let decoded = base16ct::mixed::decode(rest.strip_prefix(b"v1=")?, &mut v1).ok()?;
        (decoded.len() == MAC_BYTES).then_some(Self { t, v1 })
    }

    /// Compares in constant time.
    fn matches(&self, secret: &ApiSecret, message: [&[u8]; 4]) -> bool {
        compute_hmac(secret, message).verify_slice(&self.v1).is_ok()
    }
}

fn compute_hmac(secret: &ApiSecret, message: [&[u8]; 4]) -> Hmac<Sha256> {
    let mac = keyed_hash(secret.expose().as_bytes());
    message.into_iter().fold(mac, Mac::chain_update)
}

#[cfg(test)]
mod tests;
