//! Request authentication of the peer: the same checks as the service, implemented independently from the
//! specification, so that the peer has the same cost.
//!
//! Rule: secrets are stored as hashes and compared in constant time. The presented secret keys the HMAC once its hash
//! matched.

use std::collections::HashMap;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::refusal::Refusal;

/// Maximum clock skew in either direction, inclusive, in seconds.
const MAX_SKEW_S: u64 = 300;
/// Digits of a timestamp. A fixed length keeps the boundary between timestamp and method unambiguous.
const TIMESTAMP_DIGITS: usize = 10;
const MAC_BYTES: usize = 32;
/// Optional prefix of the signed path.
const PREFIX: &str = "/api/v1";

/// Authentication headers of a request; `None` if missing or duplicated.
#[derive(Clone, Copy)]
pub(super) struct AuthHeaders<'a> {
    pub(super) api_key: Option<&'a [u8]>,
    pub(super) api_secret: Option<&'a [u8]>,
    pub(super) timestamp: Option<&'a [u8]>,
    pub(super) signature: Option<&'a [u8]>,
}

/// Signed parts of a request besides the timestamp.
#[derive(Clone, Copy)]
pub(super) struct SignedMessage<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) body: &'a [u8],
}

/// Secret hash and partner by API key hash.
#[derive(Clone)]
pub(super) struct CredentialRegistry(HashMap<[u8; 32], ([u8; 32], Uuid)>);

impl CredentialRegistry {
    /// Registry with one partner. Keys and secrets are long random values, so an unsalted SHA-256 of each is
    /// sufficient.
    pub(super) fn of(api_key: &str, api_secret: &str, partner_id: Uuid) -> Self {
        let (key_hash, secret_hash) = (Sha256::digest(api_key).into(), Sha256::digest(api_secret).into());
        Self(HashMap::from([(key_hash, (secret_hash, partner_id))]))
    }

    /// Returns the partner of the presented credentials.
    pub(super) fn authenticate(&self, headers: &AuthHeaders<'_>) -> Result<Uuid, Refusal> {
        let error = Refusal::InvalidCredentials;
        let (Some(key), Some(secret)) = (headers.api_key, headers.api_secret) else {
            return Err(error);
        };
        let presented_hash: [u8; 32] = Sha256::digest(secret).into();
        match self.0.get::<[u8; 32]>(&Sha256::digest(key).into()) {
            Some((stored_hash, partner_id)) if bool::from(stored_hash.ct_eq(&presented_hash)) => {
                Ok(*partner_id)
            }
            _ => Err(error),
        }
    }
}

/// Checks the signature of an authenticated request at `now_s`, in Unix seconds.
pub(super) fn verify(
    headers: &AuthHeaders<'_>,
    message: SignedMessage<'_>,
    now_s: u64,
) -> Result<(), Refusal> {
    let timestamp = headers.timestamp.ok_or(Refusal::TimestampOutOfRange)?;
    let seconds = parse_timestamp(timestamp).ok_or(Refusal::TimestampOutOfRange)?;
    let (signed_at, mac) = headers
        .signature
        .and_then(parse_signature)
        .ok_or(Refusal::InvalidSignature)?;
    if signed_at != timestamp || seconds.abs_diff(now_s) > MAX_SKEW_S {
        return Err(Refusal::TimestampOutOfRange);
    }
    if !is_unambiguous(message) {
        return Err(Refusal::InvalidSignature);
    }
    let secret = headers.api_secret.unwrap_or_default();
    let path_without_prefix = message.path.strip_prefix(PREFIX).unwrap_or(message.path);
    let is_valid = [message.path, path_without_prefix].into_iter().any(|path| {
        let Ok(keyed) = Hmac::<Sha256>::new_from_slice(secret) else {
            unreachable!("HMAC accepts keys of any length")
        };
        let method = message.method.as_bytes();
        [timestamp, method, path.as_bytes(), message.body]
            .into_iter()
            .fold(keyed, |keyed, part| keyed.chain_update(part))
            .verify_slice(&mac)
            .is_ok()
    });
    is_valid.then_some(()).ok_or(Refusal::InvalidSignature)
}

