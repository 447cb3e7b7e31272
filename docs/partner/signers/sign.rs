//! Signs a Vouchsafe request: prints the headers X-Timestamp and X-Signature. Crates: hex 0.4, hmac 0.13,
//! sha2 0.11.
//!
//! `VOUCHSAFE_API_SECRET=… sign METHOD PATH [TIMESTAMP] < body`

use std::env::{args, var};
use std::error::Error;
use std::io::{Read as _, Write as _, stdin, stdout};
use std::time::UNIX_EPOCH;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The value of X-Signature. The path begins with /api/v1 and has no query; the body is the bytes that are
/// sent.
///
/// # Errors
/// None in practice: HMAC accepts keys of any length.
pub fn sign(
    secret: &str,
    timestamp: &str,
    method: &str,
    path: &str,
    body: &[u8],
) -> Result<String, Box<dyn Error>> {
    let head = [timestamp, method, path].concat();
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())?
        .chain_update(head)
        .chain_update(body);
    Ok(format!(
        "t={timestamp},v1={}",
        hex::encode(mac.finalize().into_bytes())
    ))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = args().skip(1);
    let method = arguments.next().ok_or("METHOD is missing")?;
    let path = arguments.next().ok_or("PATH is missing")?;
    let now_s = UNIX_EPOCH.elapsed()?.as_secs();
    let timestamp = arguments.next().unwrap_or_else(|| now_s.to_string());
    let mut body = Vec::new();
    stdin().read_to_end(&mut body)?;
    let signature = sign(&var("VOUCHSAFE_API_SECRET")?, &timestamp, &method, &path, &body)?;
    writeln!(stdout(), "X-Timestamp: {timestamp}\nX-Signature: {signature}")?;
    Ok(())
}
