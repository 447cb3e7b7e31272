//! Signature check of the fake service, written from the specification and RFC 2104 without an HMAC library, so that
//! it cannot share a bug with the signer.

use hyper::HeaderMap;
use sha2::{Digest, Sha256};

/// Block size of SHA-256, in bytes.
const BLOCK: usize = 64;
/// Maximum clock skew, in seconds.
const WINDOW_S: u64 = 300;

/// Credentials of the fake service's partner.
pub(crate) const KEY: &str = "vs_sandbox_fake";
pub(crate) const SECRET: &str = "a-secret-of-the-fake-service";

/// Returns the contract's error code as `Err`.
pub(crate) fn verify(
    method: &str,
    path: &str,
    headers: &HeaderMap,
    body: &[u8],
    now: u64,
) -> Result<(), &'static str> {
    let timestamp = single(headers, "x-timestamp").ok_or("TIMESTAMP_OUT_OF_RANGE")?;
    let seconds: u64 = timestamp.parse().map_err(|_| "TIMESTAMP_OUT_OF_RANGE")?;
    if timestamp.len() != 10 || seconds.abs_diff(now) > WINDOW_S {
        return Err("TIMESTAMP_OUT_OF_RANGE");
    }
    let message = [timestamp.as_bytes(), method.as_bytes(), path.as_bytes(), body].concat();
    let expected = format!(
        "t={timestamp},v1={}",
        hex::encode(hmac(SECRET.as_bytes(), &message))
    );
    match single(headers, "x-signature") {
        Some(signature) if signature == expected => Ok(()),
        _ => Err("INVALID_SIGNATURE"),
    }
}

/// Returns the contract's error code as `Err`.
pub(crate) fn authenticate(headers: &HeaderMap) -> Result<(), &'static str> {
    let is_known =
        single(headers, "x-api-key") == Some(KEY) && single(headers, "x-api-secret") == Some(SECRET);
    if is_known {
        Ok(())
    } else {
        Err("INVALID_CREDENTIALS")
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; BLOCK];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x36))
        .chain_update(message)
        .finalize();
    Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x5c))
        .chain_update(inner)
        .finalize()
        .to_vec()
}

/// Test case 2 of RFC 4231.
#[test]
fn hmac_matches_rfc_4231() {
    let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(
        hex::encode(hmac(b"Jefe", b"what do ya want for nothing?")),
        expected
    );
}
