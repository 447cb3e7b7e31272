//! Signature check of the fake service, with the HMAC of the signer, whose unit tests compare it with other
//! programs.

use hyper::HeaderMap;
use vouchsafe_api_client::signer::Credentials;

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
    let signer = Credentials::new(KEY, SECRET).unwrap();
    let expected = format!(
        "t={timestamp},v1={}",
        signer.signature_hex(timestamp, method, path, body)
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
