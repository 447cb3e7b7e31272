//! Did the holder of the secret sign exactly this request, and lately?
//!
//! The rule: an answer of yes rests on the bytes of the wire alone. The order of the checks decides the error:
//!
//! | Step | Wrong is | On the wire |
//! |---|---|---|
//! | `X-Signature` is there | [`SignatureError::Missing`] | `INVALID_SIGNATURE` |
//! | `X-Timestamp` is there once, ten digits | [`SignatureError::Timestamp`] | `TIMESTAMP_OUT_OF_RANGE` |
//! | `X-Signature` is there once, `t=…,v1=<64 hex>` | [`SignatureError::Malformed`] | `INVALID_SIGNATURE` |
//! | `t` is the text of `X-Timestamp` | [`SignatureError::Timestamp`] | `TIMESTAMP_OUT_OF_RANGE` |
//! | at most 300 s off, early or late | [`SignatureError::Timestamp`] | `TIMESTAMP_OUT_OF_RANGE` |
//! | the message has one reading | [`SignatureError::Framing`] | body: `MALFORMED_REQUEST`; else `INVALID_SIGNATURE` |
//! | the HMAC is right for one form of the path | [`SignatureError::Mismatch`] | `INVALID_SIGNATURE` |
//!
//! The signature does not cover `Idempotency-Key`: TLS and the allowlist stand between a captured request and a second
//! order.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use time::OffsetDateTime;

use super::credential::ApiSecret;
use super::framing::{CanonicalRequest, FramingError, SignedRequest, Timestamp};
use super::headers::{UniqueHeader, AuthHeaders};

/// How far a timestamp may be off the server's clock, in seconds, either way, inclusive.
pub const MAX_SKEW_S: u64 = 300;

/// Bytes of an HMAC-SHA256.
const MAC_BYTES: usize = 32;

/// Why a request does not count as signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("X-Signature is missing")]
    Missing,
    /// `X-Signature` is there more than once, or in another form.
    #[error("X-Signature must appear once, in the form t=<timestamp>,v1=<64 hex digits>")]
    Malformed,
    /// The time is not given, not one, or not now.
    #[error(transparent)]
    Timestamp(#[from] TimestampError),
    /// A part of the request could be mistaken for another.
    #[error(transparent)]
    Framing(#[from] FramingError),
    /// The HMAC is that of another message or another secret.
    #[error("the signature does not match this method, path and body")]
    Mismatch,
}

/// What is wrong with the time of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    #[error("X-Timestamp is missing")]
    Missing,
    /// `X-Timestamp` is there more than once, or is not ten digits.
    #[error("X-Timestamp must appear once, as Unix seconds in ten digits")]
    Malformed,
    /// `t=` is another text than `X-Timestamp`.
    #[error("t in X-Signature differs from X-Timestamp")]
    Mismatch,
    /// It is too early or too late.
    #[error(
        "X-Timestamp is {} s {} the server's clock; at most {MAX_SKEW_S} s either way are allowed",
        .ahead_s.unsigned_abs(),
        if *.ahead_s < 0 { "behind" } else { "ahead of" },
    )]
    Skewed {
        /// Seconds that it is ahead of this clock; negative is behind.
        ahead_s: i64,
    },
}

/// Checks the signature of a request, after the secret itself was found to be right.
///
/// # Errors
/// [`SignatureError`], in the order of the table above.
pub fn verify(
    secret: &ApiSecret,
    presented: &AuthHeaders<'_>,
    request: SignedRequest<'_>,
    now: OffsetDateTime,
) -> Result<(), SignatureError> {
    if presented.signature == UniqueHeader::Missing {
        return Err(SignatureError::Missing);
    }
    let timestamp = parse_timestamp(presented.timestamp)?;
    let signature = presented
        .signature
        .value()
        .and_then(Signature::parse)
        .ok_or(SignatureError::Malformed)?;
    if signature.t != timestamp.digits() {
        return Err(TimestampError::Mismatch.into());
    }
    check_skew(timestamp, now)?;
    let framed = CanonicalRequest::new(timestamp, request)?;
    let signed = [framed.as_received(), framed.without_prefix()]
        .into_iter()
        .any(|message| signature.matches(secret, message));
    if signed {
        Ok(())
    } else {
        Err(SignatureError::Mismatch)
    }
}

/// The value of `X-Signature` for a message, as a partner makes it; `vouchsafe call` is one.
#[must_use]
pub fn sign(secret: &ApiSecret, timestamp: Timestamp, framed: &CanonicalRequest<'_>) -> String {
    let digits: String = timestamp.digits().iter().copied().map(char::from).collect();
    let mac = compute_hmac(secret, framed.as_received()).finalize().into_bytes();
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

/// The two fields of `X-Signature`.
struct Signature<'a> {
    t: &'a [u8],
    v1: [u8; MAC_BYTES],
}

impl<'a> Signature<'a> {
    /// Exactly `t=…,v1=…` in this order: a second `v1`, another version or a space makes it another form. Hex digits
    /// may be of either case, as partners' libraries differ.
    fn parse(header: &'a [u8]) -> Option<Self> {
        let fields = header.strip_prefix(b"t=")?;
        let comma = fields.iter().position(|&b| b == b',')?;
        let (t, rest) = fields.split_at(comma);
        let mut v1 = [0; MAC_BYTES];
        hex::decode_to_slice(rest.strip_prefix(b",v1=")?, &mut v1).ok()?;
        Some(Self { t, v1 })
    }

    /// Compared in constant time.
    fn matches(&self, secret: &ApiSecret, message: [&[u8]; 4]) -> bool {
        compute_hmac(secret, message).verify_slice(&self.v1).is_ok()
    }
}

fn compute_hmac(secret: &ApiSecret, message: [&[u8]; 4]) -> Hmac<Sha256> {
    let Ok(mac) = Hmac::new_from_slice(secret.expose().as_bytes()) else {
        unreachable!("HMAC takes a key of any length");
    };
    message.into_iter().fold(mac, Mac::chain_update)
}

#[cfg(test)]
mod tests;
