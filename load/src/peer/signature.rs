//! Did a known partner sign exactly this request, and lately? The check that the service makes, made again from the
//! spec, so that the peer pays for it too.
//!
//! Rule: secrets are kept as hashes and compared in constant time; the presented secret, once it matched, keys the HMAC.

use std::collections::HashMap;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::refusal::Refusal;

/// How far a timestamp may be off, either way, inclusive. Seconds.
const MAX_SKEW_S: u64 = 300;
/// Digits of a timestamp: fewer or more would let bytes move between timestamp and method.
const TIMESTAMP_DIGITS: usize = 10;
/// Bytes of an HMAC-SHA256.
const MAC_BYTES: usize = 32;
/// What the path may also be signed without.
const PREFIX: &str = "/api/v1";

/// The authentication headers of a request; `None` where one is missing or there twice.
#[derive(Clone, Copy)]
pub struct AuthHeaders<'a> {
    pub api_key: Option<&'a [u8]>,
    pub api_secret: Option<&'a [u8]>,
    pub timestamp: Option<&'a [u8]>,
    pub signature: Option<&'a [u8]>,
}

/// What a signature covers beside the time.
#[derive(Clone, Copy)]
pub struct SignedMessage<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub body: &'a [u8],
}

/// Who may call: by the hash of the API key, the hash of the secret and whose they are.
#[derive(Clone, Default)]
pub struct CredentialRegistry(HashMap<[u8; 32], ([u8; 32], Uuid)>);

impl CredentialRegistry {
    /// Enters a credential by its two hashes.
    pub fn insert(&mut self, key_hash: [u8; 32], secret_hash: [u8; 32], partner_id: Uuid) {
        self.0.insert(key_hash, (secret_hash, partner_id));
    }

    /// Whose credentials these are.
    ///
    /// # Errors
    /// [`Refusal::InvalidCredentials`], the same whether the key or the secret is wrong.
    pub fn authenticate(&self, presented: &AuthHeaders<'_>) -> Result<Uuid, Refusal> {
        let refused = Refusal::InvalidCredentials;
        let (Some(key), Some(secret)) = (presented.api_key, presented.api_secret) else {
            return Err(refused);
        };
        let given: [u8; 32] = Sha256::digest(secret).into();
        match self.0.get::<[u8; 32]>(&Sha256::digest(key).into()) {
            Some((known, partner_id)) if bool::from(known.ct_eq(&given)) => Ok(*partner_id),
            _ => Err(refused),
        }
    }
}

/// Checks the signature of an identified request at `now_s`, in Unix seconds.
///
/// # Errors
/// [`Refusal::TimestampOutOfRange`] or [`Refusal::InvalidSignature`].
pub fn verify(presented: &AuthHeaders<'_>, message: SignedMessage<'_>, now_s: u64) -> Result<(), Refusal> {
    let timestamp = presented.timestamp.ok_or(Refusal::TimestampOutOfRange)?;
    let seconds = unix_seconds_of(timestamp).ok_or(Refusal::TimestampOutOfRange)?;
    let (signed_at, mac) = presented
        .signature
        .and_then(parts_of)
        .ok_or(Refusal::InvalidSignature)?;
    if signed_at != timestamp || seconds.abs_diff(now_s) > MAX_SKEW_S {
        return Err(Refusal::TimestampOutOfRange);
    }
    if !has_one_reading(message) {
        return Err(Refusal::InvalidSignature);
    }
    let secret = presented.api_secret.unwrap_or_default();
    let short = message.path.strip_prefix(PREFIX).unwrap_or(message.path);
    let right = [message.path, short].into_iter().any(|path| {
        let Ok(keyed) = Hmac::<Sha256>::new_from_slice(secret) else {
            unreachable!("HMAC takes a key of any length")
        };
        let method = message.method.as_bytes();
        [timestamp, method, path.as_bytes(), message.body]
            .into_iter()
            .fold(keyed, |keyed, part| keyed.chain_update(part))
            .verify_slice(&mac)
            .is_ok()
    });
    right.then_some(()).ok_or(Refusal::InvalidSignature)
}

fn unix_seconds_of(digits: &[u8]) -> Option<u64> {
    let plain = digits.len() == TIMESTAMP_DIGITS && digits.iter().all(u8::is_ascii_digit);
    plain.then(|| {
        digits
            .iter()
            .fold(0, |seconds, digit| seconds * 10 + u64::from(digit - b'0'))
    })
}

/// `t=<timestamp>,v1=<64 hex digits>`, taken apart.
fn parts_of(signature: &[u8]) -> Option<(&[u8], [u8; MAC_BYTES])> {
    let rest = signature.strip_prefix(b"t=")?;
    let (timestamp, rest) = rest.split_at_checked(TIMESTAMP_DIGITS)?;
    let mut mac = [0; MAC_BYTES];
    hex::decode_to_slice(rest.strip_prefix(b",v1=")?, &mut mac).ok()?;
    Some((timestamp, mac))
}