fn parse_timestamp(digits: &[u8]) -> Option<u64> {
    let is_allowed = digits.len() == TIMESTAMP_DIGITS && digits.iter().all(u8::is_ascii_digit);
    is_allowed.then(|| {
        digits
            .iter()
            .fold(0, |seconds, digit| seconds * 10 + u64::from(digit - b'0'))
    })
}

/// Parses `t=<timestamp>,v1=<64 hex digits>`.
fn parse_signature(signature: &[u8]) -> Option<(&[u8], [u8; MAC_BYTES])> {
    let rest = signature.strip_prefix(b"t=")?;
    let (timestamp, rest) = rest.split_at_checked(TIMESTAMP_DIGITS)?;
    let mut mac = [0; MAC_BYTES];
    hex::decode_to_slice(rest.strip_prefix(b",v1=")?, &mut mac).ok()?;
    Some((timestamp, mac))
}

/// The signed parts are concatenated without separators, so no part may look like the end of another.
fn is_unambiguous(message: SignedMessage<'_>) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte);
    message.path.starts_with('/')
        && message.path.bytes().all(is_allowed)
        && (message.body.is_empty() || message.body.starts_with(b"{"))
}

#[cfg(test)]
mod tests {
    use vouchsafe_api_client::signer::Credentials;

    use super::*;

    const NOW_S: u64 = 1_767_225_600;
    const BODY: &[u8] = br#"{"items":[]}"#;

    /// Verifies a request that was signed as `signed` and presented as `requested`.
    fn verify_signed(signed_at: u64, signed: (&str, &[u8]), requested: (&str, &[u8])) -> Result<(), Refusal> {
        let credentials = Credentials::new("key", "secret").unwrap();
        let headers = credentials.sign("POST", signed.0, signed.1, signed_at);
        let headers = AuthHeaders {
            api_key: Some(b"key"),
            api_secret: Some(b"secret"),
            timestamp: Some(headers.timestamp().as_bytes()),
            signature: Some(headers.signature().as_bytes()),
        };
        let message = SignedMessage {
            method: "POST",
            path: requested.0,
            body: requested.1,
        };
        verify(&headers, message, NOW_S)
    }

    #[test]
    fn verify_accepts_only_recent_matching_signatures() {
        let orders = ("/api/v1/orders", BODY);
        let out_of_range = Err(Refusal::TimestampOutOfRange);
        let invalid = Err(Refusal::InvalidSignature);
        let table = [
            (NOW_S, orders, orders, Ok(())),
            (NOW_S, ("/orders", BODY), orders, Ok(())),
            (NOW_S - 300, orders, orders, Ok(())),
            (NOW_S + 300, orders, orders, Ok(())),
            (NOW_S - 301, orders, orders, out_of_range.clone()),
            (NOW_S + 301, orders, orders, out_of_range),
            (NOW_S, orders, ("/api/v1/orders", &b"{}"[..]), invalid.clone()),
            (NOW_S, orders, ("/api/v1/order", BODY), invalid.clone()),
            (
                NOW_S,
                ("/api/v1/orders", b"x"),
                ("/api/v1/orders", &b"x"[..]),
                invalid,
            ),
        ];
        for (signed_at, signed, requested, expected) in table {
            assert_eq!(
                verify_signed(signed_at, signed, requested),
                expected,
                "{signed_at} {signed:?} {requested:?}"
            );
        }
    }

    #[test]
    fn wrong_secret_has_same_error_as_unknown_key() {
        let partner = Uuid::from_u128(7);
        let registry = CredentialRegistry::of("key", "secret", partner);
        let authenticate = |api_key, api_secret| {
            registry.authenticate(&AuthHeaders {
                api_key,
                api_secret,
                timestamp: None,
                signature: None,
            })
        };
        assert_eq!(authenticate(Some(&b"key"[..]), Some(&b"secret"[..])), Ok(partner));
        for (key, secret) in [
            (Some(&b"key"[..]), Some(&b"other"[..])),
            (Some(&b"other"[..]), Some(&b"secret"[..])),
            (None, Some(&b"secret"[..])),
            (Some(&b"key"[..]), None),
        ] {
            assert_eq!(authenticate(key, secret), Err(Refusal::InvalidCredentials));
        }
    }
}