/// The parts are joined without a separator, so none may look like the end of another.
fn has_one_reading(message: SignedMessage<'_>) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte);
    message.path.starts_with('/')
        && message.path.bytes().all(plain)
        && (message.body.is_empty() || message.body.starts_with(b"{"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signer::Credentials;

    const NOW_S: u64 = 1_767_225_600;
    const BODY: &[u8] = br#"{"items":[]}"#;

    /// What the check says of a request that was signed for `signed` and is presented for `asked`.
    fn outcome(signed_at: u64, signed: (&str, &[u8]), asked: (&str, &[u8])) -> Result<(), Refusal> {
        let credentials = Credentials::new("key", "secret").unwrap();
        let headers = credentials.sign("POST", signed.0, signed.1, signed_at);
        let presented = AuthHeaders {
            api_key: Some(b"key"),
            api_secret: Some(b"secret"),
            timestamp: Some(headers.timestamp().as_bytes()),
            signature: Some(headers.signature().as_bytes()),
        };
        let message = SignedMessage {
            method: "POST",
            path: asked.0,
            body: asked.1,
        };
        verify(&presented, message, NOW_S)
    }

    #[test]
    fn what_was_signed_lately_passes_and_nothing_else_does() {
        let orders = ("/api/v1/orders", BODY);
        let late = Err(Refusal::TimestampOutOfRange);
        let wrong = Err(Refusal::InvalidSignature);
        let table = [
            (NOW_S, orders, orders, Ok(())),
            (NOW_S, ("/orders", BODY), orders, Ok(())),
            (NOW_S - 300, orders, orders, Ok(())),
            (NOW_S + 300, orders, orders, Ok(())),
            (NOW_S - 301, orders, orders, late.clone()),
            (NOW_S + 301, orders, orders, late),
            (NOW_S, orders, ("/api/v1/orders", &b"{}"[..]), wrong.clone()),
            (NOW_S, orders, ("/api/v1/order", BODY), wrong.clone()),
            (
                NOW_S,
                ("/api/v1/orders", b"x"),
                ("/api/v1/orders", &b"x"[..]),
                wrong,
            ),
        ];
        for (signed_at, signed, asked, expected) in table {
            assert_eq!(
                outcome(signed_at, signed, asked),
                expected,
                "{signed_at} {signed:?} {asked:?}"
            );
        }
    }

    #[test]
    fn headers_of_another_form_are_refused() {
        let message = SignedMessage {
            method: "POST",
            path: "/orders",
            body: BODY,
        };
        let v1 = "0".repeat(64);
        let table = [
            (
                None,
                Some(format!("t=1767225600,v1={v1}")),
                Refusal::TimestampOutOfRange,
            ),
            (
                Some("176722560"),
                Some(format!("t=176722560,v1={v1}")),
                Refusal::TimestampOutOfRange,
            ),
            (Some("1767225600"), None, Refusal::InvalidSignature),
            (
                Some("1767225600"),
                Some(format!("t=1767225601,v1={v1}")),
                Refusal::TimestampOutOfRange,
            ),
            (
                Some("1767225600"),
                Some(format!("t=1767225600,v1={v1}0")),
                Refusal::InvalidSignature,
            ),
            (
                Some("1767225600"),
                Some(format!("t=1767225600,v0={v1}")),
                Refusal::InvalidSignature,
            ),
        ];
        for (timestamp, signature, expected) in table {
            let presented = AuthHeaders {
                api_key: Some(b"key"),
                api_secret: Some(b"secret"),
                timestamp: timestamp.map(str::as_bytes),
                signature: signature.as_deref().map(str::as_bytes),
            };
            assert_eq!(
                verify(&presented, message, NOW_S),
                Err(expected),
                "{timestamp:?} {signature:?}"
            );
        }
    }

    #[test]
    fn a_wrong_secret_looks_like_an_unknown_key() {
        let partner = Uuid::from_u128(7);
        let mut register = CredentialRegistry::default();
        register.insert(
            Sha256::digest(b"key").into(),
            Sha256::digest(b"secret").into(),
            partner,
        );
        let who = |api_key, api_secret| {
            register.authenticate(&AuthHeaders {
                api_key,
                api_secret,
                timestamp: None,
                signature: None,
            })
        };
        assert_eq!(who(Some(&b"key"[..]), Some(&b"secret"[..])), Ok(partner));
        for (key, secret) in [
            (Some(&b"key"[..]), Some(&b"other"[..])),
            (Some(&b"other"[..]), Some(&b"secret"[..])),
            (None, Some(&b"secret"[..])),
            (Some(&b"key"[..]), None),
        ] {
            assert_eq!(who(key, secret), Err(Refusal::InvalidCredentials));
        }
    }
}
